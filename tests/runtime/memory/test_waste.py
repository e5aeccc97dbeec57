"""Programs with planted waste are found, at their line; those that do the same without it are let alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import waste
from subjects import devices
from waste import PAGEABLE, WASTE, Waste, marked

from syncedmem import copies, no_copies
from syncedmem.model import CopyRefusedError
from syncedmem.model.interface import DeviceType

HERE = Path(waste.__file__)


@pytest.fixture(params=devices(), ids=lambda place: str(place.device_type.name))
def place(request: pytest.FixtureRequest) -> Any:
    """Each device of this machine."""
    return request.param


@pytest.mark.parametrize("planted", WASTE.values(), ids=WASTE)
def test_a_copy_too_many_is_refused_with_its_line(place: Any, planted: Waste) -> None:
    """The error has two lines: that of the call, and that of the copy before, if copies are allowed."""
    with no_copies(at_most=planted.needed) as log, pytest.raises(CopyRefusedError) as caught:
        planted.wasteful(place)

    error = caught.value
    lines = [(Path(copy.line.file), copy.line.number) for copy in (error.copy, error.last) if copy is not None]
    assert (HERE, marked(planted.wasteful)) in lines
    assert all(f"{file}:{number}" in str(error) for file, number in lines)
    assert (planted.needed, planted.needed + 1) == (log.up + log.down, error.count)


@pytest.mark.parametrize("planted", WASTE.values(), ids=WASTE)
def test_what_copies_only_what_it_needs_is_let_alone(place: Any, planted: Waste) -> None:
    with no_copies(at_most=planted.needed) as log:
        planted.right(place)

    assert planted.needed == log.up + log.down


@pytest.mark.parametrize("planted", [*WASTE.values(), PAGEABLE], ids=[*WASTE, "pageable"])
def test_both_programs_compute_the_same(place: Any, planted: Waste) -> None:
    """So the pair differs in the waste alone."""
    assert planted.right(place) == pytest.approx(planted.wasteful(place), rel=1e-5)


def test_what_is_overwritten_unread_came_down_to_be_written(place: Any) -> None:
    planted = WASTE["overwritten unread"]
    found: list[set[int]] = []
    for program in planted[:2]:
        with copies() as log:
            program(place)
        found.append({entry.line.number for entry in log.entries if entry.to_write})

    assert [{marked(planted.wasteful)}, set()] == found


def test_pageable_memory_is_found_at_its_line(place: Any) -> None:
    matters = place.device_type is not DeviceType.OPENCL
    found: list[list[int]] = []
    for program in PAGEABLE[:2]:
        with copies() as log:
            program(place)
        found.append([entry.line.number for entry in log.entries if entry.pageable])

    assert [[marked(PAGEABLE.wasteful)] * PAGEABLE.needed * matters, []] == found
