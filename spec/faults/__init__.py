"""Planted faults: wrong memories that the kit must refuse, at least one for every requirement.

Each is the reference memory with one step done wrong, labelled with the requirement it breaks and with
where the fault comes from: an erratum of a seed text, a real issue, a state of Caffe's own history, or a
system that does it so.  They test the kit, and people who write a driver for a port can test that with them.
"""

from __future__ import annotations

# Importing a module of faults registers them.
from . import adoption, copies, devices, edges, failures, flights, lifetimes, ownership
from .registry import FAULTS, Fault
from .selftest import Kill, kill_table, run_fault

__all__ = [
    "FAULTS",
    "Fault",
    "Kill",
    "adoption",
    "copies",
    "devices",
    "edges",
    "failures",
    "flights",
    "kill_table",
    "lifetimes",
    "ownership",
    "run_fault",
]
