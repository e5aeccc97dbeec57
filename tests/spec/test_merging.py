"""One verdict of several seeds: what each counts, what one covers, and the shortest program of each finding."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input
from syncedmem.spec import BlobCoverage, Conformance, SuiteResult, Violation
from syncedmem.spec.engine.checklist import Checklist
from syncedmem.spec.engine.cluster import Spread
from syncedmem.spec.engine.merging import merged, merged_suites
from syncedmem.spec.engine.search import Generated
from syncedmem.spec.engine.seeds import SeedResult
from syncedmem.spec.fuzz import Capabilities, Finding, Report, Step
from syncedmem.spec.fuzz.seeds import merged as merged_reports
from syncedmem.spec.ports.conformance import LevelResult, PortReport, Wanted
from syncedmem.spec.ports.seeds import merged as merged_ports
from syncedmem.verification import DeviceVerdict
from syncedmem.verification.seeds import merged_devices

if TYPE_CHECKING:
    from syncedmem.spec.requirements import Level

LONG, SHORT = Violation("R01", "long", ("a", "b")), Violation("R01", "short", ("a",))
OTHER = Violation("R02", "other", ("a", "b", "c"))


def verdict(*violations: Violation, taken: Any = (), seed: int = 0) -> Conformance[Any]:
    suite = SuiteResult("walks", 2, 10, 1.5, violations[0] if violations else None, violations[1:])
    generated = Generated(5, 2, 3, Counter({"read": seed + 1}), {seed})
    return Conformance("port", (suite,), BlobCoverage(False, set(taken)), 2.0, ("R01", "R02"), generated)


def spread_of(*answers: Any) -> Spread:
    spread = Spread(tuple(range(len(answers))))
    for seed, answer in enumerate(answers):
        spread.add(SeedResult(seed, "answer", answer, 10, 1.0, "a", (1, 1)))
    return spread


def test_the_shortest_program_of_each_violation_stays() -> None:
    whole = merged([verdict(LONG, OTHER), verdict(SHORT), verdict()])

    assert [SHORT, OTHER] == whole.violations
    assert [("walks", 6, 30, 4.5)] == [(it.name, it.cases, it.steps, it.seconds) for it in whole.suites]
    assert (6.0, ("R01", "R02")) == (whole.seconds, whole.checked)


def test_what_one_seed_covered_is_covered() -> None:
    one, other = verdict(taken={"a"}), verdict(taken={"b"}, seed=4)
    whole = merged([one, other])

    assert {"a", "b"} == whole.coverage.taken
    assert {"a"} == one.coverage.taken
    assert whole.generated is not None
    assert (10, 2, 6) == (whole.generated.asked, whole.generated.wanted_starts, whole.generated.walks)
    assert (6, {0, 4}) == (whole.generated.moves.total(), whole.generated.starts)


def test_checks_are_the_same_in_each_seed() -> None:
    """A seed whose process ended made none, and wanted none."""
    lists = [Conformance("port", (), it, 1.0, ()) for it in (Checklist(), Checklist(3, 3), Checklist(3, 2))]
    whole = merged(lists)

    assert Checklist(3, 3) == whole.coverage
    assert whole.generated is None


def test_suites_keep_their_order() -> None:
    suites = [SuiteResult(name, 1, 1, 1.0, None) for name in ("b", "a", "b")]

    assert [("b", 2), ("a", 1)] == [(it.name, it.cases) for it in merged_suites(suites)]


# --- the fuzzer


def report(seed: int, *findings: Finding, **more: Any) -> Report:
    made = Report("module:target", "an allocator", Capabilities(), {}, seed, 10, 1, 5.0, protected=True, **more)
    made.findings.extend(findings)
    made.checked["A05-served"] += 3
    made.ran("fast", 2, 10, 1.0)
    return made


def finding(*sizes: int, **more: Any) -> Finding:
    steps = tuple(Step("allocate", (number, size, 0, 0)) for number, size in enumerate(sizes))
    return Finding("A05-served", f"{len(sizes)} steps", steps, **more)


def test_alike_findings_are_one_with_the_shortest_program() -> None:
    known = replace(finding(1), repeats=False)
    whole = merged_reports(
        spread_of(report(0, finding(1, 7, 3), known), report(1, finding(1, 9), times := finding(8, 1), unread=""))
    )

    assert ["A05-served", "A05-served:allocate"] == [it.key for it in whole.findings]
    short = whole.findings[1]
    assert (2, 3) == (len(short.program), short.times)
    assert times.program != short.program
    assert 1 == whole.seeds[short.key] == whole.replay(short).seed
    assert 0 == whole.replay(whole.findings[0]).seed
    assert (6, 20, "") == (whole.checked["A05-served"], whole.operations, whole.unread)
    assert whole.as_json()["spread"]["done"] == 2


def test_what_went_wrong_with_any_seed_is_said_once() -> None:
    more = {"errors": ["broken"], "notes": ["slow"]}
    spread = spread_of(report(0, **more), report(1, **more, unwritten="full", lost=True))
    spread.lost[2] = "gone"
    whole = merged_reports(spread)

    assert ["broken", "seed 2 has no result: gone"] == whole.errors
    assert (["slow"], "full", True) == (whole.notes, whole.unwritten, whole.lost)
    assert not whole.passed


# --- ports, and the main job


def port(*levels: tuple[Level, Conformance[Any]], found: tuple[Violation, ...] = ()) -> PortReport:
    results: Any = tuple(LevelResult(level, it, ("R09",)) for level, it in levels)
    return PortReport("port", "caffe", Wanted("caffe"), results, found, "L1")


def test_a_port_reaches_a_level_that_it_reaches_with_every_seed() -> None:
    good, bad = verdict(), verdict(LONG)
    whole = merged_ports(spread_of(port(("L1", good)), port(("L1", bad), ("L0", good)), port(found=(OTHER, SHORT))))

    assert ["L1", "L0"] == [it.level for it in whole.results]
    assert not whole.passed
    assert whole.reached is not None
    assert whole.reached.level == "L0"
    assert (OTHER, SHORT) == whole.found
    assert whole.as_json()["spread"]["seeds"] == [0, 1, 2]


def test_a_device_that_one_machine_has_was_checked() -> None:
    missing, there = DeviceVerdict("cuda", "no GPU"), DeviceVerdict("cuda", "", {"memories": verdict(LONG)})
    (whole,) = merged_devices([[missing], [there], [DeviceVerdict("cuda", "", {"memories": verdict(SHORT)})]])

    assert [SHORT] == whole.violations
    assert [missing] == merged_devices([[missing], [missing]])


def test_coverage_of_memories_is_put_together() -> None:
    from syncedmem.spec import Coverage

    one, other = (Conformance("port", (), Coverage("caffe", taken), 1.0, ()) for taken in _transitions())
    whole = merged([one, other])

    assert whole.coverage.taken == one.coverage.taken | other.coverage.taken


def _transitions() -> tuple[Any, Any]:
    return {("UNINITIALIZED", Input(Call.CPU_DATA))}, {("SYNCED", Input(Call.CPU_DATA))}
