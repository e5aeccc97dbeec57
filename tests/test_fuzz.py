"""The fuzzer: its oracle, its engines, the worker, and what it reports."""

from __future__ import annotations

import ctypes
import io
import json
import mmap
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from unittest import SkipTest
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from syncedmem import SimulatedDeviceAllocator
from syncedmem.cli import app, main
from syncedmem.spec.fuzz import (
    PROPERTIES,
    AllocatorMachine,
    AllocatorTests,
    Finding,
    Replay,
    Source,
    Step,
    TargetError,
    Trial,
    Wrong,
    allocator_machine,
    fuzz,
    kit,
    trial_of,
    worker,
)
from syncedmem.spec.fuzz.campaign import campaign, threaded
from syncedmem.spec.fuzz.faults import FAULTS, CachingPool, Fault, Pool
from syncedmem.spec.fuzz.isolation import Inline, Isolated
from syncedmem.spec.fuzz.jobs import perform
from syncedmem.spec.fuzz.journal import Journal, code
from syncedmem.spec.fuzz.minimise import minimise
from syncedmem.spec.fuzz.replay import replay
from syncedmem.spec.fuzz.streams import Stream

if TYPE_CHECKING:
    from typer.testing import Result

POOL = "syncedmem.spec.fuzz.faults:Pool"
TWICE = "syncedmem.spec.fuzz.faults.placement:PutBackTwice"
ALL = {
    "alignment": "64",
    "zero_size": "null",
    "wrong_size": "detect",
    "foreign_free": "detect",
    "double_free": "detect",
    "stream_ordered": "yes",
    "thread_safe": "yes",
}
INLINE = [it for it in FAULTS.values() if it.property_id not in ("A22-no-crash", "A23-no-hang")]


def run(*arguments: str, code: int = 0) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == code, result.output
    return result


# --- the engines, in this process


@pytest.mark.parametrize("fault", INLINE, ids=lambda it: it.name)
def test_a_fault_is_caught_in_this_process_too(fault: Fault) -> None:
    """Objects have no name that a worker could look up."""
    report = fuzz(fault.make, promises=fault.promises, threads=fault.threads, steps=20_000, first=True)

    assert [fault.property_id] == [it.property_id for it in report.findings]
    with pytest.raises(Wrong, match=fault.property_id):
        report.require()


@pytest.mark.parametrize("make", [Pool, CachingPool])
def test_a_correct_pool_passes_every_engine(make: type) -> None:
    promises = ALL if make is Pool else {"zero_size": "null", "double_free": "detect", "thread_safe": "yes"}
    report = fuzz(make, promises=promises, threads=3, steps=20_000)
    report.require()

    assert ["fast", "hypothesis", "threads"] == [it.engine for it in report.runs]
    assert all(it.rate > 0 for it in report.runs)
    unchecked = {it.property_id for it in report.verdicts() if it.status == "not checked"}
    assert make is not Pool or {"A08-size-known", "A22-no-crash", "A23-no-hang"} == unchecked


@pytest.mark.parametrize(
    "name", ["OneByteShort", "CallocInWords", "CopiesBackwards", "AsksTheWrongStream", "TrustsSizes", "ForgetsFrees"]
)
def test_hypothesis_finds_faults_alone(name: str) -> None:
    """And what it finds is short."""
    fault = FAULTS[name]
    machine = allocator_machine(fault.make, fault.promises)
    answer = perform(
        Source(fault.make),
        {"job": "machine", "promises": fault.promises, "seed": 1, "examples": 300, "seconds": 60.0},
        Journal(),
    )

    assert issubclass(machine, AllocatorMachine)
    assert fault.property_id == answer["finding"]["property_id"]
    assert len(answer["finding"]["program"]) <= 6


def test_the_same_seed_takes_the_same_steps() -> None:
    def taken(seed: int) -> tuple[Step, ...]:
        journal = Journal()
        source = Source(Pool())
        campaign(source, source.open().capabilities, journal, seed=seed, steps=4_000, seconds=60)
        return journal.steps()

    assert taken(3) == taken(3)
    assert taken(3) != taken(4)


def test_a_shared_target_keeps_the_history_of_all_rounds() -> None:
    """What an earlier round did may be why a later one fails."""
    journal, source = Journal(), Source(Pool())
    outcome = campaign(source, source.open().capabilities, journal, seed=0, steps=3_000, seconds=60)

    assert journal.length == outcome.operations
    assert 0 < outcome.last < journal.length


def test_a_fault_of_a_shared_target_is_made_short_as_well() -> None:
    report = fuzz(FAULTS["OneByteShort"].make(), steps=2_000, first=True)

    assert ["A02-no-overlap"] == [it.property_id for it in report.findings]


def test_threads_compare_at_the_end() -> None:
    class Forgetful(Pool):
        """Counts one too few, now and then."""

        def close(self) -> None:
            """Whatever is in use."""

        def uncount(self, size: int) -> None:
            super().uncount(size if self.live_blocks > 1 else size - 1)

    source = Source(Forgetful)
    outcome = threaded(source, source.open().capabilities, Journal(), seed=0, steps=2_000, seconds=60, threads=2)

    assert outcome.wrong is not None


def test_time_ends_a_campaign() -> None:
    source = Source(Pool)
    record = source.open().capabilities
    outcome = campaign(source, record, Journal(), seed=0, steps=1 << 40, seconds=0.1)
    several = threaded(source, record, Journal(), seed=0, steps=1 << 40, seconds=0.1, threads=2)

    assert 0 < outcome.operations < 1 << 30
    assert 0 < several.operations < 1 << 30


# --- the oracle


def test_steps_with_nothing_to_act_on_do_nothing() -> None:
    class Bare:
        """Has no more than it must."""

        def allocate(self, size: int) -> int:
            raise MemoryError(size)

        def deallocate(self, pointer: int) -> None:
            raise AssertionError(pointer)

    with trial_of(Bare()) as trial:
        done = [
            trial.free(0),
            trial.check(0),
            trial.calloc(0, 8),
            trial.resize(0, 8),
            trial.copy(0, 1),
            trial.copy_nothing(),
            trial.free_again(0),
            trial.free_foreign(),
            trial.free_wrong_size(0, 8),
            trial.fill(8),
            trial.cycle(8, 4),
            trial.work(0, 1),
            trial.allocate(0, 8, 64),
        ]
    assert {False} == set(done)
    with trial_of(Pool(), double_free="detect") as trial:
        assert trial.allocate(0, 8)
        assert not trial.allocate(0, 8)
        assert trial.free(0)
        assert trial.free_again(0)
        assert trial.allocate(1, 8)
        assert not trial.free_again(0)  # its address belongs to block 1
        assert trial.finish(1)


@pytest.mark.parametrize(
    ("zero_size", "gives", "wrong"),
    [
        ("null", 0, False),
        ("null", 64, True),
        ("null", ValueError(), True),
        ("unique", 0, True),
        ("unique", 64, False),
        ("error", 0, True),
        ("error", 64, True),
        ("error", ValueError(), False),
        ("error", MemoryError(), False),
        ("any", ValueError(), False),
        ("any", KeyError(), True),
        ("any", None, False),
    ],
)
def test_zero_bytes_do_what_is_promised(zero_size: str, gives: Any, wrong: bool) -> None:
    class Zero:
        def allocate(self, size: int) -> Any:
            assert not size
            if isinstance(gives, Exception):
                raise gives
            return gives

        def deallocate(self, pointer: int) -> None:
            assert pointer == 64

    opened = Source(Zero()).open()
    trial = Trial(opened, opened.capabilities.with_promises({"zero_size": zero_size}))
    if wrong:
        with pytest.raises(Wrong, match="A09-zero-size"):
            trial.allocate(0, 0)
    else:
        trial.allocate(0, 0)
        trial.end()


def test_unique_addresses_of_nothing_differ_from_each_other() -> None:
    class Zero:
        def allocate(self, size: int) -> int:
            return 64 + size

        def deallocate(self, pointer: int) -> None:
            raise AssertionError(pointer)

    opened = Source(Zero()).open()
    trial = Trial(opened, opened.capabilities.with_promises({"zero_size": "unique"}))
    trial.allocate(0, 0)
    with pytest.raises(Wrong, match="A09-zero-size: a request for zero bytes gave the memory of block 0"):
        trial.allocate(1, 0)


class Scripted:
    """Does what a test says."""

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)

    def allocate(self, size: int) -> Any:
        return bytearray(size)

    def deallocate(self, pointer: Any) -> None:
        """Nothing to do."""


def null(*_: object) -> int:
    """Fail as C does."""
    return 0


def nowhere(_: int) -> int:
    """An address that is nowhere."""
    return 1 << 60


def nothing(*_: object) -> None:
    """Do nothing."""


def fails(*_: object, **__: object) -> Any:
    """Raise what nobody promised."""
    raise KeyError("what?")


FIRST, SECOND = Step("allocate", (0, 16, 0, 0)), Step("allocate", (1, 16, 0, 0))


@pytest.mark.parametrize(
    ("subject", "program", "property_id"),
    [
        (Scripted(memcpy=fails), [FIRST, SECOND, Step("copy", (0, 1))], "A15-copies"),
        (Scripted(realloc=fails), [FIRST, Step("resize", (0, 8))], "A05-served"),
        (Scripted(allocate=null), [FIRST], "A05-served"),
        (Scripted(allocate=null), [Step("request_too_much", (1 << 50,))], "A06-out-of-memory"),
        (Scripted(allocate=nowhere), [Step("request_too_much", (1 << 50,))], "A06-out-of-memory"),
        (Scripted(read=fails, write=nothing, allocate=nowhere), [FIRST, Step("check", (0,))], "A04-contents-kept"),
        (Scripted(read=fails, write=fails, allocate=nowhere), [FIRST], "A04-contents-kept"),
        (Scripted(deallocate=fails), [FIRST, Step("free", (0, 0))], "A07-free-accepts"),
    ],
)
def test_errors_of_the_target_are_findings(subject: Any, program: list[Step], property_id: str) -> None:
    opened = Source(subject).open()
    with pytest.raises(Wrong, match=property_id):
        Trial(opened, opened.capabilities).run(program)


def test_a_resize_that_fails_leaves_the_block() -> None:
    def full(*_: object) -> int:
        raise MemoryError

    for refuse in (full, null):
        with trial_of(Scripted(realloc=refuse)) as trial:
            trial.allocate(0, 16)
            assert not trial.resize(0, 32)
            assert 16 == trial.blocks[0].size


def test_ignored_frees_do_nothing_and_others_are_seen() -> None:
    promises = {"double_free": "ignore", "foreign_free": "ignore"}
    with trial_of(Scripted(), **promises) as trial:
        trial.allocate(0, 16)
        trial.allocate(1, 16)
        assert trial.free_foreign()
        trial.free(0)
        assert trial.free_again(0)
    opened = Source(CachingPool()).open()
    trial = Trial(opened, opened.capabilities.with_promises(promises))
    trial.allocate(0, 16)
    with pytest.raises(Wrong, match=r"A11-foreign-free: .* to be ignored was promised"):
        trial.free_foreign()


def test_a_wrong_size_that_is_ignored_frees_the_block() -> None:
    class Careless(Pool):
        def verify(self, pointer: int, size: int) -> None:
            super().verify(pointer, self.sizes.get(pointer, size))

    with trial_of(Careless(), wrong_size="ignore") as trial:
        trial.allocate(0, 16)
        assert trial.free_wrong_size(0, 8)
        assert not trial.blocks
    assert fuzz(Careless, promises={"wrong_size": "ignore"}, steps=4_000).passed


def test_many_freed_blocks_are_not_all_remembered() -> None:
    with trial_of(Pool(), double_free="detect") as trial:
        for number in range(100):
            trial.allocate(number, 8)
        for number in range(100):
            trial.free(number)
        assert not trial.free_again(0)
        assert trial.free_again(99)


def test_who_reports_a_rough_number_may_report_more() -> None:
    class Rough(Pool):
        @property
        def used_bytes(self) -> int:
            return self.live_bytes and self.live_bytes + 64

    class TooFew(Pool):
        @property
        def used_bytes(self) -> int:
            return self.live_bytes // 2

    assert fuzz(Rough, steps=2_000).passed
    assert ["A17-statistics"] == [it.property_id for it in fuzz(TooFew, steps=2_000, first=True).findings]


def test_statistics_may_be_a_mapping_and_methods_with_arguments_are_none() -> None:
    class Mapped(Pool):
        live_blocks = live_bytes = peak_bytes = 0

        def used_bytes(self, unit: str) -> int:
            raise AssertionError(unit)

        @property
        def statistics(self) -> dict[str, int]:
            return {"current_count": 77}

    del Mapped.live_blocks, Mapped.live_bytes, Mapped.peak_bytes
    with pytest.raises(Wrong, match="A17-statistics: current_count is 77"), trial_of(Mapped) as trial:
        trial.baseline.clear()


def test_memory_of_the_process_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.fuzz.trial._STATM", Path("/nothing/here"))
    with trial_of(Pool()) as trial:
        assert trial.cycle(64, 4)
        assert not trial.checked["A16-no-leaks"]


def test_streams_speak_every_dialect() -> None:
    stream = Stream(2)
    stream.queued = 1
    event = stream.record()

    assert [False, False, False, False] == [stream.done, stream.query(), event.is_done, event.query()]
    event.synchronize()
    assert [True, True, 2, 2, 2] == [event.done, stream.done, stream.ptr, stream.handle, int(stream)]
    assert "<stream 2>" == repr(stream)


# --- the journal, and making things short


def test_a_journal_keeps_the_first_steps_of_a_long_program(tmp_path: Path) -> None:
    journal, reader = Journal(tmp_path / "journal", capacity=3), Journal(tmp_path / "journal", capacity=3)
    for number in range(5):
        journal.note(code("check"), number)
    journal_marks = {reader.mark()}

    assert journal.full
    assert [Step("check", (it,)) for it in range(3)] == list(reader.steps())
    journal.begin()
    journal_marks.add(reader.mark())
    assert () == reader.steps()
    journal.note(code("free"), 7, 1)
    journal_marks.add(reader.mark())
    assert (Step("free", (7, 1)),) == reader.steps()
    assert 3 == len(journal_marks)
    journal.close()
    reader.close()


def test_a_full_journal_begins_anew() -> None:
    source = Source(Pool())
    outcome = campaign(source, source.open().capabilities, Journal(capacity=300), seed=0, steps=2_000, seconds=60)

    assert outcome.wrong is None
    assert outcome.rounds > 5


def test_programs_are_made_short() -> None:
    program = tuple(Step("allocate", (number, 1000, 0, 0)) for number in range(40))

    def question(steps: tuple[Step, ...]) -> bool:
        return any(step.numbers[0] in (17, 0) and step.numbers[1] >= 3 for step in steps)

    assert (Step("allocate", (0, 3, 0, 0)),) == minimise(program[10:], question, 10)
    assert program == minimise(program, lambda _: False, 10)
    # A request for too much is not made a request for nothing, which anybody may serve.
    too_much = (Step("request_too_much", (1 << 50,)), Step("compare", ()))
    assert too_much[:1] == minimise(too_much, lambda steps: too_much[0].operation in {it.operation for it in steps}, 10)
    assert program == minimise(program, question, 0)


@pytest.mark.parametrize(
    "data", [3, [], ["fly"], ["allocate", -1], ["allocate", "0"], ["compare", 1], ["free", 1, 2, 3]]
)
def test_what_is_no_step_is_refused(data: Any) -> None:
    with pytest.raises(TargetError, match="not a step"):
        Step.from_json(data)


def test_steps_are_data_and_back() -> None:
    step = Step("allocate", (0, 16, 0, 0))

    assert (["allocate", 0, 16], "allocate(0, 16)", step) == (step.as_json(), str(step), Step.from_json(step.as_json()))


# --- the worker


def asked(tmp_path: Path, **job: Any) -> dict[str, Any]:
    """What a worker answers."""
    whole: dict[str, Any] = {"promises": {}, "journal": str(tmp_path / "journal"), "hang": 30, **job}
    replies = io.StringIO()
    worker.serve(io.StringIO(json.dumps(whole) + "\n"), replies)
    answer: dict[str, Any] = json.loads(replies.getvalue())
    return answer


def test_a_worker_answers_and_survives(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "import os, time\n"
        "class Base:\n    def deallocate(self, pointer): pass\n"
        "class Dies(Base):\n    def allocate(self, size): os.write(2, b'last words'); os.abort()\n"
        "class Leaves(Base):\n    def allocate(self, size): os._exit(3)\n"
        "class Hangs(Base):\n    def allocate(self, size): time.sleep(60)\n",
        encoding="utf-8",
    )
    program = {"job": "program", "program": [["allocate", 0, 8]]}

    assert asked(tmp_path, job="describe", target=POOL)["fresh"]
    assert "names no target" in asked(tmp_path, job="describe", target="x")["error"]
    assert {"crash": "SIGABRT", "said": "last words"} == asked(tmp_path, target=f"{file}:Dies", **program)
    assert {"crash": "exit status 3", "said": ""} == asked(tmp_path, target=f"{file}:Leaves", **program)
    assert {"hang": 0.3} == asked(tmp_path, target=f"{file}:Hangs", hang=0.3, **program)


def test_the_child_of_a_worker_answers_on_its_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, with what would end it left out."""
    done: list[Any] = []

    def pair(*values: object) -> None:
        done.append(values)

    def write(end: int, data: bytes) -> int:
        assert end == 4
        done.append(data)
        return len(data)

    monkeypatch.setattr("os.dup2", pair)
    monkeypatch.setattr("os.close", done.append)
    monkeypatch.setattr("signal.signal", pair)
    monkeypatch.setattr("os._exit", done.append)
    monkeypatch.setattr("os.write", write)
    job: dict[str, Any] = {"job": "describe", "promises": {}, "target": POOL, "journal": str(tmp_path / "journal")}
    child: Any = worker.be_the_child  # which returns here, and nowhere else
    child(job, 3, 4, 5)

    assert [3, (5, 1), (5, 2), (signal.SIGINT, signal.SIG_DFL)] == done[:4]
    assert json.loads(done[4])["kind"] == "allocate and deallocate"
    assert 0 == done[5]
    assert {"error": "cannot import nothing: ModuleNotFoundError: No module named 'nothing'"} == worker.answer_to(
        {**job, "target": "nothing:x"}
    )


def test_a_worker_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    worker.main()


def test_a_worker_that_is_gone_is_said() -> None:
    with Isolated(POOL, 1.0) as place:
        place.process.kill()
        place.process.wait()
        with pytest.raises(TargetError, match="the worker process ended"):
            place.perform({"job": "describe", "promises": {}})


def test_a_worker_without_pipes_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        stdin = stdout = None

        def wait(self) -> None:
            """It is over."""

    def popen(*_: object, **__: object) -> Deaf:
        return Deaf()

    monkeypatch.setattr("subprocess.Popen", popen)
    with Isolated(POOL, 1.0) as place, pytest.raises(TargetError, match="it has no pipes"):
        place.perform({"job": "describe", "promises": {}})


def test_a_target_that_dies_when_it_is_opened_is_said(tmp_path: Path) -> None:
    file = tmp_path / "dies.py"
    file.write_text("import os\nos.abort()\n", encoding="utf-8")

    with pytest.raises(TargetError, match="cannot be opened: the process ended with SIGABRT before the first step"):
        fuzz(f"{file}:x")


@pytest.mark.parametrize(("name", "property_id"), [("EndsTheProcess", "A22"), ("WaitsForItself", "A23")])
def test_crashes_and_hangs_are_findings_with_their_steps(name: str, property_id: str) -> None:
    """The campaign goes on after them."""
    report = fuzz(FAULTS[name].target, steps=8_000, hang=2 if property_id == "A23" else 30)
    finding = next(it for it in report.findings if it.property_id.startswith(property_id))

    assert finding.program
    assert finding.shrunk
    assert report.operations > finding.operations


def test_a_finding_that_does_not_come_again_is_kept_as_it_was() -> None:
    class Moody(Pool):
        """Is wrong once."""

        wrong: ClassVar[int] = 0

        def place(self, room: int, alignment: int) -> int:
            Moody.wrong += 1
            return super().place(room, alignment) + (Moody.wrong == 100)

    report = fuzz(Moody, promises={"alignment": "64"}, steps=2_000)

    assert ["A03-aligned"] == [it.property_id for it in report.findings]
    assert (False, False) == (report.findings[0].shrunk, report.findings[0].repeats)
    assert "fuzz(" in report.replay(report.findings[0]).python()


# --- replays and reports


def test_a_replay_file_says_whether_it_still_fails(tmp_path: Path) -> None:
    report = fuzz(TWICE, steps=2_000, first=True)
    found = report.replay(report.findings[0])
    file = tmp_path / "replay.json"
    file.write_text(found.text(), encoding="utf-8")
    mended = tmp_path / "mended.json"
    mended.write_text(found.text().replace(TWICE, POOL), encoding="utf-8")
    other = tmp_path / "other.json"
    other.write_text(found.text().replace("A01-distinct-pointers", "A02-no-overlap"), encoding="utf-8")

    assert found.as_json() == Replay.read(file).as_json()
    assert "still breaks A01-distinct-pointers" in run("replay", str(file), code=1).output
    assert "now breaks A01-distinct-pointers" in run("replay", str(other), code=1).output
    assert "no longer breaks A01-distinct-pointers" in run("replay", str(mended)).output
    replay(mended)
    with pytest.raises(Wrong, match="A01"):
        replay(file)
    with pytest.raises(Wrong, match="A01"):
        exec(found.python(), {})  # noqa: S102 -- what is printed has to run


def test_a_finding_of_threads_is_replayed_by_its_seed() -> None:
    fault = FAULTS["NoLocks"]
    finding = Finding("A20-threads", "what threads do", (), repeats=False)
    found = Replay(fault.target, fault.promises, finding, seed=1, steps=4_000, threads=4)

    assert found.run() is not None
    assert "threads=4" in found.python()
    compile(found.python(), "replay", "exec")


def test_a_long_program_is_at_most_ten_lines() -> None:
    steps = tuple(Step("allocate", (number, 8, 0, 0)) for number in range(50))
    text = Replay(POOL, {"zero_size": "null"}, Finding("A01-distinct-pointers", "", steps)).python()

    assert len(text.splitlines()) <= 10
    exec(text, {})  # noqa: S102 -- as above


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no replay: Expecting"),
        ("3", "is no replay of format 1"),
        ('{"format": 2}', "is no replay of format 1"),
        ('{"format": 1}', "'program'. is missing"),
        ('{"format": 1, "program": [["fly"]]}', "not a step"),
        ('{"format": 1, "program": [], "property": "A01-distinct-pointers", "message": ""}', "'repeats'. is missing"),
    ],
)
def test_what_is_no_replay_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "replay.json"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(TargetError, match=said):
        Replay.read(file)


def test_the_command_passes_what_passes(tmp_path: Path) -> None:
    arguments = ("fuzz", "libc.so.6:malloc,free", "--steps", "3000", "--out", str(tmp_path), "--threads", "2")
    result = run(*arguments, "--json", str(tmp_path / "report.json"), "--junit", str(tmp_path / "junit.xml"))
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    suite = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 -- written a moment ago

    assert "passed. Seed 0." in result.output
    assert (1, True, []) == (report["format"], report["passed"], report["findings"])
    assert list(PROPERTIES) == [it["property_id"] for it in report["properties"]]
    assert {"tests": str(len(PROPERTIES)), "failures": "0"} == {key: suite.attrib[key] for key in ("tests", "failures")}
    assert len(suite) == len(PROPERTIES)


def test_the_command_shows_what_is_wrong(tmp_path: Path) -> None:
    arguments = ("fuzz", TWICE, "--steps", "2000", "--out", str(tmp_path), "--promise", "alignment=64", "--first")
    result = run(*arguments, "--json", "-", "--junit", str(tmp_path / "junit.xml"), code=1)
    report = json.loads(result.stdout)

    assert "A01-distinct-pointers" in result.stderr
    assert "Replay it: syncedmem replay" in result.stderr
    assert "with trial_of(" in report["findings"][0]["python"]
    assert (tmp_path / "A01-distinct-pointers.json").is_file()
    assert "<failure" in (tmp_path / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [("libnothing.so:a,b",), ("os:sep",), (POOL, "--promise", "alignment=5"), (POOL, "--promise", "alignment")],
)
def test_bad_input_is_one_line_and_status_two(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["syncedmem", "fuzz", *arguments])
    with pytest.raises(SystemExit) as left:
        main()

    assert 2 == left.value.code
    assert 1 == len(capsys.readouterr().err.strip().splitlines())


def test_reasons_name_what_is_missing() -> None:
    report = fuzz("libc.so.6:malloc,free", steps=500)
    reasons = {it.property_id: it.detail for it in report.verdicts() if it.status == "not checked"}

    assert "say --threads N" == reasons["A20-threads"]
    assert "it has no realloc" == reasons["A14-resize-keeps"]


# --- the pytest entry


class Correct(AllocatorTests):
    """The suite on a correct pool: pytest collects its tests."""

    target = Pool
    promises: ClassVar[dict[str, str]] = ALL
    steps = 4_000


class TestPool(Correct):
    """Every property is a test."""


def listing(tmp_path: Path, *names: str) -> Path:
    """A file that lists properties."""
    file = tmp_path / "list.txt"
    file.write_text("# known\n" + "".join(f"{name}  # because\n" for name in names), encoding="utf-8")
    return file


def test_the_suite_fails_skips_and_expects_failures(tmp_path: Path) -> None:
    class Twice(AllocatorTests):
        target = FAULTS["PutBackTwice"].make
        promises: ClassVar[dict[str, str]] = {"alignment": "1"}
        steps = 1_000

    broken, fine = "A01-distinct-pointers", "A03-aligned"
    with pytest.raises(AssertionError, match="with trial_of"):
        Twice().check(broken)
    Twice().check(fine)
    with pytest.raises(SkipTest, match="not checked"):
        Twice().check("A08-size-known")
    Twice.xfails = listing(tmp_path, broken, fine)
    with pytest.raises(SkipTest, match="known to fail"):
        Twice().check(broken)
    with pytest.raises(AssertionError, match="known to fail, and it is passed"):
        Twice().check(fine)
    Twice.skips = Twice.xfails
    with pytest.raises(SkipTest, match="is listed in"):
        Twice().check(broken)
    Twice.skips = listing(tmp_path, "A99-nonsense")
    with pytest.raises(TargetError, match="lists A99-nonsense, which is no property"):
        Twice().check(broken)


def test_a_target_may_be_a_function_and_has_to_be_said() -> None:
    class Made(AllocatorTests):
        target = staticmethod(Pool)
        steps = 500

    class Forgotten(AllocatorTests):
        pass

    assert Made.report().passed
    with pytest.raises(TargetError, match="Forgotten says no target"):
        Forgotten.report()
    with pytest.raises(TargetError, match="has no target"):
        AllocatorMachine()


def test_progress_is_told() -> None:
    told: list[str] = []
    fuzz(Pool, steps=500, on_progress=lambda engine, done, of: told.append(f"{engine} {done <= of or done}"))

    assert {"fast", "hypothesis"} == {it.split()[0] for it in told}


def test_pages_show_every_property_with_its_sentence() -> None:
    """The table in docs/fuzzing.md is this one."""
    page = (Path(__file__).parent.parent / "docs" / "fuzzing.md").read_text(encoding="utf-8")

    assert [it.id for it in PROPERTIES.values() if f"| `{it.id}` | {it.text} | {it.source} |" not in page] == []
    assert f"{len(FAULTS)} in Python" in page


def test_places_say_whether_they_protect() -> None:
    with Inline(Pool) as place:
        assert not place.protects
        assert () == place.steps()
    assert kit.STEPS == 100_000


# --- the corners


def test_a_large_block_is_compared_piece_by_piece() -> None:
    with trial_of(Pool()) as trial:
        trial.allocate(0, 200_000)
        address = trial.blocks[0].address
        kept = ctypes.string_at(address, 1)
        ctypes.memset(address, kept[0] ^ 1, 1)
        with pytest.raises(Wrong, match=r"A04-contents-kept: .*byte 0 is"):
            trial.check(0)
        ctypes.memmove(address, kept, 1)
        assert trial.check(0)


def test_memory_behind_get_and_set_is_checked() -> None:
    report = fuzz(SimulatedDeviceAllocator, steps=1_000)
    report.require()

    assert report.checked["A04-contents-kept"]


def test_a_campaign_may_be_a_few_rounds() -> None:
    source = Source(Pool)
    outcome = campaign(source, source.open().capabilities, Journal(), seed=0, steps=1 << 40, seconds=60, rounds=2)

    assert 2 == outcome.rounds


def test_small_pools_refuse_often_and_pass() -> None:
    report = fuzz(lambda: Pool(4096), steps=20_000, promises={"stream_ordered": "yes"})
    report.require()

    assert report.checked["A18-limit"]


def test_memory_that_does_not_come_back_is_a_leak() -> None:
    class Once:
        """Serves one request."""

        served = False

        def allocate(self, size: int) -> int:
            if self.served or size > 1 << 40:
                return 0
            self.served = True
            return 1 << 60

        def deallocate(self, pointer: int) -> None:
            assert pointer

    opened = Source(Once()).open()
    trial = Trial(opened, opened.capabilities.with_promises({"out_of_memory": "null"}))
    assert trial.request_too_much(1 << 62)
    trial.allocate(0, 16)
    assert not trial.allocate(1, 16)  # somebody has it
    trial.free(0)
    with pytest.raises(Wrong, match="A16-no-leaks: 16 bytes are refused"):
        trial.allocate(2, 16)


class Hoards(Pool):
    """Keeps 8 MiB of its own from its n-th requests on."""

    def __init__(self, *when: int) -> None:
        super().__init__()
        self._when = when
        self._requests = 0
        self._kept: list[mmap.mmap] = []

    def allocate(self, size: int, alignment: int = 16, stream: Any = None) -> int:
        self._requests += 1
        if self._requests in self._when:
            self._kept.append(mmap.mmap(-1, 8 << 20))  # from the system: the heap may have room that was touched before
            self._kept[-1].write(b"x" * (8 << 20))
        return super().allocate(size, alignment, stream)


def test_growing_once_is_no_leak_and_growing_every_time_is() -> None:
    """In a process of many threads something else may grow while a cycle is measured."""
    with trial_of(Hoards(200, 500)) as trial:
        assert trial.cycle(1 << 16, 512)
    with trial_of(Hoards(200, 600, 1000)) as trial, pytest.raises(Wrong, match="A16-no-leaks: 384 times 65536 bytes"):
        trial.cycle(1 << 16, 512)


def test_a_cycle_ends_where_memory_is_refused() -> None:
    with trial_of(Pool(32)) as trial:
        assert not trial.cycle(64, 8)
        assert not trial.cycle(64, 2)


def test_the_pieces_of_faults_that_a_first_finding_leaves_out() -> None:
    """A fault is wrong in one thing, and right in the rest."""
    adds, short, null_first = (FAULTS[name].make() for name in ("LooksBeforeItAdds", "ShortBuffers", "NullBeforeSize"))
    adds.allocate(1 << 20)
    with pytest.raises(MemoryError):
        adds.allocate(1)
    with pytest.raises(MemoryError):
        short.allocate(1 << 50)
    null_first.memcpy(null_first.allocate(8), null_first.allocate(8), 8)
    with pytest.raises(RuntimeError):
        null_first.close()
    with pytest.raises(MemoryError):
        FAULTS["WrongErrorWhenFull"].make().allocate(1 << 50)
    one_byte = FAULTS["ZeroIsOneByte"].make()
    one_byte.deallocate(one_byte.allocate(0), 0)
    with pytest.raises(MemoryError):
        FAULTS["OverflowsOnTooMuch"].make().allocate(1 << 40)
    full = Pool()
    assert 0 == full.place(1 << 40, 64)


def test_faults_that_end_or_stop_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, waits = FAULTS["EndsTheProcess"].make(), FAULTS["WaitsForItself"].make()
    aborted: list[bool] = []
    monkeypatch.setattr("os.abort", lambda: aborted.append(True))
    with pytest.raises(MemoryError):
        ends.allocate(ends.limit + 1)
    with pytest.raises(MemoryError):
        ends.allocate(1 << 50)
    assert [True] == aborted
    assert not hasattr(waits.lock, "_is_owned")
    waits.lock = threading.RLock()
    assert waits.realloc(waits.allocate(8), 16)


def test_a_machine_needs_no_journal() -> None:
    assert allocator_machine(Pool)().trial.allocate(0, 8)


def test_errors_of_the_engine_are_not_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("the engine")

    monkeypatch.setattr("syncedmem.spec.fuzz.machine.run_state_machine_as_test", broken)
    with pytest.raises(KeyError, match="the engine"):
        fuzz(Pool, steps=100)


def test_what_did_not_repeat_is_a_finding_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis then raises an error of its own."""

    def flaky(machine: Any, **_: object) -> None:
        example = machine()
        example.trial.target.subject.live_blocks += 1
        with pytest.raises(Wrong):
            example.take("compare")
        raise KeyError("flaky")

    monkeypatch.setattr("syncedmem.spec.fuzz.machine.run_state_machine_as_test", flaky)

    assert ["A17-statistics"] == [it.property_id for it in fuzz(Pool, steps=100).findings]


def test_the_command_needs_no_report(tmp_path: Path) -> None:
    """Without --json and --junit it writes replays alone."""
    run("fuzz", TWICE, "--steps", "4000", "--out", str(tmp_path), code=1)

    assert {".json"} == {it.suffix for it in tmp_path.iterdir()}


def test_the_command_line_and_the_library_have_the_same_defaults() -> None:
    """They are said twice, because ``--help`` is to come without Hypothesis."""
    from syncedmem import cli, fuzzing
    from syncedmem.spec import kit as conformance
    from syncedmem.spec.fuzz import kit

    assert (kit.STEPS, kit.SECONDS, kit.HANG) == (fuzzing.STEPS, fuzzing.SECONDS, fuzzing.HANG)
    assert conformance.DEFAULT_STEPS == cli.DEFAULT_STEPS
