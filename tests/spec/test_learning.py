"""Learning machines: what is learned, how far that can be trusted, and which differences are found."""

from __future__ import annotations

import importlib
import signal
import sys
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory.copies import HostNotZeroed
from mutants.memory.handmade import HandmadeMemory
from mutants.registry import MEMORY_BUGS

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.model import Input, InvalidArgumentError, MissingPackageError, SyncedHead, caffe
from syncedmem.spec import ReferenceMemory, Subject, Violation
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.learning import learner
from syncedmem.spec.learning.answers import NOT_ASKED, Answer, Sight, WatchedMemory, Word
from syncedmem.spec.learning.asking import AskedMaker, AskedProgram, serve
from syncedmem.spec.learning.declared import alphabet, declared_machine
from syncedmem.spec.learning.drawing import drawings
from syncedmem.spec.learning.mealy import Mealy
from syncedmem.spec.learning.report import LearnReport, LearnWanted, learn, learn_port
from syncedmem.spec.ports.process import PortError
from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.requirements import Level

WRONG = Path(__file__).parents[1] / "support" / "wrong_port.py"
LIMITS = Limits(seconds=60, first=60)
READ, WRITE, ADOPT = Input(caffe.CPU_DATA), Input(caffe.MUTABLE_CPU_DATA), Input(caffe.SET_CPU_DATA)
NULL, RELEASE = Input(caffe.SET_CPU_DATA, data=False), Input(caffe.RELEASE)

importlib.import_module("mutants.memory")


class Here:
    """A port in this process."""

    def __init__(self, make: Any, *, edition: str = "cpu_only", level: Level = "L2") -> None:
        device = None if edition == "cpu_only" else SimulatedDeviceAllocator()
        self._subject = Subject("here", make, CPUDeviceAllocator(), device, "caffe", level=level, edition=edition)
        self.name = "here"
        self.edition = edition
        self.sight: Sight = WatchedMemory(self._subject).sight()
        self.renewed = 0

    def _watched(self, word: Word) -> tuple[WatchedMemory, list[Answer]]:
        memory = WatchedMemory(self._subject)
        return memory, [memory.step(entry, self.sight) for entry in word]

    def ask(self, word: Word) -> list[Answer]:
        memory, answers = self._watched(word)
        memory.finish()
        return answers

    def renew(self) -> None:
        self.renewed += 1

    def program(self, word: Word) -> tuple[str, ...]:
        return self._watched(word)[0].program()

    def close(self) -> None:
        pass


class Played:
    """A port that is a machine."""

    name = "played"
    edition = "cpu_only"
    sight = Sight("L0", head=True, flags=Here(ReferenceMemory).sight.flags)

    def __init__(self, machine: Mealy) -> None:
        self._machine = machine

    def ask(self, word: Word) -> list[Answer]:
        state, answers = 0, list[Answer]()
        for entry in word:
            answer, state = self._machine.steps[state][entry]
            answers.append(answer)
        return answers

    def renew(self) -> None:
        raise AssertionError

    def program(self, word: Word) -> tuple[str, ...]:
        return tuple(map(str, word))

    def close(self) -> None:
        pass


def cells(report: LearnReport) -> set[str]:
    return {it.name for it in report.comparison.first}


# --- what is learned


@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_a_memory_without_a_device_is_the_declared_machine(make: Any, level: Level) -> None:
    seen: list[tuple[str, int]] = []
    report = learn_port(
        Here(make, level=level), LearnWanted(steps=200), progress=lambda now, calls: seen.append((now, calls))
    )

    assert report.passed, report.line
    assert report.learned.machine.size == report.declared == declared_machine("cpu_only", report.sight).machine.distinct
    assert (report.comparison.reached, report.comparison.cells) == (27, 27)
    assert report.line.endswith(f"27 of 27 cells, if the port has at most {report.declared} states")
    assert "depth 0 of the W-method" in report.bound
    assert seen[-1][1] == report.learned.calls


@pytest.mark.deep
@pytest.mark.parametrize("make", [ReferenceMemory, SyncedMemory])
def test_a_memory_with_a_device_is_the_declared_machine(make: Any) -> None:
    report = learn_port(Here(make, edition="caffe"), LearnWanted(states=35, steps=2000))

    assert report.passed, report.line
    assert 35 == report.learned.machine.size
    assert "as declared: caffe/L2, 170 of 170 cells, if the port has at most 35 states" == report.line


# --- what is found


class HostHasJunk(HostNotZeroed):
    """What is in new memory is the system's, zeros too, so the bug may answer in two ways; here it is junk."""

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        super().zero_cpu(pointer, pinned)
        memoryview(pointer).cast("B")[:] = b"\xa5" * self.size


def every(*calls: str, where: str) -> set[str]:
    return {f"{call} in {it}" for call in calls for it in where.split()}


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
    report = learn_port(Here(make, edition="caffe"), LearnWanted(states=35))

    assert found == cells(report)
    assert says in report.findings[0].lines
    assert report.line.startswith(f"not as declared: caffe/L2, {len(found)} of 170 cells differ: ")


@pytest.mark.deep
def test_what_is_deeper_than_the_bound_is_not_found_and_the_bound_says_so() -> None:
    """The bug shows at the ninetieth copy, for which a port needs more states than the bound allows."""
    report = learn_port(Here(MEMORY_BUGS["NinetiethCopyDownSkipped"].make, edition="caffe"), LearnWanted(states=35))

    assert report.passed
    assert report.line.endswith(", if the port has at most 35 states")


def hidden(depth: int) -> Mealy:
    """Return the declared machine, but after so many refusals of NULL in a new memory `cpu_data` is refused."""
    declared = declared_machine("cpu_only", Played.sight).machine
    steps = list(declared.steps)
    wrong = dict(steps[0])
    wrong[READ] = wrong[READ][0]._replace(refused=True), 0
    steps += [dict(steps[0]) for _ in range(depth - 1)] + [wrong]
    chain = [0, *range(declared.size, len(steps))]
    for here, after in zip(chain, [*chain[1:], chain[-1]], strict=True):
        steps[here] = {**steps[here], NULL: (steps[here][NULL][0], after)}
    return Mealy(tuple(steps))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_hidden_state_is_found_from_its_bound_on(depth: int) -> None:
    port = Played(hidden(depth))
    distinct = declared_machine("cpu_only", port.sight).machine.distinct
    deep = learn_port(port, LearnWanted(states=distinct + depth))
    shallow = learn_port(port, LearnWanted(states=distinct))

    assert cells(deep) == {"cpu_data in U:--"}
    assert deep.comparison.differences[0].word == (NULL,) * depth + (READ,)
    assert shallow.passed == (depth > 1)
    assert f"at most {max(distinct, shallow.learned.bound)} states" in shallow.bound


def test_random_calls_may_find_what_is_deeper() -> None:
    report = learn_port(Played(hidden(2)), LearnWanted(states=1, steps=80_000, seed=1))

    assert "cpu_data in U:--" in cells(report)


def test_what_follows_a_difference_is_told_apart() -> None:
    """A memory whose head is wrong from the first call on has other differences behind that one."""

    class Early(HandmadeMemory):
        def mutable_cpu_data(self) -> Any:
            view = super().mutable_cpu_data()
            self.head = SyncedHead.UNINITIALIZED
            return view

    report = learn_port(Here(Early), LearnWanted())

    assert "mutable_cpu_data in U:--" in cells(report)
    assert any(it.behind for it in report.comparison.differences) == any(
        "comes after" in it.after for it in report.findings
    )
    pictures = drawings(report)
    assert "mutable_cpu_data in UNINITIALIZED" in pictures["svg"]


def test_a_program_shows_the_difference() -> None:
    class Careless(HandmadeMemory):
        def set_cpu_data(self, data: Any) -> None:
            if data is not None:
                super().set_cpu_data(data)

    report = learn_port(Here(Careless), LearnWanted())
    finding = report.findings[0]

    assert ("declared: the call: refused", "learned:  the call: done") == finding.lines
    assert "memory.set_cpu_data(None)" == finding.statements[-1]
    assert "a new memory" == finding.after
    document = report.as_json()
    assert document["differences"][0]["call"] == "set_cpu_data(NULL)"
    assert len(document["states"]) == report.learned.machine.size
    assert document["states"][0]["access"] == []


@pytest.mark.deep
def test_a_machine_that_grows_is_given_up_and_what_was_asked_is_compared() -> None:
    class Counts(HandmadeMemory):
        looks = 0

        def cpu_data(self) -> Any:
            self.looks += 1
            return bytes(super().cpu_data()) + bytes(self.looks)

    report = learn_port(Here(Counts), LearnWanted())

    assert "it gives more than 200 different answers" in report.bound
    assert not report.passed
    assert "cpu_data in U:--" in cells(report)
    assert "svg" in drawings(report)
    assert report.as_json()["states"] == []


def test_a_machine_with_too_many_states_is_given_up() -> None:
    steps = [dict(row) for row in declared_machine("cpu_only", Played.sight).machine.steps]
    size = len(steps)
    steps += [{**steps[0], NULL: (Answer(head=f"{k}"), size + k + 1)} for k in range(30)] + [steps[0]]
    steps[0] = {**steps[0], NULL: (steps[0][NULL][0], size)}

    found = learn_port(Played(Mealy(tuple(steps))), LearnWanted(states=5))  # with 4, as declared, it is not seen
    assert "it has more than 16 states" in found.bound


def test_a_hang_is_drawn_and_three_are_enough() -> None:
    steps = [dict(row) for row in declared_machine("cpu_only", Played.sight).machine.steps]
    hang = Answer(died="the process was ended after 1 seconds without progress")
    steps = [{**row, READ: (hang, len(steps) - 1)} for row in steps[:-1]] + steps[-1:]
    report = learn_port(Played(Mealy(tuple(steps))), LearnWanted())

    assert "the port was ended 3 times without an answer" in report.bound
    assert hang.died in drawings(report)["svg"]


def test_two_answers_without_a_difference_are_no_machine() -> None:
    class Late(Played):
        asked = 0

        def ask(self, word: Word) -> list[Answer]:
            self.asked += 1
            first, *others = super().ask(word)
            return [first._replace(head="odd") if self.asked == 20 else first, *others]

        def renew(self) -> None:
            """Be as before."""

    report = learn_port(Late(declared_machine("cpu_only", Played.sight).machine), LearnWanted())

    assert "not learned: the same calls are answered in two ways" == report.line


class OneState:
    """A state of AALpy's."""

    output_fun: dict[Input, Answer]
    transitions: dict[Input, OneState]


def test_what_was_asked_is_looked_at_first() -> None:
    port = Played(declared_machine("cpu_only", Played.sight).machine)
    entries = alphabet("cpu_only")
    teacher = learner.Teacher(port, entries, 1, 9, lambda _: iter(()), None)
    teacher.query((READ,))
    state = OneState()
    state.output_fun = dict.fromkeys(entries, NOT_ASKED)
    state.transitions = dict.fromkeys(entries, state)

    assert (READ,) == teacher.find_cex(SimpleNamespace(initial_state=state))


# --- what is seen


def test_views_that_show_something_else() -> None:
    class Odd(HandmadeMemory):
        views: list[Any]

        def cpu_data(self) -> Any:
            shown: list[Any] = [None, 7, b"12", bytes(5), b"other", super().cpu_data()]
            self.__dict__.setdefault("views", [*range(6)])
            return shown[self.views.pop(0)]

        @property
        def size_shown(self) -> int:
            return 5

    port = Here(ReferenceMemory)
    subject = Subject("odd", Odd, CPUDeviceAllocator(), None, "caffe", level="L1")
    memory = WatchedMemory(subject)
    memory.step(WRITE, port.sight)
    shown = [memory.step(READ, port.sight).shows for _ in range(6)]
    memory.step(WRITE, port.sight)

    assert shown == [
        "nothing",
        "nothing: reading it raised TypeError",
        "2 of 5 bytes",
        "zeros",
        "other bytes",
        "the newest bytes",
    ]


def test_a_port_that_ends_while_its_view_is_read() -> None:
    class Ended:
        def get(self) -> bytes:
            raise Violation("P01-answers", "the program was ended")

    class Ending(HandmadeMemory):
        def gpu_data(self) -> Any:
            super().gpu_data()
            return Ended()

    device = SimulatedDeviceAllocator()
    memory = WatchedMemory(Subject("ending", Ending, CPUDeviceAllocator(), device, "caffe", level="L1"))
    with pytest.raises(Violation, match="the program was ended"):
        memory.step(Input(caffe.GPU_DATA), memory.sight())


@pytest.mark.parametrize(("head", "said"), [(2, "HEAD_AT_GPU"), (9, "9"), ("SYNCED", "SYNCED")])
def test_a_head_may_be_a_number_or_a_name(head: object, said: str) -> None:
    class Named(HandmadeMemory):
        def __getattribute__(self, name: str) -> Any:
            return head if name == "head" else 6 if name == "size" else super().__getattribute__(name)

    subject = Subject("named", Named, CPUDeviceAllocator(), None, "caffe", level="L0")
    memory = WatchedMemory(subject)
    assert Answer(refused=True, head=said, flags=("size 6",)) == memory.step(NULL, memory.sight())


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

    port = Here(Silent)
    report = learn_port(port, LearnWanted())

    assert "refusals, which bytes a view shows, actions" == str(port.sight)
    assert report.passed
    assert "HEAD_AT_CPU" in drawings(report)["mmd"]


def test_no_memory_no_machine() -> None:
    def maker(size: int, *, host: Any, device: Any) -> Any:
        raise RuntimeError(size, host, device)

    with pytest.raises(Violation, match="making a memory of 5 bytes raised RuntimeError"):
        Here(maker)


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
    assert report.findings[0].statements[-1] == "memory.mutable_cpu_data()"
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

    assert report.learned.inconsistent is not None
    assert "cpu_data is answered in two ways" == report.findings[0].name
    assert why in report.findings[0].lines[-1]
    assert not report.passed


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("dead", PortError, "the process ended with status 4"),
        ("broken", Violation, "making a memory of 5 bytes raised RuntimeError"),
        ("nothing", PortError, "has no nothing"),
    ],
)
def test_a_maker_that_cannot_be_asked(
    name: str, error: type[Exception], message: str, maker: Callable[[str], MakerTarget]
) -> None:
    with pytest.raises(error, match=message):
        learn(maker(name), LearnWanted(edition="cpu_only"), LIMITS)


def test_a_maker_that_makes_no_second_memory(maker: Callable[[str], MakerTarget]) -> None:
    port = AskedMaker(maker("once"), "cpu_only", "", LIMITS)
    (answer,) = port.ask((READ, WRITE))
    port.close()

    assert "making a memory of 5 bytes raised RuntimeError: only one" == answer.died


def test_words_are_answered_in_this_process_too(
    maker: Callable[[str], MakerTarget], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ignored(*_: object) -> None:
        """Leave the signals of pytest alone."""

    monkeypatch.setattr(signal, "signal", ignored)
    here, there = Pipe()
    for request in (((READ, RELEASE), None, False), ((ADOPT,), WRITE, True)):
        here.send(request)
    target = MakerTarget("syncedmem.spec:ReferenceMemory", (CPUDeviceAllocator, SimulatedDeviceAllocator))
    close = there.recv

    def until_the_end() -> Any:
        if not there.poll(0):
            raise EOFError
        return close()

    monkeypatch.setattr(there, "recv", until_the_end, raising=False)
    serve(there, target, "", "L2")
    name, edition, sight = here.recv()
    answers = [here.recv() for _ in range(3)]

    assert ("syncedmem.spec:ReferenceMemory", "caffe") == (name, edition)
    assert sight.actions
    assert ["HEAD_AT_CPU", "", "HEAD_AT_CPU"] == [it.head for it in answers]
    assert "memory.mutable_cpu_data()" == here.recv()[-1]
    serve(there, maker("broken"), "", "L2")
    assert isinstance(here.recv(), Violation)
    here.send(((READ,), None, False))
    serve(there, maker("once"), "", "L2")
    assert "syncedmem" not in here.recv()[1]
    assert isinstance(here.recv(), Violation)


# --- programs


def program(way: str) -> ProgramTarget:
    return ProgramTarget(way, (sys.executable, "-S", str(WRONG), way))


@pytest.mark.deep
def test_a_program_shows_its_levels() -> None:
    port = AskedProgram(program("right"), "", "L1", LIMITS)
    word = (WRITE, Input(caffe.GPU_DATA), Input(caffe.ASYNC_GPU_PUSH), ADOPT)
    answers = port.ask(word)
    requests = port.program(word)
    port.renew()
    port.close()

    assert ["HEAD_AT_CPU", "SYNCED", "SYNCED", "HEAD_AT_CPU"] == [it.head for it in answers]
    assert all(not it.did for it in answers)
    assert requests[0].startswith('{"id"')
    with pytest.raises(PortError, match="shows L3 at most, not L4"):
        AskedProgram(program("right"), "", "L4", LIMITS)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("crash", "the program was ended by SIGSEGV"),
        ("garbage", "P02-one-answer: the answer is not what the protocol wants"),
    ],
)
def test_a_program_that_dies_answers_that(way: str, says: str) -> None:
    port = AskedProgram(program(way), "", "", LIMITS)
    word = (Input(caffe.CPU_DATA), Input(caffe.GPU_DATA), Input(caffe.GPU_DATA))
    answers = port.ask(word)
    statements = port.program(word[: len(answers)])
    port.close()

    assert says == answers[-1].died
    assert len(answers) < len(word) + 1
    assert '"op": "' in statements[-1]


# --- what is refused


@pytest.mark.parametrize("states", [0, -1, 1000])
def test_a_bound_that_cannot_be_tested_is_refused(states: int) -> None:
    with pytest.raises(InvalidArgumentError, match="--states must be between 1 and"):
        learn_port(Here(ReferenceMemory), LearnWanted(states=states))


def test_without_aalpy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aalpy", None)
    with pytest.raises(MissingPackageError, match="needs the package aalpy: pip install aalpy"):
        learn(program("right"), LearnWanted(), LIMITS)


def test_the_alphabet_ends_with_release() -> None:
    assert RELEASE == alphabet("caffe")[-1]
    assert 12 == len(alphabet("caffe"))
    end = declared_machine("caffe", Sight("L0", head=True, flags=Played.sight.flags)).machine.steps[-1]
    assert {(NOT_ASKED, 62)} == set(end.values())
