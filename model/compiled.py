"""The shared machine of each edition and its table: built, compiled and checked on first use."""

from __future__ import annotations

from functools import cache

from .dispatch import Dispatch, compile_dispatch
from .head import DEFAULT_EDITION, EDITIONS
from .machine import AnyEdition, Declaration, HeadMachine
from .soundness import check_soundness

__all__ = ["dispatch", "edition_for", "head_machine"]


def head_machine(edition: AnyEdition = DEFAULT_EDITION) -> HeadMachine:
    """The shared machine of an edition.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the declaration is unsound.
    """
    return _checked(edition)[0]


def dispatch(edition: AnyEdition = DEFAULT_EDITION) -> Dispatch:
    """The shared table of an edition, compiled from its machine.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the declaration is unsound.
    """
    return _checked(edition)[1]


def edition_for(*, has_device: bool) -> str:
    """The edition for a memory with a device, or without one: the first that is declared so."""
    return next(name for name, edition in EDITIONS.items() if edition.has_device is has_device)


@cache
def _checked(edition: AnyEdition) -> tuple[HeadMachine, Dispatch]:
    declaration = Declaration.of(edition) if isinstance(edition, str) else edition
    declaration.check_names()
    machine = HeadMachine(declaration)
    table = compile_dispatch(machine)
    check_soundness(machine, table)
    return machine, table
