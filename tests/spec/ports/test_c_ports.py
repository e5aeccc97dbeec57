"""Shared libraries are tested by the kit like any other port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Wanted, conform_program
from syncedmem.spec.ports.process import PortError
from syncedmem.spec.ports.targets import ProgramTarget, target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.spec.ports.conformance import PortReport

LIMITS = Limits(seconds=30, first=30)


def library(path: str) -> ProgramTarget:
    """Return the target that a path names."""
    none: Any = (None, None)
    found = target(path, none)
    assert isinstance(found, ProgramTarget)
    return found


def verdict(path: str, **wanted: Any) -> PortReport:
    """Return the report on a library."""
    return conform_program(library(path), Wanted("caffe", **wanted), LIMITS)


@pytest.mark.no_cover
def test_a_port_in_c_conforms(c_port: Callable[[str], str]) -> None:
    report = verdict(c_port("port"))
    assert report.line.startswith("conforms to caffe/L4: ")
    assert report.line.endswith(", 558 of 558 transitions")


def test_a_port_with_a_device_of_its_own_conforms_at_level_1(c_port: Callable[[str], str]) -> None:
    report = verdict(c_port("own"))
    assert report.reached is not None
    assert (report.reached.level, report.violations) == ("L1", [])


@pytest.mark.no_cover
def test_a_rude_port_is_found_with_its_shortest_program(c_port: Callable[[str], str]) -> None:
    """It touches device memory from the host, and writes beside blocks and to freed memory."""
    report = verdict(c_port("rude"), level="L4")
    (violation,) = {it.requirement: it for it in report.violations}.values()
    assert violation.requirement == "P01-answers"
    assert re.search(r"SIGSEGV; its last words: 'the port touched byte \d+ of a .*block", violation.message)
    assert len(violation.statements) <= 6


def test_a_file_that_is_no_port_is_one_line(tmp_path: Path) -> None:
    """The library that Python itself is made of exports no port, and a text is no library."""
    text = tmp_path / "libtext.so"
    text.write_text("text", encoding="utf-8")
    with pytest.raises(PortError, match=r"^.*libtext\.so cannot be loaded: [^\n]+$"):
        verdict(str(text))
