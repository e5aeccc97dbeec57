"""Which machine is meant by a name, or by a machine: whatever draws, exports or judges takes either."""

from __future__ import annotations

from functools import cache

from . import caffe
from .declaration import Call, Machine
from .errors import DeclarationError
from .states import stepper

__all__ = ["AnyCall", "AnyMachine", "machine_of"]

AnyMachine = str | Machine
"""The name of an edition, or a machine."""

AnyCall = str | Call
"""A call, or its name."""


@cache
def machine_of(edition: AnyMachine) -> Machine:
    """The machine that is meant, checked."""
    if isinstance(edition, str) and edition not in caffe.EDITIONS:
        raise DeclarationError(f"unknown machine {edition!r}; there are {', '.join(caffe.EDITIONS)}")
    machine = caffe.EDITIONS[edition] if isinstance(edition, str) else edition
    stepper(machine)
    return machine
