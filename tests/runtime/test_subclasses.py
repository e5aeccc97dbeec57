"""Subclasses of users: one that forgets ``super().__init__()`` fails when it is made, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from syncedmem import (
    Blob,
    Buffer,
    CPUDeviceAllocator,
    LimitingAllocator,
    NotInitializedError,
    PoolAllocator,
    SyncedMemory,
)

ARGUMENTS: dict[type[Any], tuple[Any, ...]] = {
    Blob: ((2, 3),),
    Buffer: (),
    LimitingAllocator: (CPUDeviceAllocator(), 100),
    PoolAllocator: (CPUDeviceAllocator(),),
    SyncedMemory: (8,),
}


@pytest.mark.parametrize("base", ARGUMENTS)
def test_who_forgets_the_init_of_its_base_is_told_at_once(base: type[Any]) -> None:
    class Mine(base):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            self.arguments = arguments

    class Deeper(Mine):
        pass

    for kind in (Mine, Deeper):
        with pytest.raises(NotInitializedError, match=r"Mine\.__init__ must call super\(\)\.__init__\(\)"):
            kind(*ARGUMENTS[base])


@pytest.mark.parametrize("base", [Buffer, SyncedMemory])
def test_what_has_memory_is_initialised_once(base: type[Any]) -> None:
    """A second ``__init__`` would forget what is allocated."""
    with pytest.raises(TypeError, match="initialised once"):
        base(*ARGUMENTS[base]).__init__(*ARGUMENTS[base])


@pytest.mark.parametrize("base", ARGUMENTS)
def test_who_calls_it_may_do_so_at_any_time(base: type[Any]) -> None:
    class Mine(base):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            self.earlier = arguments
            super().__init__(*arguments)  # pyright: ignore[reportUnknownMemberType] -- the base is a parameter

    class Deeper(Mine):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.later = True

    made = Deeper(*ARGUMENTS[base])
    assert (made.earlier, made.later) == (ARGUMENTS[base], True)
