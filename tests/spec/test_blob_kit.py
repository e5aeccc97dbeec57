"""The conformance kit for blobs: which blobs pass, which are refused, and its messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob
from mutants.blob.shapes import ShapeAllocatedAtOnce
from subjects import device_subject, host_subject

from syncedmem.runtime import Blob
from syncedmem.spec import (
    REQUIREMENTS,
    Subject,
    Violation,
    blob_requirements_for,
    blob_suite_names,
    check_blobs,
)
from syncedmem.spec.blob.claims import offers_messages
from syncedmem.spec.blob.elements import alike, encoded, near
from syncedmem.spec.blob.steps import new, refused
from syncedmem.spec.blob.trial import BlobTrial, blob_bench, run_case
from syncedmem.spec.engine.report import Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.requirements import Level


def caught(make: Any, *suites: str, profile: Any = "safe") -> Violation:
    """Return the first violation that the kit finds in a blob."""
    verdict = check_blobs(replace(device_subject(make), profile=profile), steps=300, suites=suites or None)

    assert not verdict.passed
    return verdict.violations[0]


# --- blobs that pass


@pytest.mark.deep
@pytest.mark.parametrize(
    ("make", "subject"),
    [(Blob, device_subject), (Blob, host_subject), (HandmadeBlob, device_subject), (HandmadeBlob, host_subject)],
)
def test_our_blob_and_the_reference_pass(make: Any, subject: Callable[[Any], Subject]) -> None:
    """With and without a device, every cell of the tables is taken and every suite runs."""
    taken = subject(make)
    verdict = check_blobs(taken, steps=600, seed=2)
    verdict.require()

    assert verdict.passed
    assert list(blob_suite_names(taken)) == [suite.name for suite in verdict.suites]
    assert all(suite.cases and suite.steps for suite in verdict.suites)
    assert (144 if taken.device else 48, 0) == (verdict.coverage.count, verdict.coverage.missing)


@pytest.mark.parametrize("steps", [1, 100])
def test_steps_of_blobs_are_steps(steps: int) -> None:
    """As many generated calls as are wanted are made, or more, and another seed makes others."""
    taken = [
        check_blobs(device_subject(HandmadeBlob), steps=steps, seed=seed, suites=["walks"]).generated for seed in (0, 1)
    ]
    first, other = (item.moves if item else Counter[str]() for item in taken)

    assert min(first.total(), other.total()) >= steps
    assert first != other
    assert all(item and 8 * item.walks <= item.moves.total() and item.starts for item in taken)


def test_the_requirements_for_a_subject_follow_from_what_it_offers() -> None:
    """They depend on its profile, and on whether it has a device and messages."""
    device, host = (set(blob_requirements_for(subject(HandmadeBlob))) for subject in (device_subject, host_subject))
    caffe = set(blob_requirements_for(replace(device_subject(HandmadeBlob), profile="caffe")))

    assert {"B48-no-device"} == host - device
    assert {"B17-gpu-shape", "B29-update-side"} < device - host
    assert {"B44-int-count"} == caffe - device
    assert {"safe"} == {REQUIREMENTS[name].profile for name in device - caffe}
    assert {name for name, requirement in REQUIREMENTS.items() if requirement.kind == "blob"} == device | host | caffe


def test_what_a_subject_is_not_judged_by_is_no_violation() -> None:
    """Only the profile `safe` has B62; the call is accepted, and its steps go on."""
    judged, lenient = (
        blob_bench(replace(device_subject(HandmadeBlob), profile=profile)) for profile in ("safe", "caffe")
    )
    wrong = refused("B62-negative-index", "offset", 0)
    trial = BlobTrial(lenient)
    for step in (new(0, (2, 3)), wrong):
        trial.take(step)

    assert "blob.offset(0)" == lenient.performer.program()[-1]
    with pytest.raises(Violation, match=r"B62-negative-index: blob\.offset was not refused"):
        run_case(judged, (new(0, (2, 3)), wrong))


class Limited(ShapeAllocatedAtOnce):
    """Caffe's limits: four types, extents at once, an ``int`` for a count, and half of a shape that is refused."""

    def set_up(self) -> None:
        if self.dtype == "float16":
            self.refuse("blob.cpp:556-558 has no such type")

    def checked(self, extents: list[Any]) -> tuple[int, ...]:
        before, self.axes = self.axes, tuple(extents)
        found = super().checked(extents)
        self.axes = before
        return found

    def check_size(self, extents: list[Any]) -> None:
        count = 1
        for extent in extents:
            count *= extent
            if count > (1 << 31) - 1:
                self.refuse("blob size exceeds INT_MAX")

    def check_legacy_index(self, index: int, extent: int) -> None:
        if not -1 <= index <= extent:
            self.refuse("an index outside")

    def offset_4d(self, indices: list[int]) -> int:
        if indices[0] < 0:
            self.refuse("n >= 0")
        return super().offset_4d(indices)


def test_caffe_alone_is_asked_for_less() -> None:
    """A blob with only Caffe's limits passes; cases in which Caffe's capacity is wrong are not generated."""
    subject = replace(device_subject(Limited), profile="caffe")
    verdict = check_blobs(subject)
    verdict.require()

    assert not {"sequences", "walks", "failures"} & {suite.name for suite in verdict.suites}
    assert "passed" == verdict.verdict("B44-int-count").status
    assert "not applicable" == verdict.verdict("B46-capacity").status
    assert "B67-shape-lazy" == caught(Limited, "rules").requirement


def test_a_blob_without_messages_is_not_checked_for_them() -> None:
    class Bare(HandmadeBlob):
        to_proto: Any = property()

    class Unpacked(HandmadeBlob):
        def write_part(self, field: list[float], part: str) -> None:
            raise ImportError(f"protobuf, for {part} in {field}")

    class Broken(HandmadeBlob):
        def write_part(self, field: list[float], part: str) -> None:
            raise RuntimeError(f"no, not {part} in {field}")

    assert [False, False, True, True] == [
        offers_messages(device_subject(make)) for make in (Bare, Unpacked, Broken, HandmadeBlob)
    ]
    assert "B50-message-shape" not in blob_requirements_for(device_subject(Bare))
    assert not check_blobs(device_subject(Bare), suites=["rules"]).violations
    assert "RuntimeError: no, not data" in caught(Broken, "rules").message


def test_no_steps_are_none_and_progress_is_told() -> None:
    told: list[tuple[str, int]] = []

    def tell(name: str, cases: int) -> None:
        told.append((name, cases))

    verdict = check_blobs(device_subject(HandmadeBlob), steps=0, suites=["rules", "walks"], progress=tell)

    rules, walks = verdict.suites

    assert 0 == walks.cases
    assert [*(("rules", number) for number in range(rules.cases + 1)), ("walks", 0)] == told
    assert told


# --- levels, and an excepted requirement


def at(level: Level, make: Any = HandmadeBlob) -> Subject:
    return replace(device_subject(make), level=level)


def test_failures_are_tried_from_their_level_on() -> None:
    assert "failures" not in blob_suite_names(at("L2"))
    assert "failures" in blob_suite_names(at("L3"))


def test_the_tables_are_judged_by_heads_alone() -> None:
    assert not check_blobs(at("L1"), suites=["tables"]).violations
    wrong = check_blobs(at("L0", BLOB_BUGS["UpdateByMode"].make), suites=["tables"], shorten=False)
    assert [violation.requirement for violation in wrong.violations] == ["B29-update-side"]


def test_extents_that_are_excepted_hide_nothing() -> None:
    eager = at("L4", ShapeAllocatedAtOnce)
    tolerance = Tolerance(["B67-shape-lazy"])
    assert not check_blobs(eager, suites=["tables"], tolerance=tolerance).violations
    assert tolerance.met == {"B67-shape-lazy"}
    found = check_blobs(eager, suites=["tables"], shorten=False).violations
    assert [item.requirement for item in found] == ["B67-shape-lazy"]


# --- what a violation says


def test_a_violation_is_a_program_from_which_nothing_can_be_left_out() -> None:
    """It has exactly the calls that were made, and names the requirement."""
    found = caught(BLOB_BUGS["ShareCopies"].make, "sequences")

    assert "B26-share-object" == found.requirement
    assert [line for line in found.statements if "import" not in line] == [
        "log, host, device = recorded(subject)",
        "blob = subject.make((2, 3), dtype='float32', host=host, device=device)",
        "blob2 = subject.make((3, 2), dtype='float32', host=host, device=device)",
        "blob.share_data(blob2)",
    ]
    assert "(required: Sharing makes both blobs use one memory object" in found.sentence


def test_what_a_blob_raises_while_it_is_looked_at_is_its_own_fault() -> None:
    class Shy(HandmadeBlob):
        @property
        def shape(self) -> Any:
            raise RuntimeError("not now")

    found = caught(Shy, "sequences")

    assert "inspecting the blobs raised RuntimeError: not now" in found.message


def test_a_maker_that_raises_is_found() -> None:
    class Unmakable(HandmadeBlob):
        def set_up(self) -> None:
            raise ValueError("no blobs today")

    found = caught(Unmakable, "tables")

    assert ("B02-lazy", "making a blob raised ValueError: no blobs today") == (found.requirement, found.message)


def test_a_failure_that_is_kept_quiet_or_spoils_is_found() -> None:
    class Quiet(HandmadeBlob):
        def cpu_data(self) -> Any:
            try:
                return super().cpu_data()
            except MemoryError:
                return None

    class Once(HandmadeBlob):
        failed = False

        def update(self) -> None:
            if self.failed:
                self.refuse("never again")
            try:
                super().update()
            except MemoryError:
                self.failed = True
                raise

    assert {"B57-failure-keeps-numbers"} == {caught(make, "failures").requirement for make in (Quiet, Once)}


# --- the cells


def test_cells_that_were_not_taken_are_missed() -> None:
    verdict = check_blobs(device_subject(HandmadeBlob), suites=["types"])

    assert verdict.coverage.missing
    assert not verdict.passed
    with pytest.raises(Violation, match="cells were not taken"):
        verdict.require()


# --- elements


def test_numbers_are_compared_bit_for_bit_except_nan() -> None:
    """All NaNs are equal; zeros of different sign are not, and integers have no NaN."""
    quiet, other = (bytes.fromhex(digits) for digits in ("0000c07f", "0100c0ff"))
    one, less = encoded((0.0,), "float32"), encoded((-0.0,), "float32")

    assert alike(one + quiet, one + other, "float32")
    assert not alike(one + quiet, less + other, "float32")
    assert not alike(quiet, one, "float32")
    assert not alike(quiet, other, "int32")
    assert not alike(quiet, quiet + one, "float32")
    assert not alike(quiet[:3], other[:3], "float32")


@pytest.mark.parametrize("value", ["1.0", b"1.0", None, 1j, [1.0]])
def test_what_is_no_number_is_near_none(value: object) -> None:
    assert near(1, 1.0, 0.0)
    assert near(float("nan"), float("nan"), 0.0)
    assert near(float("inf"), float("inf"), 0.0)
    assert near(1.0 + 1e-13, 1.0, 1e-12)
    assert not near(1.0 + 1e-13, 1.0, 0.0)
    assert not near(value, 1.0, 1e-2)
