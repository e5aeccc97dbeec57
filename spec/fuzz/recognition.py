"""The source of targets: what a user names or gives, from which every run gets a target."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model.errors import said

from ..engine.imports import module_at
from .conventions import name_of, recognise
from .finding import TargetError
from .native import LibraryAddress, handles_forks, loaded, meant_for_preloading, target_of
from .native_driver.building import built

if TYPE_CHECKING:
    from collections.abc import Callable

    from .c_functions import Functions
    from .targets import Target

__all__ = ["TargetSource", "look_up", "spelling"]


class TargetSource:
    """The source of targets: every run gets one from it.

    Parameters
    ----------
    target : object or str
        An allocator, a class or a function of no arguments that makes one, a pair of callables, or a string that
        names one of these: ``module:attr``, ``file.py:attr``, ``module:alloc,free``, ``lib.so:alloc,free?abi=torch``.
    deep : bool
        Whether a library is bound to its own functions first.

    Raises
    ------
    TargetError
        If a string does not name anything.
    """

    def __init__(self, target: object, *, deep: bool = False) -> None:
        self.name: str = target if isinstance(target, str) else name_of(target)
        target = built(target) if isinstance(target, str) else target
        self._deep = deep
        self._library = LibraryAddress.parse(target) if isinstance(target, str) else None
        self._subject = look_up(target) if isinstance(target, str) and self._library is None else target

    @cached_property
    def _functions(self) -> Functions | None:
        """Those of a library, which is loaded only when they are wanted."""
        return None if self._library is None else loaded(self._library, deep=self._deep)

    @cached_property
    def makes_fresh(self) -> bool:
        """Whether each target is new, with nothing left from the last one."""
        return _is_factory(self._subject) if self._functions is None else self._functions.make_fresh

    @property
    def parts(self) -> dict[str, str]:
        """The symbol of each part of the convention of a library; none of other targets."""
        return {} if self._functions is None else dict(self._functions.symbols)

    @property
    def handles_forks(self) -> bool:
        """Whether it is a library that registers what is to be done at forks."""
        return self._functions is not None and handles_forks(self._functions)

    @property
    def preload(self) -> str:
        """The file of a library that is to be loaded before all others, and was not; else empty."""
        return "" if self._functions is None else meant_for_preloading(self._functions)

    def open(self) -> Target:
        """Open a target.

        Raises
        ------
        TargetError
            If it is not recognised, or cannot be made or called.
        """
        if self._functions is not None:
            return target_of(self._functions)
        if not self.makes_fresh:
            return recognise(self._subject)
        try:
            subject = cast("Callable[[], Any]", self._subject)()
        except Exception as error:
            raise TargetError(
                f"{self.name} cannot be called without arguments ({said(error)}); name a function that makes it"
            ) from error
        return replace(recognise(subject), owned=True)


def look_up(text: str) -> Any:
    """The object that ``module:attr``, ``file.py:attr`` or ``module:alloc,free`` names."""
    place, _, names = text.partition(":")
    if not place or not names:
        raise TargetError(f"{text!r} names no target; write module:attr, file.py:attr or path/to/lib.so:alloc,free")
    if not place.endswith(".py") and ("/" in place or Path(place).is_file()):
        what = "is neither a shared library (.so), nor a Python file (.py), nor a source in C or C++ (.c, .cpp)"
        raise TargetError(f"{place} {what}" if Path(place).exists() else f"there is no file {place}")
    try:
        module = module_at(place)
    except (Exception, SystemExit) as error:
        raise TargetError(f"cannot import {place}: {said(error)}") from error
    objects = [_attribute(module, place, name.strip()) for name in names.split(",")]
    return objects[0] if len(objects) == 1 else tuple(objects)


def _attribute(module: Any, place: str, name: str) -> Any:
    try:
        return attrgetter(name)(module)
    except AttributeError:
        raise TargetError(f"{place} has no attribute {name}") from None


def spelling(target: object) -> str | None:
    """The string by which `look_up` finds exactly this target; None if there is none."""
    if isinstance(target, tuple):
        spelt = [spelling(item) for item in cast("tuple[object, ...]", target)]
        places = {text.partition(":")[0] for text in spelt if text is not None}
        names = [text.partition(":")[2] for text in spelt if text is not None]
        return f"{places.pop()}:{','.join(names)}" if len(places) == 1 and len(names) == len(spelt) else None
    module, name = str(getattr(target, "__module__", "")), str(getattr(target, "__qualname__", ""))
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is None or value is not target:
        return None
    place = module if module != "__main__" else getattr(sys.modules[module], "__file__", None)
    return None if place is None else f"{place}:{name}"


def _is_factory(target: Any) -> bool:
    """Whether an object makes allocators: a class, or a function without parameters."""
    if isinstance(target, type):
        return True
    if not (inspect.isfunction(target) or inspect.ismethod(target)):
        return False
    return not inspect.signature(target).parameters
