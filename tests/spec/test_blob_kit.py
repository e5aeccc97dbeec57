"""The conformance kit for blobs: which blobs pass, which are refused, and its messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob
from mutants.blob.shapes import ShapeAllocatedAtOnce
from subjects import blob_device_subject, device_subject, host_subject

from syncedmem.model import InvalidArgumentError, Mode, SyncedHead
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
from syncedmem.spec.blob.driver import BlobDriver
from syncedmem.spec.blob.elements import TYPES, alike, decoded, encoded, itemsize, near, numbers, pour, shown
from syncedmem.spec.blob.oracle import Exporter, Other, World, failing_calls, foresee
from syncedmem.spec.blob.scenarios import Scenario, run_scenario, shortened
from syncedmem.spec.blob.steps import REFUSED, BlobCall, Check, Extents, Fail, Make, Prepare

if TYPE_CHECKING:
    from collections.abc import Callable

U, C, G, S = SyncedHead


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
    assert (144 if taken.device else 48, 0) == (verdict.coverage.cells, verdict.coverage.missing)


@pytest.mark.parametrize("steps", [1, 100])
def test_steps_of_blobs_are_steps(steps: int) -> None:
    """As many generated calls as are wanted are made, or more, and another seed makes others."""
    taken = [check_blobs(blob_device_subject(), steps=steps, seed=seed, suites=["walks"]).generated for seed in (0, 1)]
    first, other = (it.moves if it else Counter[str]() for it in taken)

    assert min(first.total(), other.total()) >= steps
    assert first != other
    assert all(it and 8 * it.walks <= it.moves.total() and it.starts for it in taken)


def test_the_requirements_for_a_subject_follow_from_what_it_offers() -> None:
    """They depend on its profile, and on whether it has a device and messages."""
    device, host = (set(blob_requirements_for(subject(HandmadeBlob))) for subject in (device_subject, host_subject))
    caffe = set(blob_requirements_for(replace(device_subject(HandmadeBlob), profile="caffe")))

    assert {"B48-no-device"} == host - device
    assert {"B17-gpu-shape", "B29-update-side"} < device - host
    assert {"B44-int-count"} == caffe - device
    assert {"safe"} == {REQUIREMENTS[name].profile for name in device - caffe}
    assert {name for name, it in REQUIREMENTS.items() if it.kind == "blob"} == device | host | caffe


def test_what_a_subject_is_not_judged_by_is_no_violation() -> None:
    """Only the profile `safe` has B62; the call is accepted, and its steps go on."""
    judged, lenient = (BlobDriver(replace(blob_device_subject(), profile=profile)) for profile in ("safe", "caffe"))
    for driver in (judged, lenient):
        driver.make((2, 3))
    lenient.check(Check("B62-negative-index", "blob.offset(0)", REFUSED))

    assert "blob.offset(0)" == lenient.reproducer.lines[-1]
    with pytest.raises(Violation, match="B62-negative-index: the last call was not refused"):
        judged.check(Check("B62-negative-index", "blob.offset(0)", REFUSED))


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


@pytest.mark.parametrize("steps", [-1, 1.5, True, "6"])
def test_a_number_of_steps_is_asked_for(steps: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="steps"):
        check_blobs(blob_device_subject(), steps=steps)


def test_no_steps_are_none_and_progress_is_told() -> None:
    told: list[tuple[str, int]] = []

    def tell(name: str, cases: int) -> None:
        told.append((name, cases))

    verdict = check_blobs(blob_device_subject(), steps=0, suites=["rules", "walks"], progress=tell)

    rules, walks = verdict.suites

    assert 0 == walks.cases
    assert [*(("rules", number) for number in range(rules.cases + 1)), ("walks", 0)] == told
    assert told


# --- what a violation says


def test_a_violation_is_a_program_from_which_nothing_can_be_left_out() -> None:
    """It has exactly the lines that were run, and names the requirement."""
    found = caught(BLOB_BUGS["ShareCopies"].make, "sequences")

    assert "B26-share-object" == found.requirement
    assert [line for line in found.statements if "import" not in line] == [
        "log, host, device = recorded(subject)",
        "blob = subject.make((2, 3), dtype='float32', host=host, device=device)",
        "blob2 = subject.make((3, 2), dtype='float32', host=host, device=device)",
        "blob.share_data(blob2)",
    ]
    assert "(required: Sharing makes both blobs use one memory object" in found.sentence


@pytest.mark.deep
@pytest.mark.parametrize("name", ["UpdateAdds", "CopiesByHead", "ShapeBeforeCheck", "FloatsFirst", "Hoards"])
def test_a_reproducer_runs_as_it_stands(name: str) -> None:
    """It needs only a subject, not the kit."""
    bug = BLOB_BUGS[name]
    found = caught(bug.make)
    names: dict[str, Any] = {"subject": device_subject(bug.make)}
    exec(found.reproducer, names)  # noqa: S102 -- a reproducer is there to be run

    assert "host" in names
    assert {True} == {isinstance(it, bug.make) for name, it in names.items() if name.startswith("blob")}


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


@pytest.mark.deep
def test_a_walk_finds_what_takes_several_blobs() -> None:
    """The kit then shrinks the walk as far as possible."""

    class ForgetsSecond(HandmadeBlob):
        shared = 0

        def share_diff(self, other: Any) -> None:
            self.check_count(other)
            self.shared += 1
            if self.shared < 2:
                super().share_diff(other)

    found = check_blobs(device_subject(ForgetsSecond), steps=6000, suites=["walks"]).violations[0]

    assert "B26-share-object" == found.requirement
    assert 2 == sum("share_diff" in line for line in found.statements)


def test_a_double_free_is_found() -> None:
    class FreesTwice(HandmadeBlob):
        def grow(self, count: int) -> None:
            before = self.data_memory
            super().grow(count)
            if before.own_cpu_data and before.size:
                place = self.device.pinned_host() if before.cpu_malloc_use_cuda else self.host
                place.release(before.cpu_data().obj)

    assert "B60-nothing-left" == caught(FreesTwice, "shapes").requirement


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


# --- the cells, and the oracle


def test_cells_that_were_not_taken_are_missed() -> None:
    verdict = check_blobs(blob_device_subject(), suites=["types"])

    assert verdict.coverage.missing
    assert not verdict.passed
    with pytest.raises(Violation, match="cells were not taken"):
        verdict.require()


def test_the_oracle_keeps_what_lies_behind() -> None:
    """A write in a smaller shape changes only the first elements; the larger shape shows the others again."""
    world = World("int32", has_device=False, mode=Mode.CPU).make(0, (3,))
    steps = [BlobCall(0, "mutable_cpu_data"), BlobCall(0, "reshape", ((2,),)), BlobCall(0, "mutable_cpu_data")]
    for number, step in enumerate(steps):
        world = foresee(world, step, number).after
        if step.call == "mutable_cpu_data":
            world = world.wrote(0, "data", "cpu", encoded([number + 1] * world.blobs[0].count, "int32"))
    shown_again = (
        foresee(foresee(world, BlobCall(0, "reshape", ((3,),)), 3).after, BlobCall(0, "cpu_data"), 4).view or b""
    )

    assert (3, 3, 1) == decoded(shown_again, "int32")


def test_shrinking_what_was_never_written_asks_for_nothing() -> None:
    """There are no numbers to copy, so no allocator is called."""
    world = World("float32", has_device=True, mode=Mode.GPU).make(0, (3,))
    foreseen = foresee(foresee(world, BlobCall(0, "reshape", ((1,),)), 0).after, BlobCall(0, "shrink_to_fit"), 1)

    assert ((), 1) == (foreseen.calls, foreseen.after.capacity(0))
    assert [U, U] == [foreseen.after.head(0, part) for part in ("data", "diff")]


def test_what_cannot_fail_is_not_made_to_fail() -> None:
    """A refused call, or a call that uses no allocator, is made without an injected failure."""
    world = World("float32", has_device=True, mode=Mode.GPU).make(0, (2,)).make(1, (2,))
    counts = [
        failing_calls(world, step)
        for step in (
            BlobCall(0, "update"),
            BlobCall(0, "mode", (Mode.CPU,)),
            BlobCall(0, "cpu_data"),
            BlobCall(0, "copy_from", (Other(1),)),
        )
    ]
    driver = BlobDriver(blob_device_subject())
    driver.make((2,))
    driver.perform_failing(BlobCall(0, "update"), 1)

    assert [0, 0, 2, 5] == counts
    assert [U, U] == [driver.world.head(0, part) for part in ("data", "diff")]


class Counts(HandmadeBlob):
    """Counts three elements as four."""

    @property
    def count(self) -> int:
        return 4 if self.axes == (3,) else super().count


def shortest(*steps: Any) -> list[str]:
    """Return the shortened program of a failing scenario of three blobs."""
    scenario = Scenario(((2,), (3,), (4,)), steps)
    with pytest.raises(Violation) as caught:
        run_scenario(device_subject(Counts), scenario)
    found = shortened(device_subject(Counts), scenario, caught.value)
    return [line for line in found.statements if "import" not in line and "recorded" not in line]


def test_blobs_that_take_no_part_are_left_out() -> None:
    assert ["blob2 = subject.make((3,), dtype='float32', host=host, device=device)"] == shortest(BlobCall(0, "update"))


@pytest.mark.parametrize(
    ("step", "blobs"),
    [
        (Make(2, None), {2}),
        (BlobCall(2, "share_data", (Other(1),)), {1, 2}),
        (BlobCall(2, "set_cpu_data", (Exporter(0),)), {0, 2}),
        (BlobCall(0, "mode", (Mode.CPU,)), set[int]()),
        (Fail(BlobCall(1, "update"), 2), {1}),
        (Check("B56-unchanged", "blob2.share_data(blob)", REFUSED), {0, 1}),
        (Prepare("message = blob3.to_proto()"), {2}),
        (Extents(), {0}),
    ],
)
def test_a_step_says_what_blobs_it_uses(step: Any, blobs: set[int]) -> None:
    assert blobs == step.blobs


# --- elements


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_are_whole_and_come_back(dtype: str) -> None:
    content = numbers(3, 7, dtype)

    assert 7 * itemsize(dtype) == len(content)
    assert content == encoded(decoded(content, dtype), dtype)
    assert content != numbers(4, 7, dtype)
    assert all(value == int(value) for value in decoded(content, dtype))


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


def test_a_sum_that_is_no_number_and_a_short_shape_are_called_so() -> None:
    """Each is reported under its own requirement, not as another error or as a blob that cannot be inspected."""
    found = [caught(BLOB_BUGS[name].make, "rules") for name in ("SumsqInWords", "ShortShape")]

    assert ["B32-sumsq", "B17-gpu-shape"] == [it.requirement for it in found]
    assert "sumsq_data is '" in found[0].message
    assert "not 32-bit integers" in found[1].message


def test_of_many_numbers_the_first_that_differ_are_shown() -> None:
    found = caught(BLOB_BUGS["UpdatesAThousand"].make, "rules")

    assert "from byte 4000 of 4012, expected" in found.message
    assert len(found.message) < 200


def test_pouring_fills_host_and_device_views() -> None:
    """Pouring no bytes changes nothing."""
    there = blob_device_subject().device
    assert there is not None
    array: Any = there.empty(4)
    host = bytearray(4)
    for view in (array, host):
        pour(view, b"abcd")
        pour(view, b"")

        assert b"abcd" == shown(view)


def test_extents_that_cannot_be_had_are_the_blobs_fault() -> None:
    class NoExtents(HandmadeBlob):
        def gpu_shape(self) -> Any:
            raise RuntimeError("no device shape")

    found = caught(NoExtents, "rules")

    assert ("B17-gpu-shape", True) == (found.requirement, "no device shape" in found.message)


def test_a_driver_finishes_only_when_everything_is_freed() -> None:
    driver = BlobDriver(blob_device_subject())
    driver.make((2,))
    driver.perform(BlobCall(0, "mutable_cpu_data"))
    held = driver.blob(0)
    with pytest.raises(Violation, match="B60-nothing-left: allocated are 1 x 8 bytes on cpu, expected nothing"):
        driver.finish()

    assert held.data_memory.own_cpu_data
