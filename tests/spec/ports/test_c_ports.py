"""Shared libraries are tested by the kit like any other port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.spec.engine.call_log import recorded
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.engine.violation import Violation
from syncedmem.spec.memory.contracts import dropped
from syncedmem.spec.ports.conformance import Wanted, conform_program
from syncedmem.spec.ports.memory import Refused
from syncedmem.spec.ports.process import PortError
from syncedmem.spec.ports.targets import ProgramTarget, subject_of, target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.spec.ports.conformance import PortReport
    from syncedmem.spec.ports.memory import RemoteMemory
    from syncedmem.spec.requirements import Profile

pytestmark = pytest.mark.deep

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


def test_a_port_in_c_conforms(c_port: Callable[[str], str]) -> None:
    report = verdict(c_port("port"))
    assert report.line.startswith("conforms to caffe/L4: ")
    assert report.line.endswith(", 558 of 558 transitions")


def test_a_port_with_a_device_of_its_own_conforms_at_level_1(c_port: Callable[[str], str]) -> None:
    report = verdict(c_port("own"))
    assert report.reached is not None
    assert (report.reached.level, report.violations) == ("L1", [])


def test_its_own_block_is_named_and_a_dropped_memory_frees_it(c_port: Callable[[str], str]) -> None:
    with library(c_port("port")).connect(LIMITS, "") as port:
        subject = subject_of(port, "C", "safe", "L4")
        log, host, device = recorded(subject)
        make: Any = subject.make
        memory: RemoteMemory = make(5, host=host, device=device)
        with pytest.raises(Refused, match="there is nothing on the side cpu"):
            memory.own("cpu")
        memory.cpu_data()

        assert {"own_buffer", "drop", "streams"} == port.offers
        assert 5 == memory.own("cpu").size
        assert 1 == len(log.live)
        memory.drop()
        assert not log.live


@pytest.mark.parametrize("profile", ["caffe", "safe"])
def test_a_port_frees_what_a_dropped_memory_owns(profile: Profile, c_port: Callable[[str], str]) -> None:
    """In the profile safe also with a push in flight, which this port does not wait for."""
    with library(c_port("port")).connect(LIMITS, "") as port:
        subject = subject_of(port, "C", profile, "L4")
        if profile == "caffe":
            assert len(list(dropped(subject))) > 17
        else:
            with pytest.raises(Violation, match="a push still used it"):
                list(dropped(subject))


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
