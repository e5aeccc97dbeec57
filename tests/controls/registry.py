"""The one list of the control group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MEMORIES", "PORTS", "Control", "control"]

Made = TypeVar("Made", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Control:
    """A right memory or port, and its wrong twin.

    Attributes
    ----------
    name : str
        The freedom that it takes.
    source : str
        What allows it.
    refuses : str
        The requirement that refuses its twin.
    make : callable
        Takes whether the twin is wanted.
    level : str
        The highest level at which the freedom can be taken; empty for the highest of all.
    profile : {"caffe", "safe"}
        The profile in which it can be taken.
    suites : tuple of str
        Those that take a port there, where the usual ones do not.
    """

    name: str
    source: str
    refuses: str
    make: Callable[..., Any]
    level: Any = ""
    profile: Any = "caffe"
    suites: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it does, in a sentence."""
        return (self.make.__doc__ or "").strip()


PORTS: dict[str, Control] = {}
"""The ports by name, once `controls.ports` is imported."""

MEMORIES: dict[str, Control] = {}
"""The memories by name, once `controls.memories` is imported."""


def control(kind: Literal["memory", "port"], source: str, *, refuses: str, **more: Any) -> Callable[[Made], Made]:
    """Add a member to the control group, under the name of its function; `more` is the rest of `Control`.

    Raises
    ------
    ValueError
        If there is one of this name.
    """
    group = {"memory": MEMORIES, "port": PORTS}[kind]

    def register(make: Made) -> Made:
        name = make.__name__
        if name in group:
            raise ValueError(f"there are two controls {name}")
        group[name] = Control(name, source, refuses, make, **more)
        return make

    return register
