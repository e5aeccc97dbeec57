"""The seeded bugs of ports that are programs: each breaks its requirement, and the kit names it."""

from __future__ import annotations

import io
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest
from mutants.port import PORT_BUGS, RightPort, answers, main
from wrong_port import PORT

from syncedmem.model import Input, caffe
from syncedmem.spec import Violation
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.memory import contracts
from syncedmem.spec.memory.suites import Case, Fail, run_case
from syncedmem.spec.ports.process import PortError
from syncedmem.spec.ports.targets import ProgramTarget, subject_of
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from mutants.registry import SeededBug

pytestmark = pytest.mark.deep

RIGHT = (sys.executable, "-S", str(PORT))
PUSH = Case((Input(caffe.CPU_DATA), Input(caffe.ASYNC_GPU_PUSH), Fail(Input(caffe.SET_CPU_DATA), 1)))
READ = Case((Input(caffe.MUTABLE_CPU_DATA), Input(caffe.GPU_DATA), Input(caffe.CPU_DATA)))


def command_of(name: str) -> tuple[str, ...]:
    """Return the command of a port with this bug."""
    return sys.executable, "-c", f"from mutants.port import main; main({[name, *RIGHT]!r})"


@pytest.mark.parametrize("bug", PORT_BUGS.values(), ids=PORT_BUGS)
def test_a_wrong_port_is_refused_for_the_right_reason(bug: SeededBug) -> None:
    command = command_of(bug.name)
    limits = Limits(seconds=2 if bug.name.startswith("Hangs") else 60, first=60)
    with ProgramTarget(bug.name, command).connect(limits, "") as port:
        subject = subject_of(port, bug.name, "safe", "L3")
        found = list[Violation]()
        for case in (READ, PUSH):
            try:
                run_case(subject, case)
            except Violation as violation:
                found.append(violation)
        if bug.requirement == "P04-dropped-freed":
            with pytest.raises(Violation) as dropped:
                list(contracts.dropped(subject))
            found.append(dropped.value)

    assert {bug.requirement} == {it.requirement for it in found}
    assert all(it.statements for it in found)


def test_every_requirement_of_ports_has_one() -> None:
    assert {bug.requirement for bug in PORT_BUGS.values()} == set(requirements_of("port"))
    assert all(bug.text and issubclass(bug.make, RightPort) for bug in PORT_BUGS.values())


def said(name: str, op: str, **answer: object) -> str:
    """What a wrong port says in place of an answer."""
    bug: RightPort = PORT_BUGS[name].make()
    return bug.said(op, answer)


class Ended(Exception):
    """The process would have ended, or slept."""


def test_what_each_bug_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise Ended

    monkeypatch.setattr(os, "abort", end)
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(time, "sleep", end)
    copied = {"actions": ["copy_to_gpu"]}
    for name, op in (("AbortsInACopy", "gpu_data"), ("ExitsOnRelease", "release"), ("HangsInAPush", "async_gpu_push")):
        with pytest.raises(Ended):
            said(name, op, **copied)
        assert said(name, "state", id=1) == '{"id": 1}\n'
    assert said("PrintsWhatItCopies", "gpu_data", **copied).startswith("copied\n{")
    assert said("PrintsWhatItCopies", "state").startswith("{")
    assert len(said("AnswersTwice", "cpu_data").splitlines()) == 2
    assert len(said("AnswersTwice", "gpu_data").splitlines()) == 1
    assert said("ForgetsTheHead", "state", head="SYNCED") == "{}\n"
    assert said("DropsWithoutFreeing", "drop", actions=["free_cpu"]) == '{"actions": []}\n'
    failed = {"action": "zero_cpu", "failed": True}
    assert '"failed": false' in said("SaysThatItSucceeded", "cpu_data", actions=["allocate_cpu", failed])
    assert said("SaysThatItSucceeded", "state") == "{}\n"


def test_requests_are_passed_on_to_a_right_port(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = '{"id": 1, "op": "hello", "version": 1, "level": "L4"}\n'
    assert '"level": "L3"' in next(iter(answers(RightPort(), RIGHT, [line])))
    monkeypatch.setattr(sys, "stdin", io.StringIO(line))
    main(["ForgetsTheHead", *RIGHT])
    assert '"level": "L3"' in capsys.readouterr().out


def test_a_bug_must_be_known() -> None:
    with pytest.raises(PortError, match="does not say hello"):
        ProgramTarget("none", command_of("NoBug")).connect(Limits(seconds=60, first=60), "")
