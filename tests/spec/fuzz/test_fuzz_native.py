"""The native driver: it finds what the generators in Python find, and races that they are too slow for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncedmem.spec import Violation
from syncedmem.spec.fuzz import Capabilities, Finding, HeapStep, TargetError, driver_of, fuzz
from syncedmem.spec.fuzz.jobs import Isolated
from syncedmem.spec.fuzz.native_driver import building
from syncedmem.spec.fuzz.native_driver.building import built
from syncedmem.spec.fuzz.native_driver.running import NativeDriver
from syncedmem.spec.fuzz.outcome import Outcome
from syncedmem.spec.fuzz.recognition import TargetSource

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

pytestmark = pytest.mark.deep

SUPPORT = Path(__file__).parents[2] / "support"
RACES = {"pop": "A01", "count": "A01", "aba": "A01", "flag": "A01", "lock": "A01", "home": "A01", "order": "A23"}
"""The seeded races of racing_allocators.c, and how each shows; it may also show as a crash or a hang."""

BUGS = {
    "twice_malloc,twice_free": "A01-distinct-pointers",
    "overlap_malloc,overlap_free": "A02-no-overlap",
    "skewed_malloc,skewed_free": "A03-aligned",
    "marking_malloc,marking_free": "A04-contents-kept",
    "cut_malloc,cut_free": "A06-out-of-memory",
    "idle_malloc,idle_free": "A09-zero-size",
    "dirty_malloc,dirty_free,dirty_calloc": "A13-zeroed",
    "moving_malloc,moving_free,moving_calloc,moving_realloc": "A14-resize-keeps",
    "fatal_malloc,fatal_free": "A22-no-crash",
    "stuck_malloc,stuck_free": "A23-no-hang",
}


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """One cache for all tests of this file."""
    place = tmp_path_factory.getbasetemp() / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    forget()
    yield
    forget()


def forget() -> None:
    """Look for the compiler and the cache again."""
    building.folder.cache_clear()
    building.compiled_driver.cache_clear()


def outcomes(  # noqa: PLR0913 -- the options of a run
    target: str,
    threads: int = 1,
    promises: dict[str, str] | None = None,
    *,
    hang: float = 30,
    steps: int = 400_000,
    unjudged: Sequence[str] = (),
) -> list[Outcome]:
    """Return the outcomes of the native driver, up to the first finding."""
    source = TargetSource(target)
    record = source.open().capabilities.with_promises(promises or {})
    with Isolated(target, hang) as place:
        driver = NativeDriver.of(place, record, source.parts)
        assert driver is not None
        found: list[Outcome] = []
        for outcome in driver.outcomes(seed=0, steps=steps, seconds=60, threads=threads, unjudged=lambda: unjudged):
            found.append(outcome)
            if outcome.finding is not None:
                break
        return found


def finding(
    target: str, threads: int = 1, promises: dict[str, str] | None = None, *, hang: float = 30, steps: int = 400_000
) -> Finding:
    """Return what the native driver finds."""
    found = outcomes(target, threads, promises, hang=hang, steps=steps)[-1].finding
    assert found is not None, "nothing was found"
    return found


def source(tmp_path: Path, text: str, name: str = "pool.c") -> str:
    """Return a target, a source that is on the C library's allocator."""
    path = tmp_path / name
    path.write_text(f"#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n{text}", encoding="utf-8")
    return f"{path}:take,give"


# --- what it finds


@pytest.mark.parametrize("race", RACES)
def test_a_race_with_a_narrow_window_is_found(race: str) -> None:
    """The window is a few instructions; the finding names two calls, or shows what the race has done to the pool."""
    target = f"{SUPPORT / 'racing_allocators.c'}:{race}_malloc,{race}_free"
    found = finding(target, 4, hang=2, steps=400_000_000)

    assert () == found.program
    assert found.requirement.startswith((RACES[race], "A02", "A04", "A22", "A23"))
    assert "of thread " in found.message


@pytest.mark.parametrize("symbols", BUGS)
def test_a_bug_is_found_with_the_steps_that_show_it(symbols: str) -> None:
    """The driver in Python takes the same steps, and sees the same."""
    target = f"{SUPPORT / 'faulty_allocators.c'}:{symbols}"
    promises = {"overlap": {"alignment": "1"}, "idle": {"zero_size": "null"}}.get(symbols.partition("_")[0], {})
    found = finding(target, 1, promises, hang=1)

    assert BUGS[symbols] == found.requirement, found.message
    if found.requirement < "A22":  # the others end this process
        with pytest.raises(Violation, match=found.requirement), driver_of(target, **promises) as driver:
            driver.run(found.program)


@pytest.mark.parametrize(
    ("take", "promises", "requirement"),
    [
        ("return malloc(n);", {"zero_size": "null"}, "A09-zero-size"),
        ("return n ? malloc(n) : 0;", {"zero_size": "unique"}, "A09-zero-size"),
        ("return malloc(n);", {"zeroed": "yes"}, "A13-zeroed"),
        ("return n > 99 ? 0 : malloc(n);", {"out_of_memory": "MemoryError"}, "A05-served"),
        ("static int k; return ++k > 999 ? 0 : malloc(n);", {}, "A16-no-leaks"),
    ],
)
def test_null_and_zeros_are_judged_as_promised(
    take: str, promises: dict[str, str], requirement: str, tmp_path: Path
) -> None:
    target = source(tmp_path, f"void *take(size_t n) {{ {take} }} void give(void *p) {{ free(p); }}")

    assert requirement == finding(target, 1, promises).requirement


@pytest.mark.parametrize("of", [2, 4, 16])
def test_an_allocator_that_mostly_refuses_is_legal_too(of: int, tmp_path: Path) -> None:
    moody = f"void *take(size_t n) {{ return rand() % {of} ? 0 : malloc(n); }} void give(void *p) {{ free(p); }}"

    assert [None] == list({outcome.finding for outcome in outcomes(source(tmp_path, moody))})


# --- how a process ends


def test_a_target_that_exits_or_stops_is_a_finding(tmp_path: Path) -> None:
    free = "void give(void *p) { free(p); }"
    exits = source(tmp_path, f'void *take(size_t n) {{ write(2, "bye", 3); _exit(3); }} {free}')
    stops = source(tmp_path, f"void *take(size_t n) {{ raise(SIGSTOP); return 0; }} {free}", "stops.c")

    assert "the process ended with exit status 3 in allocate(0, " in finding(exits).message
    assert finding(exits).message.endswith(" (bye)")
    assert "A23-no-hang" == finding(stops, hang=0.2).requirement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("static void __attribute__((constructor)) full(void) { _exit(125); }", "ended with status 125"),
        ("void *take(size_t n) { raise(SIGKILL); return 0; } void give(void *p) { free(p); }", "ended by SIGKILL"),
        ("void take(void) {}", "cannot open the target: .*undefined symbol: give"),
    ],
)
def test_a_driver_that_cannot_begin_says_why(text: str, said: str, tmp_path: Path) -> None:
    """If something outside has ended it, memory was short, perhaps."""
    target = source(tmp_path, text)
    with Isolated(target, 1.0) as place:
        driver = NativeDriver.of(place, Capabilities(), {"malloc": "take", "free": "give"})
        assert driver is not None
        with pytest.raises(TargetError, match=f"the native driver .*{said}"):
            list(driver.outcomes(seed=0, steps=10, seconds=1))


def test_what_is_skipped_hides_nothing_from_it() -> None:
    """It once ended at each violation of a requirement that was to be skipped."""
    target = f"{SUPPORT / 'faulty_allocators.c'}:dirty_malloc,dirty_free,dirty_calloc"

    assert "A13-zeroed" == finding(target).requirement
    assert {None} == {outcome.finding for outcome in outcomes(target, unjudged=["A13-zeroed"])}


def test_blocks_that_are_not_aligned_and_may_be_so_do_not_overlap(tmp_path: Path) -> None:
    """Those of 24 bytes shared what was taken for the smallest part of memory, if 16 is promised and left unjudged."""
    packed = source(
        tmp_path,
        "static char room[5000][24]; static void *gone[5000]; static int n, used;\n"
        "void *take(size_t size) { return size > 24 ? 0 : n ? gone[--n] : used < 5000 ? room[used++] : 0; }\n"
        "void give(void *p) { if (p) gone[n++] = p; }",
    )
    found = outcomes(packed, promises={"alignment": "16"}, unjudged=["A03-aligned"], steps=100_000)

    assert {None} == {item.finding for item in found}


def test_too_much_is_not_asked_for_where_that_is_left_unjudged(tmp_path: Path) -> None:
    """What was served was never freed."""
    text = "void *take(size_t n) { if (n >> 46) abort(); return malloc(n); } void give(void *p) { free(p); }"

    assert {None} == {outcome.finding for outcome in outcomes(source(tmp_path, text), unjudged=["A06-out-of-memory"])}


def test_what_is_known_hides_nothing_from_it_either(tmp_path: Path) -> None:
    """Once it was seen, both engines leave it out, and take all their steps."""
    (tmp_path / "known.txt").write_text("A13  # ours\n", encoding="utf-8")
    target = f"{SUPPORT / 'faulty_allocators.c'}:dirty_malloc,dirty_free,dirty_calloc"
    report = fuzz(target, steps=20_000, known=tmp_path / "known.txt")

    assert report.passed
    assert [1] == [finding.times for finding in report.findings]
    assert {"native": True} == {suite.name: suite.steps >= 40_000 for suite in report.suites if suite.name == "native"}


# --- in a whole run


def test_a_run_with_threads_uses_it() -> None:
    target = f"{SUPPORT / 'racing_allocators.c'}:yield_malloc,pop_free"
    report = fuzz(target, threads=4, steps=400_000)

    assert ["A20-threads"] == [finding.requirement for finding in report.findings]
    assert ["fast", "threads", "native"] == [suite.name for suite in report.suites]
    assert f"fuzz({target!r}, seed=0, steps=400000, threads=4" in report.replay(report.findings[0]).python()


@pytest.mark.parametrize(("skip", "findings"), [((), ["A20-threads"]), (("A20-threads",), [])])
def test_one_finding_of_several_threads_is_enough(skip: tuple[str, ...], findings: list[str]) -> None:
    """The window is wide: one of a few instructions is not met in so few steps where all threads share a processor."""
    target = f"{SUPPORT / 'racing_allocators.c'}:yield_malloc,pop_free"
    report = fuzz(target, threads=4, steps=20_000, skip=skip)

    assert findings == [finding.requirement for finding in report.findings]
    assert "threads" in [suite.name for suite in report.suites]


@pytest.mark.parametrize(("requirement", "passed"), [("A16-no-leaks", True), ("A22-no-crash", False)])
def test_what_only_the_native_driver_saw_is_a_note(
    requirement: str, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a process has ended: that does not come of an allocator that is right."""
    once = Finding(requirement, "seen once", (HeapStep("allocate", (0, 8, 0, 0)),), "native")
    outcome = Outcome(once, operations=1, rounds=1, seconds=0.1)

    def outcomes(*_: object, **__: object) -> list[Outcome]:
        return [outcome]

    monkeypatch.setattr(NativeDriver, "outcomes", outcomes)
    found = fuzz("libc.so.6:malloc,free", steps=1)

    assert passed == found.passed
    assert passed == any(f"did not show it: {requirement}: seen once" in note for note in found.notes)


def test_without_a_compiler_the_python_generator_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    report = fuzz("libc.so.6:malloc,free", steps=500, threads=2)

    assert report.passed
    assert ["fast", "threads"] == [suite.name for suite in report.suites]
    note = "the native driver cannot be compiled: there is no no-such-compiler; install it, or set CC"
    assert [f"the native driver has not run: {note}"] * 2 == report.notes


# --- compiling


def test_sources_in_c_and_in_cpp_are_compiled(tmp_path: Path) -> None:
    path = tmp_path / "pool.cpp"
    path.write_text(
        '#include <cstdlib>\nextern "C" { void *take(size_t n) { return new char[n]; }\n'
        "void give(void *p) { delete[] (char *)p; } }\n",
        encoding="utf-8",
    )
    assert built(f"{path}:take,give?abi=malloc").endswith(".so:take,give?abi=malloc")
    with driver_of(f"{path}:take,give") as driver:
        assert driver.allocate(0, 100)


def test_a_source_is_compiled_once_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change in the middle of a run, what was found in one program was confirmed with another one."""
    log, compiler = tmp_path / "log", tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec cc "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    shifted = "void *take(size_t n) { char *p = malloc(n + 8); return p ? p + 8 : p; }"
    target = source(tmp_path, f"{shifted}\nvoid give(void *p) {{ if (p) free((char *)p - 8); }}")
    report = fuzz(target, steps=2_000, promises={"alignment": "16"})

    assert "A03-aligned" in [finding.requirement for finding in report.findings]
    assert "native" in [suite.name for suite in report.suites]
    assert 1 == log.read_text("utf-8").count("pool.c")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing.c:take,give", "there is no source missing.c"),
        ("libx.so:take,give?build=", "no command is after build="),
        ("libx.so:take,give?build=echo no; false", "'echo no; false' failed: no"),
        ("libx.so:take,give?build=true", "'true' did not make libx.so"),
        ("libx.so:take,give?build=false", "'false' failed: status 1"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(target: str, message: str) -> None:
    with pytest.raises(TargetError, match=message) as caught:
        built(target)

    assert "\n" not in str(caught.value)


def test_an_error_of_the_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = source(tmp_path, "void *take(size_t n) { return 1 +; }")
    with pytest.raises(TargetError, match=r"pool\.c cannot be compiled: .*pool\.c:4:\d+: error: expected expression"):
        built(wrong)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(TargetError, match="there is no no-such-compiler; install it, or set CC"):
        built(wrong)


def test_a_compiler_that_fails_leaves_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor it; do last=$it; done\necho half > "$last"\nexit 1\n', encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    with pytest.raises(TargetError):
        built(source(tmp_path, "int take, give;"))

    assert [] == list(building.folder().iterdir())


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    forget()

    assert built(source(tmp_path, "int take, give;")).endswith(".so:take,give")
    assert tmp_path not in building.folder().parents


def test_an_object_whose_calls_take_an_alignment_is_driven() -> None:
    """The old size and the alignment come with each call; without them it refuses, or loses bytes."""
    found = outcomes(f"{SUPPORT / 'conventions.c'}:object_*?abi=resource", steps=40_000)[-1]

    assert found.finding is None
    assert found.checked["A14-resize-keeps"]
