"""Reprs that users meet evaluate to an equal object, or are in angle brackets and say what is there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from syncedmem import CPUDeviceAllocator, TrackingAllocator
from syncedmem.model import caffe, space
from syncedmem.runtime import BlobContents
from syncedmem.spec import Verdict
from syncedmem.spec.fuzz import Finding, HeapStep

TRACKED = TrackingAllocator(CPUDeviceAllocator())
KEPT = TRACKED.allocate(8)
NAMES = {"Finding": Finding, "HeapStep": HeapStep, "Verdict": Verdict}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (TRACKED.outstanding_allocations[0], r"<Allocation 1: 8 bytes at 0x\w+>"),
        (BlobContents((2,), np.zeros(2), None), r"<BlobContents \(2,\), float64, no diff>"),
        (space(caffe.CAFFE), "<Space of caffe: 62 states, 558 transitions>"),
    ],
)
def test_what_is_there_is_in_angle_brackets(value: object, said: str) -> None:
    assert re.fullmatch(said, repr(value))


@pytest.mark.parametrize(
    "value",
    [Verdict("R01-lazy", "passed", 1, ""), Finding("A06-out-of-memory", "null", (HeapStep("allocate", (0, 16)),))],
)
def test_what_holds_values_evaluates_to_itself(value: object) -> None:
    assert value == eval(repr(value), NAMES)  # noqa: S307 -- the point of the test
