"""Ports that die, hang or answer something else: each is a finding, with the shortest program that shows it."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from mutants.port import PORT_BUGS
from port_fixtures import LIMITS, wrong

from syncedmem.model import Input, caffe
from syncedmem.spec import Violation
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.conformance import suites_of
from syncedmem.spec.engine.shrinking import shortest
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.kit.trial import bench_of, plainer, run_case
from syncedmem.spec.memory.claims import not_judged
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import ProgramTarget, subject_of
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutants.registry import SeededBug

    from syncedmem.spec import Subject
    from syncedmem.spec.ports.process import Port
    from syncedmem.spec.record.steps import Case
    from syncedmem.spec.requirements import Level

    Refuse = Callable[[str, str, str], None]

pytestmark = pytest.mark.deep

READS = (Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.GPU_DATA), Input(caffe.CPU_DATA))


def case_of(*entries: Input, safe: bool = True, level: Level = "L3") -> Case:
    """A case of one memory."""
    return Writer(caffe.CAFFE, safe=safe, level=level).add(*entries).done()


def take(subject: Subject, *entries: Input) -> None:
    """Run a case of one memory."""
    run_case(bench_of(subject), case_of(*entries, safe=subject.profile == "safe", level=subject.level))


def found(way: str, *entries: Input, level: Level = "L3", limits: Limits = LIMITS) -> Violation:
    """What is found in a port that is wrong in this way."""
    with wrong(way).connect(limits, "") as port:
        subject = subject_of(port, way, "safe", level)
        return first(subject, case_of(*(entries or READS), level=level))


def first(subject: Subject, case: Case) -> Violation:
    """The violation of a case, with its shortest program."""
    run = partial(run_case, bench_of(subject))
    with pytest.raises(Violation) as caught:
        run(case)
    return shortest(case, caught.value, run, simpler=plainer, program=subject.program)


ANSWERS = {
    "crash": ("P01-answers", "gpu_data: the program was ended by SIGSEGV; its last words: 'segment missing'"),
    "exit": ("P01-answers", "gpu_data: the program ended with status 7"),
    "endless": ("P01-answers", "bytes of one answer"),
    "brackets": ("P02-one-answer", "this is broken JSON"),
    "debris": ("P02-one-answer", "this is broken JSON"),
    "number": ("P02-one-answer", "gpu_data was answered with '5': it is not a JSON object"),
    "id": ("P02-one-answer", "the answer has id 99, expected"),
    "text id": ("P02-one-answer", "the answer has id 'x', expected"),
    "head": ("P02-one-answer", "'head': 'AT_CPU' is not one of UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED"),
    "no actions": ("P02-one-answer", "it has no 'actions'"),
    "action": ("P02-one-answer", "'fly' is not one of allocate_cpu"),
    "bytes": ("P02-one-answer", "'cpu': 'XY' is not pairs of lower-case hexadecimal digits"),
    "view": ("R10-same-bytes", "gpu_data returned nothing"),
    "wrong view": ("R10-same-bytes", "gpu_data shows 0102030405, 5 bytes, expected 00"),
    "free": ("R28-freed-once", "the port was asked to free memory that is not allocated"),
    "needless copy": ("R09-no-needless-copy", "expected"),
}


@pytest.mark.parametrize("way", ANSWERS)
def test_what_a_port_does_wrong_is_found_with_the_shortest_program(way: str) -> None:
    violation = found(way)

    requirement, message = ANSWERS[way]
    assert requirement == violation.requirement
    assert message in violation.message
    operations = [json.loads(line)["op"] for line in violation.statements]
    assert ["hello", "new", "gpu_data"] == operations[:3]
    assert {"state", "release", "gpu_data", "cpu_data"} >= set(operations[3:])
    assert len(operations) <= 4


def test_a_port_that_hangs_is_ended() -> None:
    violation = found("hang", limits=Limits(seconds=1, first=60))

    assert "P01-answers" == violation.requirement
    assert "gpu_data: the program was ended after 1 seconds without progress" == violation.message


WRITE, ADOPT, RELEASE = Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA), Input(caffe.RELEASE)
PUSH = Input(caffe.ASYNC_GPU_PUSH)


@pytest.mark.parametrize("bug", PORT_BUGS.values(), ids=PORT_BUGS)
def test_a_seeded_bug_breaks_its_requirement_and_no_other(bug: SeededBug, refuse: Refuse) -> None:
    limits = replace(LIMITS, seconds=2 if bug.name.startswith("Hangs") else 60)
    violations: list[Violation] = []
    failing = Writer(caffe.CAFFE, safe=True).add(Input(caffe.GPU_DATA), fail=1).done()
    with wrong(bug.make.way).connect(limits, "") as port:
        subject = subject_of(port, bug.name, "safe", "L3")
        for run in (
            lambda: take(subject, *READS),
            lambda: take(subject, Input(caffe.CPU_DATA), PUSH, RELEASE),
            lambda: run_case(bench_of(subject), failing),
            lambda: [run_case(bench_of(subject), case) for case in suites_of(subject)["dropped"]()],
        ):
            try:
                run()
            except Violation as violation:
                violations.append(violation)
    refuse("ports", bug.name, violations[0].requirement)

    assert {bug.requirement} == {violation.requirement for violation in violations}
    assert all(violation.statements for violation in violations)


def test_every_requirement_of_ports_has_a_seeded_bug() -> None:
    assert {bug.requirement for bug in PORT_BUGS.values()} == set(requirements_of("port"))


FOUND: list[tuple[str, str, tuple[Input, ...], Level]] = [
    ("frees buffer", "R18-external-not-freed", (ADOPT, ADOPT), "L3"),
    ("frees other buffer", "R18-external-not-freed", (ADOPT, ADOPT), "L3"),
    ("frees adopted", "R28-freed-once", (ADOPT, ADOPT), "L3"),
    ("frees again", "R18-external-not-freed", (ADOPT, RELEASE), "L3"),
    ("frees again", "R28-freed-once", (WRITE, RELEASE), "L3"),
    ("frees block", "R28-freed-once", (WRITE, RELEASE), "L3"),
    ("frees on device", "R28-freed-once", (WRITE, RELEASE), "L3"),
    ("pageable", "R25-pinned-frozen", (WRITE, RELEASE), "L3"),
    ("leaks", "R27-release-frees-owned", (WRITE, RELEASE), "L3"),
    ("fork", "P02-one-answer", (*READS, *READS), "L3"),
    ("null", "R20-null-refused", (Input(caffe.SET_CPU_DATA, data=False),), "L3"),
    # What a level does not show is a wrong head or wrong bytes.
    ("push", "R11-head", (WRITE, PUSH), "L0"),
    ("push", "R10-same-bytes", (WRITE, PUSH), "L1"),
    ("push", "R21-push", (WRITE, PUSH), "L2"),
    # A wait counts only for the pushes of its stream.
    ("other stream", "R58-push-on-its-stream", (WRITE, PUSH), "L4"),
    ("waits elsewhere", "R42-in-flight-not-freed", (WRITE, PUSH, RELEASE), "L4"),
    ("rude", "R42-in-flight-not-freed", (WRITE, PUSH, RELEASE), "L4"),
]


@pytest.mark.parametrize(("way", "requirement", "entries", "level"), FOUND)
def test_wrong_frees_pushes_and_waits_are_found(
    way: str, requirement: str, entries: tuple[Input, ...], level: Level
) -> None:
    assert requirement == found(way, *entries, level=level).requirement


def test_a_port_that_does_not_say_its_streams_is_not_judged_by_them() -> None:
    why: list[str | None] = []
    for way in ("defers", "streams"):
        with wrong(way).connect(LIMITS, "") as port:
            why.append(not_judged(subject_of(port, way, "caffe", "L4")).get("R58-push-on-its-stream"))

    assert ["the port does not say on which stream an action is", None] == why


@pytest.mark.parametrize(
    ("way", "level", "entries"),
    [
        ("no flag", "L3", (*READS, ADOPT)),
        ("adopts", "L3", (*READS, ADOPT)),
        ("streams", "L4", (WRITE, PUSH, WRITE, PUSH, RELEASE)),
    ],
)
def test_a_port_need_not_show_every_flag_and_may_show_adoptions_and_streams(
    way: str, level: Level, entries: tuple[Input, ...]
) -> None:
    with wrong(way).connect(LIMITS, "") as port:
        take(subject_of(port, way, "safe", level), *entries)


def test_what_only_an_old_process_does_is_shown_by_repeating_the_steps() -> None:
    with wrong("old").connect(LIMITS, "") as port:
        subject = subject_of(port, "old", "caffe", "L3")
        for _ in range(12):
            take(subject, Input(caffe.GPU_DATA))
        violation = first(subject, case_of(Input(caffe.GPU_DATA), safe=False))

    assert "(in run 13 of the same steps, in one process)" in violation.message
    assert 13 == sum('"gpu_data"' in line for line in violation.statements)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("version", "speaks version 2 of the protocol, not 1"),
        ("refuses", "no device was found"),
        ("level", "level does not say hello: hello was answered with"),
        ("dies", "dies does not say hello: hello: the program was ended by SIGABRT"),
        ("early hang", "does not say hello: hello: the program was ended after 1 seconds without progress"),
    ],
)
def test_a_program_must_say_hello(way: str, message: str) -> None:
    with pytest.raises(PortError) as caught:
        wrong(way).connect(Limits(seconds=1, first=1 if way == "early hang" else 60), "")

    assert message in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_what_a_port_prints_fills_no_disk() -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    program = "import os; os.write(2, b'x' * (1 << 24) + b'\\nthe last word\\n'); os.abort()"
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(PortError, match=r"SIGABRT; its last words: 'x+\.\.\.' \.\.\. 'the last word'"):
            ProgramTarget("noisy", (sys.executable, "-c", program)).connect(LIMITS, "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_program_must_be_there_and_of_the_edition() -> None:
    for program, edition, said in (
        (ProgramTarget("x", ("no-such-program-at-all",)), "", "No such file"),
        (wrong("right"), "early", "is of the edition caffe, not early"),
    ):
        with pytest.raises(PortError, match=said):
            program.connect(LIMITS, edition)


@pytest.fixture
def right() -> Iterator[tuple[Port, Subject]]:
    with wrong("right").connect(LIMITS, "") as port:
        yield port, subject_of(port, "right", "caffe", "L3")


def test_the_program_of_a_finding_begins_with_its_case(right: tuple[Port, Subject]) -> None:
    port, subject = right
    for _ in range(2):
        take(subject, *READS)

    assert ["hello", "new"] == [json.loads(line)["op"] for line in port.requests()][:2]
    assert 2 * (len(port.requests()) - 1) == len(port.requests(whole=True)) - 1
