"""Learning machines: what is learned, how far that can be trusted, and which differences are found."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory.copies import HostNotZeroed
from mutants.memory.handmade import HandmadeMemory
from mutants.registry import MEMORY_BUGS
from port_fixtures import LIMITS, wrong

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.model import EDITIONS, Input, InvalidArgumentError, State, SyncedHead, caffe
from syncedmem.spec import ReferenceMemory, Subject, Violation
from syncedmem.spec.learning import report as reports
from syncedmem.spec.learning.answers import Answer, Word, died
from syncedmem.spec.learning.asking import AskedMaker, AskedSubject, asked_port
from syncedmem.spec.learning.comparison import Declared, declared_machine
from syncedmem.spec.learning.drawing import drawings
from syncedmem.spec.learning.report import LearnReport, LearnWanted, learn
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import MakerTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syncedmem.spec.requirements import Level

READ, WRITE, ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
NULL = Input(caffe.SET_CPU_DATA, data=False)
CPU_ONLY = EDITIONS["cpu_only"]

importlib.import_module("mutants.memory")


def here(make: Any, *, edition: str = "cpu_only", level: Level = "L2") -> AskedSubject:
    """Return a port in this process."""
    device = None if edition == "cpu_only" else SimulatedDeviceAllocator()
    return AskedSubject(Subject("here", make, CPUDeviceAllocator(), device, "caffe", level=level, edition=edition))


class Played:
    """A port that is a machine."""

    name = "played"
    machine = EDITIONS["cpu_only"]
    sight = here(ReferenceMemory, level="L0").sight

    def __init__(self, machine: Declared) -> None:
        self._machine = machine
        self.asked = 0
        self.program: list[str] = []

    def ask(self, word: Word) -> list[Answer]:
        self.asked += 1
        state, found = next(iter(self._machine)), list[Answer]()
        for entry in word:
            answer, state = self._machine[state][entry]
            found.append(answer)
        return found

    def renew(self) -> None:
        """Be as before."""


def declared() -> Declared:
    return declared_machine(CPU_ONLY, Played.sight)


def learn_port(port: Any, wanted: LearnWanted, **options: Any) -> LearnReport:
    return reports.learn_port(port, wanted, **options)


def cells(report: LearnReport) -> set[str]:
    return {it.name for it in report.comparison.differences if not it.behind}


def every(*calls: str, where: str) -> set[str]:
    return {f"{call} in {it}" for call in calls for it in where.split()}


# --- what is learned


@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_a_memory_without_a_device_is_the_declared_machine(make: Any, level: Level) -> None:
    seen: list[tuple[str, int]] = []

    def see(now: str, calls: int) -> None:
        seen.append((now, calls))

    report = learn_port(here(make, level=level), LearnWanted(steps=200), progress=see)

    assert report.passed, report.line
    assert report.size == report.declared
    assert (report.comparison.reached, report.comparison.cells) == (27, 27)
    assert report.line.endswith(f"27 of 27 cells, if the port has at most {report.declared} states")
    assert "depth 0 of the W-method" in report.bound
    assert seen[-1][1] == report.learned.calls


@pytest.mark.deep
@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
def test_a_memory_with_a_device_is_the_declared_machine(make: Any) -> None:
    report = learn_port(here(make, edition="caffe"), LearnWanted(states=35, steps=2000))

    assert 35 == report.size
    assert "as declared: caffe/L2, 170 of 170 cells, if the port has at most 35 states" == report.line


def test_what_is_not_shown_is_not_compared() -> None:
    class Silent:
        def __init__(self, size: int, **allocators: Any) -> None:
            self._memory = ReferenceMemory(size, **allocators)
            self.cpu_data = self._memory.cpu_data
            self.mutable_cpu_data = self._memory.mutable_cpu_data
            self.gpu_data = self._memory.gpu_data
            self.mutable_gpu_data = self._memory.mutable_gpu_data
            self.set_cpu_data = self._memory.set_cpu_data
            self.set_gpu_data = self._memory.set_gpu_data
            self.async_gpu_push = self._memory.async_gpu_push
            self.close = self._memory.close

    port = here(Silent)
    report = learn_port(port, LearnWanted())

    assert "refusals, which bytes a view shows, actions" == str(port.sight)
    assert report.passed
    assert "HEAD_AT_CPU" in drawings(report)["mmd"]


# --- what is found


class HostHasJunk(HostNotZeroed):
    """What is in new memory is the system's, zeros too, so the bug may answer in two ways; here it is junk."""

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        super().zero_cpu(pointer, pinned)
        memoryview(pointer).cast("B")[:] = b"\xa5" * self.size


@pytest.mark.deep
@pytest.mark.parametrize(
    ("bug", "found", "says"),
    [
        (
            "CopiesUpOnlyOnce",
            every("gpu_data", "mutable_gpu_data", where="C:oo C:eo C:oe C:ee"),
            "learned:  actions: none; view: zeros",
        ),
        ("ReadingMovesHead", every("gpu_data", where="C:o- C:e- C:oo C:eo C:oe C:ee"), "learned:  head: HEAD_AT_GPU"),
        (
            "HostAdoptionLeaks",
            every("set_cpu_data", where="C:o- S:oo G:oo G:oe C:oo S:oe C:oe"),
            "declared: actions: free_cpu (page-locked)",
        ),
        (
            "CopyDownTakesOwnership",
            every("cpu_data", "mutable_cpu_data", where="G:eo G:ee"),
            "learned:  flags: own_cpu_data, own_gpu_data",
        ),
        (
            "HostHasJunk",
            every("cpu_data", "mutable_cpu_data", where="U:--"),
            "learned:  actions: allocate_cpu (page-locked); view: other bytes",
        ),
    ],
)
def test_a_seeded_bug_is_found_in_its_cells(bug: str, found: set[str], says: str) -> None:
    make = HostHasJunk if bug == HostHasJunk.__name__ else MEMORY_BUGS[bug].make
    report = learn_port(here(make, edition="caffe"), LearnWanted())

    assert found == cells(report)
    assert says in report.findings[0].lines
    assert report.line.startswith(f"not as declared: caffe/L2, {len(found)} of 170 cells differ: ")


@pytest.mark.deep
def test_a_port_with_fewer_states_than_declared_is_learned() -> None:
    report = learn_port(here(MEMORY_BUGS["InitiallySynced"].make, edition="caffe"), LearnWanted(steps=2000))

    assert (report.size, report.right) == (25, 25)
    assert {"cpu_data in U:--", "async_gpu_push in U:--"} < cells(report)


@pytest.mark.deep
def test_what_is_deeper_than_the_bound_is_not_found_and_the_bound_says_so() -> None:
    """The bug shows at the ninetieth copy, for which a port needs more states than the bound allows."""
    report = learn_port(here(MEMORY_BUGS["NinetiethCopyDownSkipped"].make, edition="caffe"), LearnWanted())

    assert report.passed
    assert report.line.endswith(", if the port has at most 35 states")


def hidden(depth: int) -> Declared:
    """Return the declared machine, but after so many refusals of NULL in a new memory `cpu_data` is refused."""
    steps = declared()
    first = next(iter(steps))
    answer, _ = steps[first][READ]
    wrong = {**steps[first], READ: ((("the call", "refused"), *answer[1:]), first)}
    chain = [first, *(State(f"hidden {number}") for number in range(depth))]
    rows = [*(dict(steps[first]) for _ in range(depth)), wrong]
    for here, after, row in zip(chain, [*chain[1:], chain[-1]], rows, strict=True):
        steps[here] = {**row, NULL: (row[NULL][0], after)}
    return steps


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_hidden_state_is_found_from_its_bound_on(depth: int) -> None:
    deep = learn_port(Played(hidden(depth)), LearnWanted(states=4 + depth))
    shallow = learn_port(Played(hidden(depth)), LearnWanted(states=4))

    assert cells(deep) == {"cpu_data in U:--"}
    assert deep.comparison.differences[0].word == (NULL,) * depth + (READ,)
    assert shallow.passed == (depth > 1)
    assert f"at most {max(4, shallow.size)} states" in shallow.bound


def test_random_calls_may_find_what_is_deeper() -> None:
    report = learn_port(Played(hidden(2)), LearnWanted(states=1, steps=80_000, seed=1))

    assert "cpu_data in U:--" in cells(report)


def test_what_follows_a_difference_is_told_apart() -> None:
    """A memory whose head never moves has other differences behind the first ones."""

    class Early(ReferenceMemory):
        @property
        def head(self) -> SyncedHead:
            return SyncedHead.UNINITIALIZED

    report = learn_port(here(Early), LearnWanted())

    assert every("cpu_data", "mutable_cpu_data", "set_cpu_data", where="U:--") == cells(report)
    behind = [it.behind > 0 for it in report.comparison.differences]
    assert behind == ["comes after" in it.after for it in report.findings]
    assert any(behind)
    assert "✗ set_cpu_data / adopt" in drawings(report)["svg"]  # it stays in its head
    assert "UNINITIALIZED --> UNINITIALIZED : ✗ cpu_data, ✗ mutable_cpu_data" in drawings(report)["mmd"]


def test_a_program_shows_the_difference() -> None:
    class Careless(HandmadeMemory):
        def set_cpu_data(self, data: Any) -> None:
            if data is not None:
                super().set_cpu_data(data)

    report = learn_port(here(Careless), LearnWanted())
    finding = report.findings[0]

    assert ("declared: the call: refused", "learned:  the call: done") == finding.lines
    assert "memory.set_cpu_data(None)" == finding.statements[-1]
    assert "a new memory" == finding.after
    assert "✗ set_cpu_data(NULL)" in drawings(report)["mmd"]
    document = report.as_json()
    assert document["differences"][0]["call"] == "set_cpu_data(NULL)"
    assert len(document["states"]) == report.size
    assert document["states"][0]["access"] == []


# --- what has no machine


def test_a_machine_with_too_many_states_is_given_up() -> None:
    steps = declared()
    first = next(iter(steps))
    chain = [first, *(State(f"{number}") for number in range(30)), first]
    for number, (here, after) in enumerate(pairwise(chain)):
        steps[here] = {**steps[first], NULL: ((("the call", "done"), ("head", f"{number}")), after)}

    found = learn_port(Played(steps), LearnWanted())
    assert "it has more than 16 states" in found.bound


def test_a_hang_is_drawn_and_three_are_enough() -> None:
    hang = died("the process was ended after 1 seconds without progress")
    *states, end = declared().items()
    report = learn_port(
        Played(dict([*((it, {**row, READ: (hang, end[0])}) for it, row in states), end])), LearnWanted()
    )

    assert "the port was ended 3 times without an answer" in report.bound
    assert "without progress" in drawings(report)["svg"]


def test_two_answers_without_a_difference_are_no_machine() -> None:
    class Late(Played):
        def ask(self, word: Word) -> list[Answer]:
            first, *others = super().ask(word)
            return [(*first[:-1], ("head", "odd")) if self.asked == 20 else first, *others]

    report = learn_port(Late(declared()), LearnWanted())

    assert "not learned: the same calls are answered in two ways" == report.line


# --- what is seen


def test_views_that_show_something_else() -> None:
    class Odd(HandmadeMemory):
        views: list[Any]

        def cpu_data(self) -> Any:
            shown: list[Any] = [None, 7, b"12", bytes(5), b"other", super().cpu_data()]
            self.__dict__.setdefault("views", [*range(6)])
            return shown[self.views.pop(0)]

    shown = [dict(it).get("view") for it in here(Odd, level="L1").ask((WRITE, *[READ] * 6))]

    assert shown[1:] == [
        "nothing",
        "nothing: reading it raised TypeError",
        "2 of 5 bytes",
        "zeros",
        "other bytes",
        "the newest bytes",
    ]


@pytest.mark.parametrize(("head", "said"), [(1, "HEAD_AT_CPU"), (9, "9"), ("SYNCED", "SYNCED")])
def test_a_head_may_be_a_number_or_a_name(head: object, said: str) -> None:
    class Named(HandmadeMemory):
        def __getattribute__(self, name: str) -> Any:
            return head if name == "head" else 6 if name == "size" else super().__getattribute__(name)

    (answer,) = here(Named, level="L0").ask((NULL,))
    assert (("the call", "refused"), ("head", said)) == answer[:2]
    assert "size 6" in answer[-1][1]


# --- ports in processes of their own

MAKER = """
import os, time
from pathlib import Path
from syncedmem.spec import ReferenceMemory

looks = 0

class Ends(ReferenceMemory):
    def mutable_cpu_data(self):
        os._exit(3)

class Hangs(ReferenceMemory):
    def mutable_cpu_data(self):
        time.sleep(600)

class Chance(ReferenceMemory):
    def cpu_data(self):
        odd = Path(__file__ + ".odd")
        if odd.exists():
            odd.unlink()
            raise RuntimeError("every second time, also in another process")
        odd.touch()
        return super().cpu_data()

class Keeps(ReferenceMemory):
    def cpu_data(self):
        global looks
        looks += 1
        if looks > 20:
            raise RuntimeError("too often")
        return super().cpu_data()

def dead(size, *, host, device):
    os._exit(4)

def broken(size, *, host, device):
    raise RuntimeError(size)

def few(size):
    return size

def once(size, *, host, device):
    global looks
    looks += 1
    if looks > 1:
        raise RuntimeError("only one")
    return ReferenceMemory(size, host=host, device=device)
"""


@pytest.fixture
def maker(tmp_path: Path) -> Callable[[str], MakerTarget]:
    """Return a function that makes a target of a maker of the module above."""
    (tmp_path / "makers_to_learn.py").write_text(MAKER, encoding="utf-8")

    def target(name: str) -> MakerTarget:
        return MakerTarget(f"{tmp_path / 'makers_to_learn.py'}:{name}", (CPUDeviceAllocator, SimulatedDeviceAllocator))

    return target


@pytest.mark.deep
def test_a_maker_that_ends_its_process_is_learned(maker: Callable[[str], MakerTarget]) -> None:
    """After each death there is a new process, and the call that is not made is in the program."""
    report = learn(maker("Ends"), LearnWanted(edition="cpu_only", states=3), LIMITS)

    assert cells(report) == every("mutable_cpu_data", where="U:-- C:o- C:e-")
    assert "learned:  the port: the process ended with status 3" in report.findings[0].lines
    assert report.findings[0].statements[-1] == "host_view = memory.mutable_cpu_data()"
    assert any("subject = MakerTarget(" in line for line in report.findings[0].statements)


@pytest.mark.deep
def test_a_maker_that_hangs_is_given_up(maker: Callable[[str], MakerTarget]) -> None:
    report = learn(maker("Hangs"), LearnWanted(edition="cpu_only"), replace(LIMITS, seconds=0.5, memory=1 << 33))

    assert "the port was ended 3 times without an answer" in report.bound
    assert "mutable_cpu_data in U:--" in cells(report)
    assert "learned:  the port: the process was ended after 0.5 seconds without progress" in report.findings[0].lines


@pytest.mark.deep
@pytest.mark.parametrize(("name", "why"), [("Chance", "new processes give different"), ("Keeps", "outlives a memory")])
def test_a_port_that_answers_in_two_ways(name: str, why: str, maker: Callable[[str], MakerTarget]) -> None:
    report = learn(maker(name), LearnWanted(edition="cpu_only"), LIMITS)

    assert "cpu_data is answered in two ways" == report.findings[0].name
    assert why in report.findings[0].lines[-1]
    assert not report.passed


@pytest.mark.parametrize(
    ("name", "level", "error", "message"),
    [
        ("dead", "", PortError, "the process ended with status 4"),
        ("broken", "", Violation, "making a memory of 5 bytes raised RuntimeError"),
        ("nothing", "", PortError, "has no nothing"),
        ("few", "", PortError, "cannot be called with"),
        ("once", "L9", PortError, "shows L4 at most, not L9"),
    ],
)
def test_a_maker_that_cannot_be_asked(
    name: str, level: str, error: type[Exception], message: str, maker: Callable[[str], MakerTarget]
) -> None:
    with pytest.raises(error, match=message):
        learn(maker(name), LearnWanted(level, edition="cpu_only"), LIMITS)


def test_a_maker_that_makes_no_second_memory(maker: Callable[[str], MakerTarget]) -> None:
    port = AskedMaker(maker("once"), "cpu_only", "", LIMITS)
    found = port.ask((READ, WRITE))
    port.close()

    assert [died("making a memory of 5 bytes raised RuntimeError: only one")] == found


# --- programs


@pytest.mark.deep
def test_a_program_shows_its_levels() -> None:
    port = asked_port(wrong("right"), "", "L1", LIMITS)
    word = (WRITE, Input(caffe.GPU_DATA), Input(caffe.ASYNC_GPU_PUSH), ADOPT)
    found = [*map(dict, port.ask(word))]
    requests = port.program
    port.close()

    assert ["HEAD_AT_CPU", "SYNCED", "SYNCED", "HEAD_AT_CPU"] == [it["head"] for it in found]
    assert not any("actions" in it for it in found)
    assert requests[0].startswith('{"id"')
    with pytest.raises(PortError, match="shows L3 at most, not L4"):
        asked_port(wrong("right"), "", "L4", LIMITS)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("crash", "the program was ended by SIGSEGV"),
        ("garbage", "P02-one-answer: the answer is not what the protocol wants"),
    ],
)
def test_a_program_that_dies_answers_that(way: str, says: str) -> None:
    port = asked_port(wrong(way), "", "", LIMITS)
    word = (READ, Input(caffe.GPU_DATA), Input(caffe.GPU_DATA))
    found = port.ask(word)
    requests = port.program
    port.close()

    assert died(says) == found[-1]
    assert '"op": "' in requests[-1]


# --- what is refused


@pytest.mark.parametrize("states", [0, -1, 1000])
def test_a_bound_that_cannot_be_tested_is_refused(states: int) -> None:
    with pytest.raises(InvalidArgumentError, match="--states must be between 1 and"):
        learn_port(here(ReferenceMemory), LearnWanted(states=states))
