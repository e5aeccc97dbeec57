"""Reprs of public objects: they evaluate to an equal object, or they are in angle brackets."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections import Counter
from typing import Any

import numpy as np
import pytest

import syncedmem
from syncedmem import Blob, Buffer, CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.model import EDITIONS, Input, caffe, space
from syncedmem.model.states import stepper
from syncedmem.runtime import BlobContents, DeviceReport, TrackingAllocator
from syncedmem.spec import (
    REQUIREMENTS,
    BlobCoverage,
    CallLog,
    Conformance,
    Coverage,
    Oracle,
    RecordingAllocator,
    ReferenceMemory,
    Subject,
    SuiteResult,
    Verdict,
    Violation,
)
from syncedmem.spec.fuzz import Capabilities, Finding, Replay, Report, Step, Target
from syncedmem.spec.memory.coverage import transitions_of
from syncedmem.spec.memory.policy import CAFFE

ROOMS = ("model", "runtime", "spec", "spec.fuzz")
MODULES = [syncedmem, *(importlib.import_module(f"syncedmem.{room}") for room in ROOMS)]


def public() -> dict[str, type]:
    """Return all public classes but enumerations and errors."""
    listed = {name: getattr(module, name) for module in MODULES for name in module.__all__}
    return {
        name: it for name, it in listed.items() if inspect.isclass(it) and not issubclass(it, enum.Enum | BaseException)
    }


def log() -> CallLog:
    """Return a call log that knows of a block."""
    found = CallLog()
    found.live[1] = (np.zeros(4, np.uint8), None)  # type: ignore[assignment] # the entry is not looked at
    return found


HOST, DEVICE = CPUDeviceAllocator(), SimulatedDeviceAllocator()
TRACKED = TrackingAllocator(CPUDeviceAllocator(), stacks=True)
KEPT = TRACKED.allocate(8)
STATE = space(caffe.CAFFE).start
TAKEN = Coverage(caffe.CAFFE, set(sorted(transitions_of(EDITIONS["caffe"]), key=repr)[:1]))
SUITE = SuiteResult("cells", 1, 2, 0.5, Violation("R01-lazy", "it allocated"))
FINDING = Finding("A01-distinct-pointers", "twice", (Step("allocate", (0, 16)),))
MADE: list[Any] = [
    HOST,
    DEVICE,
    TRACKED,
    *TRACKED.outstanding_allocations,
    *(make(CPUDeviceAllocator()) for make in (syncedmem.GuardingAllocator, syncedmem.PoolAllocator)),
    Buffer(8, HOST),
    Blob((2, 3), device=None),
    SyncedMemory(8, device=DEVICE),
    DEVICE.empty(8),
    DEVICE.stream(),
    BlobContents((2,), np.zeros(2), None),
    DeviceReport("cpu", True, "host memory"),
    EDITIONS["caffe"],
    Input(caffe.CPU_DATA),
    EDITIONS["caffe"].rows[0],
    caffe.HEAD_AT_CPU,
    caffe.CPU_DATA,
    caffe.OWN_CPU_DATA,
    caffe.ZERO_CPU,
    caffe.NO_GPU,
    caffe.MODE,
    space(caffe.CAFFE),
    stepper(caffe.CAFFE),
    next(iter(space(caffe.CAFFE).steps[STATE].values())),
    space(caffe.CAFFE).configuration(STATE),
    syncedmem.StatisticsAllocator(HOST).statistics,
    STATE,
    Subject("mine", SyncedMemory, HOST, DEVICE),
    Conformance("mine", (SUITE,), TAKEN, 0.5, ("R01-lazy",)),
    SUITE,
    TAKEN,
    BlobCoverage(has_device=True),
    log(),
    Oracle.new(CAFFE, 4),
    CAFFE,
    RecordingAllocator(HOST, log(), "cpu"),
    ReferenceMemory(4, host=HOST, device=None),
    *list(REQUIREMENTS.values())[:1],
    Verdict("R01-lazy", "passed", 1, ""),
    Capabilities(),
    FINDING,
    *FINDING.program,
    Replay("a:b", {}, FINDING),
    Report("a:b", "methods", Capabilities(), {}, 0, 1, 1, 5.0, protected=True, findings=[FINDING]),
    Target("methods", HOST, Capabilities(), HOST.allocate, lambda handle, _size: HOST.release(handle)),
]


def problem(it: object) -> str | None:
    """Return the repr of an object that follows the rule in neither way."""
    text, names = repr(it), {"Counter": Counter}
    for module in (*MODULES, importlib.import_module(type(it).__module__)):
        names |= vars(module)
    if text.startswith("<") and text.endswith(">"):
        return None
    try:
        again = eval(text, names)  # noqa: S307 -- the point of the test
    except Exception as error:  # noqa: BLE001 -- whatever the text is
        return f"{text}: {type(error).__name__}: {error}"
    same = again == it or repr(again) == text  # sets print in any order
    return None if isinstance(again, type(it)) and same else text


@pytest.mark.parametrize("it", MADE, ids=lambda it: type(it).__name__)
def test_a_repr_evaluates_or_is_in_angle_brackets(it: object) -> None:
    assert None is problem(it)


def test_every_public_class_that_holds_values_is_tried() -> None:
    """Data classes and named tuples show their fields if nobody says otherwise."""
    fields = ("__dataclass_fields__", "_fields")
    shown = {name for name, it in public().items() if any(hasattr(it, known) for known in fields)}
    assert set() == shown - {type(it).__name__ for it in MADE}


def test_a_repr_that_breaks_the_rule_is_found() -> None:
    @dataclasses.dataclass
    class Holder:
        held: object

    assert problem(Holder(object())) is not None
