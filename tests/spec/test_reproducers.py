"""A reproducer does what the kit did: it makes the same calls with the same arguments, on the user's subject."""

from __future__ import annotations

import ast
import re
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from mutants.blob.handmade import HandmadeBlob
from mutants.memory import MEMORY_BUGS
from mutants.selftest import QUICKEST_FIRST
from subjects import GPU_READ, PUSH, READ, WRITE, device_subject, host_subject

from syncedmem.model import Input, caffe, using_mode
from syncedmem.model.interface import BLOB_CALLS
from syncedmem.spec import Subject, Violation, check_conformance, suite_names
from syncedmem.spec.blob.suites import SUITES
from syncedmem.spec.blob.trial import blob_bench
from syncedmem.spec.blob.trial import run_case as run_blobs
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.conformance import suites_of
from syncedmem.spec.kit.trial import bench_of, run_case
from syncedmem.spec.subjects.python import program_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mutants.registry import SeededBug

Calls = list[tuple[Any, ...]]
GPU_NULL = Input(caffe.SET_GPU_DATA, data=False)

_CALLS = (
    "cpu_data",
    "mutable_cpu_data",
    "gpu_data",
    "mutable_gpu_data",
    "set_cpu_data",
    "set_gpu_data",
    "async_gpu_push",
    "close",
)


class Told:
    """A maker whose memories record the calls that are made to them."""

    def __init__(self, make: Any) -> None:
        self.make = make
        self.calls: Calls = []

    def __call__(self, size: int, **options: Any) -> Any:
        """Make a memory, and record that."""
        self.calls.append(("make", size, sorted(options)))
        return Telling(self.make(size, **options), self.calls)


class Telling:
    """A memory that records its calls."""

    def __init__(self, memory: Any, calls: Calls) -> None:
        self._memory = memory
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        if name not in _CALLS:
            return found

        def call(*arguments: Any, **keywords: Any) -> Any:
            self._calls.append((name, *map(shown, arguments), *keywords))
            return found(*arguments, **keywords)

        return call


def shown(argument: Any) -> object:
    """Return what can be compared of an argument: its type, and its bytes if it is host memory, else its length."""
    try:
        return type(argument).__name__, bytes(memoryview(argument))
    except TypeError:
        return type(argument).__name__, getattr(argument, "nbytes", None)


def first_violation(bug: SeededBug, subject: Subject, *suites: str) -> Violation:
    """Return the violation that the quickest suite finds."""
    wrong = replace(subject, make=bug.make)
    for name in suites or [name for name in QUICKEST_FIRST if name in suite_names(wrong)]:
        if violation := check_conformance(wrong, steps=300, suites=[name]).suites[0].violation:
            return violation
    raise AssertionError(bug.name)


def ran(program: str, subject: Subject) -> Calls:
    """Run a program and return its calls; its last statement may raise, if that is the failure."""
    told = Told(subject.make)
    *earlier, last = ast.parse(program).body
    names: dict[str, Any] = {"subject": replace(subject, make=told)}
    inside: AbstractContextManager[object] = nullcontext()
    if program.startswith("with subject.elsewhere") and isinstance(last, ast.With) and subject.elsewhere is not None:
        (*earlier, last), inside = last.body, subject.elsewhere.using()
    with inside:
        run(earlier, names)
        with suppress(Exception):
            run([last], names)
    return told.calls


def run(statements: list[ast.stmt], names: dict[str, Any]) -> None:
    """Run statements as a user does."""
    exec(compile(ast.Module(statements, []), "<reproducer>", "exec"), names)  # noqa: S102 -- the reproducer must run


@pytest.fixture(autouse=True)
def kept_mode() -> Iterator[None]:
    """Restore the mode after each test, because programs set it."""
    with using_mode(None):
        yield


@pytest.mark.deep(quick=5)
@pytest.mark.parametrize("bug", MEMORY_BUGS.values(), ids=MEMORY_BUGS)
def test_a_reproducer_of_a_seeded_bug_runs(bug: SeededBug) -> None:
    """It runs to its end, or to the wrong error, and its last line says what is wrong."""
    subject = device_subject() if bug.shows_on == "device" else host_subject()
    violation = first_violation(bug, subject)
    calls = ran(violation.reproducer, replace(subject, make=bug.make))

    assert "make" == calls[0][0]
    assert violation.reproducer.splitlines()[-1].startswith(f"# {violation.requirement}: ")
    assert violation.reproducer.splitlines()[-1].removeprefix("# ") in str(violation).splitlines()[-1]


@pytest.mark.parametrize("suite", suites_of(device_subject()))
def test_a_reproducer_makes_the_calls_that_the_kit_made(suite: str) -> None:
    """The bytes, lengths, modes, devices and failures are the same, and every other step can be left out."""
    cases = [case for case in suites_of(device_subject())[suite]() if all(item.size in range(1 << 16) for item in case)]
    for case in Random(0).sample(cases, min(len(cases), 12)):  # noqa: S311 -- a sample
        told = Told(device_subject().make)
        bench = bench_of(replace(device_subject(), make=told))
        with using_mode(None):
            run_case(bench, case)
        made = [*told.calls]
        again = ran("\n".join(bench.performer.program()), device_subject())

        assert made
        assert [call[0] for call in made] == [call[0] for call in again]
        # Of what must not be adopted some is memory in which nobody has written.
        assert made == again or suite == "forms"


def test_a_reproducer_says_where_the_mode_changes_what_fails_and_what_is_refused() -> None:
    failing = Writer(caffe.CAFFE, safe=True).add(WRITE).add(PUSH, fail=1).add(Input(setting="mode", value="CPU"))
    failing.add(READ, fail=1, how="half").add(GPU_READ, fail=1, how="interrupt").add(GPU_NULL)
    bench = bench_of(device_subject())
    run_case(bench, failing.done())
    program = "\n".join(bench.performer.program())

    assert "\nwith log.moves.armed(1), suppress(Exception): memory.async_gpu_push(stream=stream1)\n" in program
    assert "\nset_mode(Mode.CPU)\n" in program
    assert "armed(1, InjectedInterrupt), suppress(BaseException): memory.gpu_data()\n" in program
    assert "\nwith suppress(Exception): memory.set_gpu_data(None)\n" in program


def test_failures_that_do_no_harm_are_left_out() -> None:
    """A whole failing move is left out, or only the steps before the one that does harm."""
    forgets = first_violation(MEMORY_BUGS["ForgetsThePushItCouldNotWaitFor"], device_subject(), "stumbles")
    leaks = first_violation(MEMORY_BUGS["FailureLeaks"], device_subject(), "stumbles")
    plain = first_violation(MEMORY_BUGS["SpoiltCopy"], device_subject(), "stumbles")

    assert "steps.armed(1), suppress(Exception): memory.mutable_cpu_data()" in forgets.reproducer
    assert "steps.armed(1)" not in leaks.reproducer
    assert "memory.async_gpu_push" in leaks.statements[-1]
    assert "armed" not in plain.reproducer


class TellingBlob(HandmadeBlob):
    """A blob that records the calls that are made to it, its own ones too."""

    calls: ClassVar[Calls] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in BLOB_CALLS or not callable(found):
            return found

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append((name, *map(shown, arguments), *keywords.items()))
            return found(*arguments, **keywords)

        return call


@pytest.mark.parametrize("has_device", [True, False])
@pytest.mark.parametrize("suite", SUITES)
def test_a_reproducer_of_blobs_makes_the_calls_that_the_kit_made(suite: str, has_device: bool) -> None:
    """At L3, where the kit takes no view a second time."""
    subject = replace((device_subject if has_device else host_subject)(TellingBlob), level="L3")
    cases = [*SUITES[suite](subject)]
    for case in Random(0).sample(cases, min(len(cases), 20)):  # noqa: S311 -- a sample
        bench = blob_bench(subject)
        TellingBlob.calls.clear()
        run_blobs(bench, case)
        made = [*TellingBlob.calls]
        TellingBlob.calls.clear()
        run(ast.parse("\n".join(bench.performer.program())).body, {"subject": subject})

        assert made == TellingBlob.calls


def test_a_program_has_the_imports_that_it_needs_and_says_where_its_subject_comes_from() -> None:
    subject = replace(host_subject(), source="import this\nsubject = this")

    assert ("import gc", "import this", "subject = this", "gc.collect()") == program_of(["gc.collect()"], subject)


def test_a_violation_is_printed_with_its_program() -> None:
    """The text of the exception has it; a message of several lines becomes one line of comment."""
    verdict = check_conformance(device_subject(MEMORY_BUGS["SpoiltCopy"].make), suites=["cells"])
    with pytest.raises(Violation) as caught:
        verdict.require()

    assert "\n    memory = subject.make(1, host=host, device=device)\n" in str(caught.value)
    assert "x()\n# R10: two lines" == Violation("R10", "two\nlines", ("x()",)).reproducer
    assert "none: a" == str(Violation("none", "a"))


@pytest.mark.deep
def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/conformance.md print exactly the output that the page shows."""
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)  # noqa: S102 -- as a reader of the page does

    assert capsys.readouterr().out == "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
