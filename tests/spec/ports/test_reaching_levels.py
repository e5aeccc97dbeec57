"""The level that a port reaches, and the verdict on it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from port_fixtures import LIMITS, wrong

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.model import caffe
from syncedmem.model.opening import machine_of
from syncedmem.spec import Subject, check_conformance
from syncedmem.spec.engine.report import Conformance, SuiteResult
from syncedmem.spec.engine.violation import Violation
from syncedmem.spec.memory.coverage import Coverage, transitions_of
from syncedmem.spec.ports.conformance import Claim, PortReport, conform, conform_program
from syncedmem.spec.ports.protocol import PortError
from syncedmem.spec.ports.targets import MakerTarget, ProgramTarget, command_target, maker_of, subject_of, target

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec.requirements import Level, Profile

EXAMPLES = {"port.py": "L2", "port.mjs": "L3"}
PLACE = Path(__file__).parents[3] / "examples" / "ports" / "json"
ALLOCATORS = (CPUDeviceAllocator, SimulatedDeviceAllocator)
REFERENCE = "syncedmem.spec:ReferenceMemory"


def only(suite: str) -> Callable[[Subject], tuple[str, ...]]:
    """Names of suites: of this one alone."""

    def names(_: Subject) -> tuple[str, ...]:
        return (suite,)

    return names


def example(name: str) -> ProgramTarget:
    program = sys.executable if name.endswith(".py") else shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    return ProgramTarget(name, (program, str(PLACE / name)))


@pytest.mark.deep
@pytest.mark.parametrize("profile", ["caffe", "safe"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_conform_to_their_level(name: str, profile: Profile) -> None:
    """In the profile safe, calls after release are refused too, which these ports do not do."""
    level: Any = EXAMPLES[name]
    with example(name).connect(LIMITS, "") as port:
        assert level == port.hello["level"]
        safe = ("tour", "failures") if level == "L3" else ("tour",)
        suites = ("tour", "lent", "walks") if profile == "caffe" else safe
        found = check_conformance(subject_of(port, name, profile, level), steps=200, suites=suites)

    assert not found.violations
    assert found.passed
    assert {"P01-answers", "P02-one-answer"} <= set(found.checked)
    assert ("P03-fails-when-told" in found.checked) == (level == "L3")


@pytest.mark.deep
@pytest.mark.parametrize(("edition", "transitions"), [("early", 140), ("cpu_only", 48)])
@pytest.mark.parametrize("level", ["L0", "L2"])
def test_a_port_may_be_of_another_edition(edition: str, transitions: int, level: Level) -> None:
    with wrong(edition).connect(LIMITS, edition) as port:
        found = check_conformance(
            subject_of(port, edition, "caffe", level), steps=60, suites=("cells", "lent", "walks")
        )

    assert not found.violations
    assert (transitions, 0) == (found.coverage.count, found.coverage.missing)
    assert len(transitions_of(machine_of(edition))) == transitions
    assert not {"R15-adopt-device", "R21-push"} & set(found.checked) or edition == "cpu_only"


@pytest.mark.deep
def test_pushes_may_happen_later() -> None:
    with wrong("defers").connect(LIMITS, "") as port:
        found = check_conformance(subject_of(port, "defers", "safe", "L4"), suites=("flights",), steps=0)
        again = check_conformance(subject_of(port, "defers", "caffe", "L4"), suites=("tour",), steps=0)

    assert not found.violations
    assert "R42-in-flight-not-freed" in found.checked
    assert not again.violations


@pytest.mark.deep
def test_sizes_that_are_too_large_for_a_port_are_left_out() -> None:
    with wrong("small").connect(LIMITS, "") as port:
        subject = subject_of(port, "small", "caffe", "L0")
        found = check_conformance(subject, suites=("sizes", "walks"), steps=100)
        lines = port.requests(whole=True)

    assert 4096 == subject.largest
    assert not found.violations
    assert not any('"size": 8192' in line for line in lines)


def bench(way: str, wanted: Claim) -> Any:
    return conform_program(wrong(way), wanted, LIMITS)


def level_found(level: Level, *found: Violation) -> Conformance[Coverage]:
    """The result of a level at which these violations were found."""
    suites = tuple(SuiteResult(item.requirement, 1, 1, 0.0, item) for item in found)
    judged = tuple(item.requirement for item in found)
    return Conformance("x", suites, Coverage(caffe.CAFFE), 0.0, judged, level=level)


def test_the_reasons_for_the_next_level_come_first_as_the_highest_level_saw_them() -> None:
    seen = [Violation("R10-same-bytes", level) for level in ("L3", "L2", "L1")]
    copy, head = Violation("R08-copy-up", "L2"), Violation("R11-head", "L1")
    results = level_found("L3", seen[0]), level_found("L2", copy, seen[1]), level_found("L1", head, seen[2])
    leak = Violation("R27-release-frees-owned", "now")
    report = PortReport("x", "caffe", Claim("caffe"), results, (leak, seen[2]), "L3")

    assert {"L1": [head, seen[0]], "L2": [copy], "": [leak]} == {
        level: [*found] for level, found in report.reasons.items()
    }
    assert [head, seen[0], copy, leak] == report.violations


def test_a_maker_names_the_highest_level_but_a_subject_its_own(tmp_path: Path) -> None:
    text = "from syncedmem.spec import Subject\nfrom syncedmem import CPUDeviceAllocator\n"
    text += "lower = Subject('lower', object, CPUDeviceAllocator(), None, level='L1')\n"
    (tmp_path / "names_a_level.py").write_text(text, encoding="utf-8")

    assert "L4" == MakerTarget(REFERENCE, ALLOCATORS).top()
    assert "L1" == MakerTarget(f"{tmp_path / 'names_a_level.py'}:lower", ALLOCATORS).top()


@pytest.mark.deep
def test_a_port_that_misses_transitions_does_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.conformance.suite_names", only("several"))

    report = bench("right", Claim("caffe", "L0"))
    assert "does not conform to caffe/L0: " in report.line
    assert "transitions were not taken" in report.line
    assert 'failures="1"' in report.as_junit()
    assert 'message="' in report.as_junit()


@pytest.mark.deep
def test_a_maker_may_make_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.blob.kit.blob_suite_names", only("shapes"))
    found = MakerTarget("syncedmem:Blob", ALLOCATORS)
    report = conform(lambda level: found.subject("safe", level, ""), "L4", Claim("safe", blobs=True))

    assert ["L4", "L3", "L2", "L1", "L0"] == [result.level for result in report.results]
    assert report.line.startswith("does not conform to safe/L0: ")
    assert report.line.endswith(" cells were not taken")
    with pytest.raises(PortError, match="right has no blobs"):
        bench("right", Claim("safe", blobs=True))


def test_a_file_may_have_the_name_of_a_module(tmp_path: Path) -> None:
    """Whether the standard library has it or another folder; the same file is the same module."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "select.py").write_text(f"def maker():\n    return {folder.name!r}\n", encoding="utf-8")
    found = [maker_of(f"{folder / 'select.py'}:maker") for folder in folders]

    assert ["one", "two"] == [maker() for maker in found]
    assert maker_of(f"{folders[0] / 'select.py'}:maker") is found[0]
    (tmp_path / "wrong.py").write_text("raise KeyError(1)", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(PortError, match=r"wrong.py cannot be imported: KeyError: 1"):
            maker_of(f"{tmp_path / 'wrong.py'}:maker")


SUBJECT = Subject("mine", maker_of(REFERENCE), CPUDeviceAllocator(), None)


def test_a_target_may_be_a_subject() -> None:
    found = MakerTarget(f"{__file__}:SUBJECT", ALLOCATORS).subject("safe", "L2", "")

    assert ("mine", "L2", "cpu_only") == (found.name, found.level, found.edition)
    assert MakerTarget(REFERENCE, ALLOCATORS).subject("safe", "L2", "cpu_only").device is None


@pytest.mark.parametrize(
    ("find", "text", "message"),
    [
        (maker_of, "no_such_module:maker", "no_such_module cannot be imported: ModuleNotFoundError"),
        (maker_of, "syncedmem.spec:nothing", "syncedmem.spec has no nothing"),
        (maker_of, "syncedmem.spec:REQUIREMENTS", "makes nothing: it is"),
        (target, "./no_such_library.so", "./no_such_library.so: there is no such file"),
        (target, "port", "'port' is neither module:maker nor a shared library"),
        (target, ":x", "':x' is neither"),
        (command_target, "", "the command is empty"),
        (command_target, "'", "is no command"),
    ],
)
def test_what_is_no_maker_no_target_and_no_command_is_refused(
    find: Callable[..., object], text: str, message: str
) -> None:
    with pytest.raises(PortError) as caught:
        find(text, *([ALLOCATORS] if find is target else []))

    assert message in str(caught.value)


def test_a_command_is_words_and_a_library_is_run_by_the_harness(tmp_path: Path) -> None:
    assert ("./port", "--flag") == command_target("./port --flag").arguments
    (tmp_path / "libport.so").write_text("", encoding="utf-8")
    found = target(str(tmp_path / "libport.so"), ALLOCATORS)
    assert isinstance(found, ProgramTarget)
    assert [sys.executable, str(tmp_path / "libport.so")] == [found.arguments[0], found.arguments[-1]]
