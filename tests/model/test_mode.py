"""The mode is GPU unless it is set, belongs to one thread or task, and is restored after a block."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.model import InvalidArgumentError, Mode, current_mode, set_mode, using_mode

if TYPE_CHECKING:
    from collections.abc import Callable


def alone(check: Callable[[], Any]) -> Any:
    """Run a function in a context of its own, so that no test sees another test's mode."""
    return copy_context().run(check)


def after_setting(mode: Mode | None) -> Mode:
    """Set the mode, and return the mode in force."""
    set_mode(mode)
    return current_mode()


def test_the_mode_is_gpu_unless_set() -> None:
    """Caffe starts in CPU mode. We start in GPU mode, because users who ask for a device usually want it."""
    assert Mode.GPU is current_mode()


@pytest.mark.parametrize("before", [None, *Mode])
@pytest.mark.parametrize("inside", [None, *Mode])
@pytest.mark.parametrize("raises", [False, True])
def test_a_block_puts_the_old_mode_back(before: Mode | None, inside: Mode | None, *, raises: bool) -> None:
    """For every old mode, every mode set inside, and if the block raises. None is the default, also after the other."""

    def check() -> None:
        set_mode(Mode.CPU)
        assert (before or Mode.GPU) is after_setting(before)
        with pytest.raises(KeyboardInterrupt) if raises else nullcontext(), using_mode(inside):
            assert (inside or Mode.GPU) is current_mode()
            set_mode(Mode.CPU)
            if raises:
                raise KeyboardInterrupt
        assert (before or Mode.GPU) is current_mode()

    alone(check)


def test_threads_have_modes_of_their_own() -> None:
    """A new thread starts with the default, and a mode that it sets stays in this thread."""
    with using_mode(Mode.CPU), ThreadPoolExecutor(1) as pool:
        assert Mode.GPU is pool.submit(current_mode).result()
        assert Mode.CPU is current_mode()
    with ThreadPoolExecutor(1) as pool:
        assert Mode.CPU is pool.submit(after_setting, Mode.CPU).result()
        assert Mode.GPU is current_mode()


def test_tasks_have_modes_of_their_own() -> None:
    """A task starts with the mode of the task that created it, and tasks that take turns do not change each other's."""

    async def task(mode: Mode) -> list[Mode]:
        seen = [current_mode()]
        with using_mode(mode):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(current_mode())
        return [*seen, current_mode()]

    async def both() -> list[list[Mode]]:
        set_mode(Mode.CPU)
        return list(await asyncio.gather(task(Mode.CPU), task(Mode.GPU)))

    cpu, gpu = Mode.CPU, Mode.GPU
    assert [[cpu] * 5, [cpu, gpu, gpu, gpu, cpu]] == asyncio.run(both())
    assert Mode.GPU is current_mode()


def entered(mode: Mode | None) -> None:
    """Enter a block, and leave it."""
    with using_mode(mode):
        pass


@pytest.mark.parametrize("wrong", [0, 1, "GPU", False])
@pytest.mark.parametrize("use", [set_mode, entered])
def test_anything_but_a_mode_is_refused(use: Callable[[Any], None], wrong: object) -> None:
    """The error has the value, and is a `TypeError` too. The mode stays as it was."""

    def check() -> None:
        set_mode(Mode.CPU)
        with pytest.raises(InvalidArgumentError, match=r"^mode must be Mode\.CPU, Mode\.GPU or None, got ") as caught:
            use(wrong)
        assert repr(wrong) == str(caught.value).partition("got ")[2]
        assert wrong is caught.value.value
        assert Mode.CPU is current_mode()

    alone(check)
