"""The report of a run: the verdict, what was not checked, programs that run as printed, and a page for any screen."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import pytest
from subjects import device_subject
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import MissingPackageError
from syncedmem.report import Document, Failure, Numbers, Provenance, Unchecked, page, provenance
from syncedmem.report.allocators import fuzz_document
from syncedmem.report.document import homeless
from syncedmem.report.ports import port_document
from syncedmem.report.schema import schema
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.spec import BlobCoverage, Conformance, Coverage, Subject, check_conformance
from syncedmem.spec.engine.call_log import recorded
from syncedmem.spec.engine.checklist import Checklist
from syncedmem.spec.engine.showing import show, showing, told
from syncedmem.spec.engine.violation import Violation
from syncedmem.spec.fuzz import Report, fuzz
from syncedmem.spec.mutants.allocator import ALLOCATOR_BUGS
from syncedmem.spec.mutants.memory import MEMORY_BUGS
from syncedmem.spec.ports.conformance import LevelResult, PortReport, Wanted
from syncedmem.spec.ports.targets import MakerTarget, command_target
from syncedmem.verification import DeviceVerdict, Verification, checks, document, verify_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browser import Explorer

ROOT = Path(__file__).parents[2]
WRONG = ROOT / "tests" / "support" / "wrong_port.py"
BUG = "CopiesUpOnlyOnce"
VALIDATOR: Any = jsonschema.Draft202012Validator(schema())
LOOKS = [(width, dark) for width in (390, 1280) for dark in (False, True)]


class Programs(HTMLParser):
    """Collects the programs of a page, as a reader who copies them has them."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre" and ("class", "program") in attrs:
            self._inside = True
            self.programs.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.programs[-1] += data

    @classmethod
    def of(cls, text: str) -> list[str]:
        found = cls()
        found.feed(text)
        return found.programs


def run(*arguments: object, code: int) -> str:
    done = CliRunner().invoke(app, [str(it) for it in arguments])
    assert code == done.exit_code, done.output
    return done.output


def python(program: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=False, **more)


def tour(_: Subject) -> tuple[str, ...]:
    return ("tour",)


@pytest.fixture
def few_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.spec.memory.kit.suite_names", tour)


# --- verify


MODEL = cache(verify_model)


@cache
def toured(bug: str = "", source: str = "") -> Conformance[Coverage]:
    """What the tour alone finds of a memory with a seeded bug; without a name, of ours."""
    subject = device_subject(MEMORY_BUGS[bug].make if bug else SyncedMemory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syncedmem.spec.memory.kit.suite_names", tour)
        return check_conformance(replace(subject, source=source), steps=0)


def verification(found: Conformance[Coverage], *more: DeviceVerdict, requested: tuple[str, ...] = ()) -> Verification:
    """What ``verify`` would find: a verdict on memories, and devices that are not here."""
    nothing = Conformance("simulated", (), Checklist(), 0.0, ())
    here = DeviceVerdict(
        "simulated", "", {"memories": found, "buffers": nothing}, "It cannot compile.", "A simulated device."
    )
    return Verification(0, MODEL(), [here, *more], 1.0, requested=requested)


MISSING = DeviceVerdict("cuda", "CUDA needs CuPy")


def test_a_device_that_was_asked_for_and_is_missing_makes_the_report_incomplete() -> None:
    """It is not the same as a failure; and a device that nobody asked for takes nothing away."""
    asked, unasked = verification(toured(), MISSING, requested=("cuda",)), verification(toured(), MISSING)
    wrong = verification(toured(BUG), MISSING, requested=("cuda",))

    assert ["incomplete", "passed", "failed"] == [it.verdict for it in (asked, unasked, wrong)]
    assert [False, True, False] == [it.passed for it in (asked, unasked, wrong)]
    for it in (asked, unasked, wrong):
        assert {"what": "cuda", "why": "CUDA needs CuPy"} == document(it).as_json()["not_checked"][0]
    missing = " Asked for and not available, so not checked: cuda."
    assert [True, False, True] == [missing in document(it).headline for it in (asked, unasked, wrong)]
    said = "Checked the model and 1 device (simulated). Nothing is wrong. Not checked: cuda."
    assert said == document(unasked).headline
    assert "Broken: R08-copy-up on simulated." in document(wrong).headline
    nothing = Verification(0, MODEL(), [MISSING])
    assert ("incomplete", True) == (nothing.verdict, "Checked the model and no device." in document(nothing).headline)


def test_verify_ends_with_status_1_if_a_device_that_was_named_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(job: str, **_: object) -> DeviceVerdict:
        name, part = job.split()
        if name in ("cuda", "opencl"):
            return DeviceVerdict(name, "it is not here")
        return DeviceVerdict(name, "", {part: toured()})

    monkeypatch.setattr(checks, "verify_part", part)
    monkeypatch.setattr(checks, "PARTS", {"memories": checks.PARTS["memories"]})
    monkeypatch.setattr(checks, "verify_model", MODEL)
    folder = tmp_path / "report"
    quick = ("verify", "--processes", "1", "--steps", "0", "--out", folder)
    said = run(*quick, "--device", "simulated", "--device", "cuda", code=1)
    data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    text = (folder / "index.html").read_text(encoding="utf-8")

    assert "incomplete. Asked for and not available, so not checked: cuda. Report: " in said
    assert (False, "incomplete") == (data["passed"], data["report"]["verdict"])
    assert "syncedmem verify --device simulated --device cuda --steps 0 --seed 0" in text
    assert "passed. Not available, so not checked: opencl, cuda. Report: " in run(*quick, code=0)


def test_the_program_on_the_page_of_verify_shows_the_seeded_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs as it is printed, and prints what the failure says was seen; on a right memory, what was expected."""
    source = "from subjects import device_subject\nfrom syncedmem.spec.mutants.memory import MEMORY_BUGS\n"
    made = f"{source}subject = device_subject(MEMORY_BUGS[{BUG!r}].make)"
    result = verification(toured(BUG, made))
    (program,) = Programs.of(page(document(result)))
    (failure,) = document(result).failures
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "support"))
    wrong = python(program)
    right = python(program.replace(f"MEMORY_BUGS[{BUG!r}].make", ""))

    assert (0, 0) == (wrong.returncode, right.returncode), wrong.stderr + right.stderr
    assert "saw nothing, expected copy gpu" == failure.message
    assert ("copy gpu" in wrong.stdout, "copy gpu" in right.stdout) == (False, True)


# --- conform


def test_the_program_on_the_page_of_a_maker_shows_the_seeded_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says itself what is tested; in a folder with a right maker it shows what was expected."""
    monkeypatch.chdir(tmp_path)
    bug = f"from syncedmem.spec.mutants.memory import MEMORY_BUGS\nmaker = MEMORY_BUGS[{BUG!r}].make\n"
    (tmp_path / "port.py").write_text(bug, encoding="utf-8")
    (tmp_path / "right").mkdir()
    (tmp_path / "right" / "port.py").write_text("from syncedmem import SyncedMemory as maker\n", encoding="utf-8")
    run("conform", "port.py:maker", "--level", "L1", "--steps", "0", "--html", "page.html", "--json", "r.json", code=1)
    data = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    (program,) = Programs.of((tmp_path / "page.html").read_text(encoding="utf-8"))
    seen, expected = data["report"]["failures"][0]["message"].removeprefix("gpu_data shows ").split(", expected ")

    VALIDATOR.validate(data)
    assert program.strip() == data["report"]["failures"][0]["program"]
    assert f"result: {seen}" in python(program, cwd=tmp_path).stdout
    assert f"result: {expected}" in python(program, cwd=tmp_path / "right").stdout


@pytest.mark.usefixtures("few_suites")
def test_the_lines_on_the_page_of_a_program_crash_it(tmp_path: Path) -> None:
    """The shell runs them as they are printed, with the paths of the home folder as a variable."""
    command = shlex.join((sys.executable, "-S", str(WRONG), "crash"))
    quick = ("--steps", "0", "--timeout", "60", "--level", "L1", "--out", tmp_path / "out")
    run("conform", "--command", command, *quick, "--html", tmp_path / "page.html", code=1)
    (program,) = Programs.of((tmp_path / "page.html").read_text(encoding="utf-8"))
    done = subprocess.run(["sh"], input=program, capture_output=True, text=True, check=False)

    assert 139 == done.returncode  # as a shell says SIGSEGV
    assert 2 == len(done.stdout.splitlines())
    VALIDATOR.validate(json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8")))


@pytest.mark.usefixtures("few_suites")
def test_a_port_that_conforms_has_a_report_without_failures(tmp_path: Path) -> None:
    command = shlex.join((sys.executable, "-S", str(WRONG), "needless copy"))
    run("conform", "--command", command, "--steps", "0", "--except", "R09", "--out", tmp_path, "--html", "-", code=0)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["report"]

    assert ("passed", []) == (data["verdict"], data["failures"])
    assert data["headline"].startswith("Conforms to caffe/L3: ")
    assert "--except R09" in data["provenance"]["again"]
    left = {it["what"]: it["why"] for it in data["not_checked"]}
    assert "it is broken, and excepted with --except" == left["R09-no-needless-copy"]
    assert "about a memory without a device" == left["R30"]


@pytest.mark.parametrize("coverage", [Coverage("caffe"), BlobCoverage(True)])
def test_a_port_that_breaks_nothing_and_misses_something_has_an_incomplete_report(
    coverage: Coverage | BlobCoverage,
) -> None:
    wanted = Wanted("caffe", "L4", blobs=isinstance(coverage, BlobCoverage), keep_going=True)
    found: Any = Conformance("port", (), coverage, 0.0, ("R01-lazy",))
    report = PortReport("port", "caffe", wanted, (LevelResult("L4", found, left={"R30-no-gpu": "why"}),), named="L4")
    made = port_document(report, command_target("./port --flag"), 1.0)

    assert ("incomplete", ()) == (made.verdict, made.failures)
    assert made.headline.endswith(" were not taken. Not judged: 1 requirement.")
    assert f"{coverage.missing} {coverage.unit} were not taken" == made.unchecked[-1].why
    assert "port as --command './port --flag'" == made.subject
    assert made.provenance.again.endswith("--keep-going")


# --- fuzz


def test_the_program_on_the_page_of_fuzz_shows_the_seeded_bug(tmp_path: Path) -> None:
    target = ALLOCATOR_BUGS["PutBackTwice"].target
    files = ("--out", tmp_path / "out", "--html", tmp_path / "page.html", "--json", tmp_path / "r.json")
    run("fuzz", target, "--steps", "2000", "--seconds", "2", *files, code=1)
    data = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    programs = Programs.of((tmp_path / "page.html").read_text(encoding="utf-8"))
    ended = [python(program) for program in programs]

    VALIDATOR.validate(data)
    assert [it["requirement"] for it in data["findings"]] == [it["requirement"] for it in data["report"]["failures"]]
    assert programs
    for failure, done in zip(data["report"]["failures"], ended, strict=True):
        assert (1, True) == (done.returncode, f"Violation: {failure['requirement']}" in done.stderr)


def test_a_run_of_the_fuzzer_that_ends_early_is_incomplete() -> None:
    """A bug that was found until then is a failure all the same."""
    right = fuzz("syncedmem.spec.mutants.allocator:Pool", steps=500, seconds=1, skip=["A17"])
    assert "passed" == fuzz_document(right).verdict
    assert fuzz_document(right).headline.startswith("No bug was found. Checked 1")
    assert Unchecked("A17-statistics", "it was to be skipped") in fuzz_document(right).unchecked
    right.known = {"A01-distinct-pointers": "why"}
    right.interrupted = "SIGINT"
    right.errors.append("no room")
    found = fuzz_document(right)

    assert "incomplete" == found.verdict
    assert found.headline.endswith(
        "It was interrupted by SIGINT: this is what was done until then. It ended early: no room."
    )
    assert Unchecked("A01-distinct-pointers", "it is a known finding, and was not found this time") in found.unchecked


def test_notes_say_what_a_program_does_not_show() -> None:
    """Of a target without a name, of steps that do not repeat, and of what a sanitizer says."""
    report: Report = fuzz(ALLOCATOR_BUGS["PutBackTwice"].target, steps=2000, seconds=2, first=True)
    (finding,) = report.findings
    report.named = False
    report.findings = [replace(finding, repeats=False, after=("A02-no-overlap",), report="ASan", times=3)]
    found = fuzz_document(report)

    assert found.headline.startswith("1 bug was found: A0")
    assert ["ASan", "2 times more"] == [found.failures[0].notes[-1], found.failures[0].notes[0][-14:-1].strip(" ,")]
    assert 6 == len(found.failures[0].notes)
    assert not found.provenance.again


# --- the data


def test_the_committed_schema_is_that_of_the_reports() -> None:
    VALIDATOR.check_schema(schema())
    assert schema() == json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("report", "verdict"), "fine"),
        (("report", "command"), "fuzz"),
        (("report", "not_checked"), [{"what": "cuda"}]),
        (("report", "provenance", "user"), "me"),
        (("report", "requirements", 0, "rows", 0, "statuses", "simulated"), "good"),
        (("seed",), "0"),
    ],
)
def test_the_schema_takes_a_report_and_refuses_what_is_wrong(path: tuple[Any, ...], value: object) -> None:
    result = verification(toured(), MISSING)
    data = json.loads(json.dumps({**result.as_json(), "report": document(result).as_json()}))
    VALIDATOR.validate(data)
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value

    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(data)


def test_a_number_without_an_explanation_is_refused() -> None:
    with pytest.raises(KeyError, match="the glossary has no luck"):
        Numbers("Numbers", "device", (("cpu", {"steps": 3, "luck": 7}, ""),))


def test_every_word_that_a_page_links_to_is_explained() -> None:
    text = page(document(verification(toured(BUG), MISSING)))
    linked = {part.partition('"')[0] for part in text.split('href="#')[1:]}

    assert {"term-walks", "term-failed", "term-checks-of-buffers"} <= linked
    assert all(f'<dt id="{name}">' in text for name in linked)


def test_the_home_folder_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the data it is ``~``, and targets take that; in lines of shell it is a variable."""
    from syncedmem.report.ports import _word  # pyright: ignore[reportPrivateUsage] -- how a word is written
    from syncedmem.spec.fuzz import driver_of

    home = tmp_path / "a user"
    home.mkdir()
    (home / "port.py").write_text("from syncedmem import SyncedMemory as maker\n", encoding="utf-8")
    (home / "pool.py").write_text("from syncedmem.spec.mutants.allocator import Pool\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    failure = Failure("me", "R01-lazy", f"{home}/port.py is wrong")
    made = Document("conform", str(home), "failed", "", Provenance((0,), {}, f"x {home}", 0.0), failures=(failure,))
    subject = MakerTarget("~/port.py:maker", (CPUDeviceAllocator, SimulatedDeviceAllocator)).subject("caffe", "L0", "")

    assert str(home) not in json.dumps(made.as_json()) + page(made)
    assert "~/port.py is wrong" in page(made)
    assert ("'a b'", "x=\"$HOME\"'/a b'") == (_word("a b"), _word(f"x={home}/a b"))
    echoed = subprocess.run(
        ["sh", "-c", f"echo {_word(f'{home}/port.py')}"], capture_output=True, text=True, check=True
    )
    assert f"{home}/port.py\n" == echoed.stdout
    maker: Any = subject.make
    assert maker(4, host=subject.host, device=subject.device)
    with driver_of("~/pool.py:Pool") as driver:
        driver.allocate(0, 16)
    monkeypatch.setenv("HOME", "/")
    assert ("/port.py", "/port.py") == (homeless("/port.py"), _word("/port.py"))


def test_no_user_is_named() -> None:
    import getpass

    made = Provenance((0,), {}, "", 0.0).as_json()
    assert {"host", "processor", "commit", "date", "libraries"} <= set(made)
    assert not {"user", "cwd", "environment"} & set(made)
    assert getpass.getuser() not in [str(it) for it in made.values()]


def test_the_commit_is_that_of_a_checkout(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With a note if files differ; nothing is said where there is no checkout, or no git."""
    assert not provenance.commit(tmp_path)
    git = ("git", "-C", str(tmp_path), "-c", "user.name=me", "-c", "user.email=me@example.org")
    (tmp_path / "file").write_text("a", encoding="utf-8")
    for words in (("init", "-q"), ("add", "file"), ("commit", "-q", "-m", "first")):
        subprocess.run((*git, *words), check=True)
    provenance.commit.cache_clear()
    clean = provenance.commit(tmp_path)
    (tmp_path / "file").write_text("b", encoding="utf-8")
    provenance.commit.cache_clear()

    assert 12 == len(clean)
    assert f"{clean} with changes" == provenance.commit(tmp_path)
    broken = tmp_path_factory.mktemp("broken")
    (broken / ".git").mkdir()
    assert not provenance.commit(broken)


def test_the_processor_has_the_name_that_the_system_gives_it(tmp_path: Path) -> None:
    """On ARM the system gives none; then it is the architecture."""
    info = tmp_path / "cpuinfo"
    info.write_text(
        "processor\t: 0\nmodel name\t: Test CPU\nprocessor\t: 1\nmodel name\t: Test CPU\n", encoding="utf-8"
    )

    assert provenance.processor(info).startswith("Test CPU, ")
    assert not provenance.processor(tmp_path / "missing").startswith(",")


def test_without_jinja2_the_page_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "syncedmem.report.rendering", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    made = Document("fuzz", "a", "passed", "b", Provenance((0,), {}, "", 0.0))

    assert "passed" == made.as_json()["verdict"]
    with pytest.raises(MissingPackageError, match=r"jinja2: pip install hypothesis jinja2 rich typer"):
        page(made)


@pytest.mark.parametrize("command", ["conform", "fuzz"])
def test_two_reports_do_not_go_to_one_place(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for places in (("--json", "-", "--html", "-"), ("--junit", "a", "--html", "a")):
        done = CliRunner().invoke(app, [command, "syncedmem:SyncedMemory", *places])
        assert f"--html must be another place than that of {places[0]}, got '{places[1]}'" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("induction", "why"),
    [
        ("not checked, z3 is missing: pip install z3-solver", "z3 is missing: pip install z3-solver"),
        ("not checked", ""),
    ],
)
def test_proofs_that_were_not_made_are_said(induction: str, why: str) -> None:
    found = verification(toured())
    told = document(replace(found, model=replace(MODEL(), induction=induction))).as_json()["not_checked"]

    what = "the invariants once more by induction"
    assert {"what": what, "why": why or "no reason is known"} in told
    assert what not in [it["what"] for it in document(found).as_json()["not_checked"]]


# --- what a program prints at its end


def test_what_was_seen_is_shown_as_it_is() -> None:
    class Held:
        head = "SYNCED"

    class OnDevice:
        def get(self) -> bytes:
            return bytes(40)

    assert "SYNCED" == told(Held())
    assert "0102" == told(bytearray([1, 2]))
    assert f"{'00' * 32}... (40 bytes)" == told(OnDevice())
    assert ("no bytes", "7") == (told(b""), told(7))


def test_what_was_seen_is_printed_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    subject = device_subject()
    log, host, device = recorded(subject)
    memory: Any = cast("Any", subject.make)(1, host=host, device=device)
    show(log=log, memory=memory)
    memory.mutable_cpu_data()[:] = 2
    show(log=log, memory=memory, view=memory.cpu_data())

    assert [
        *("log: no calls", "memory: UNINITIALIZED"),
        *("log: allocate cpu 1, zero cpu 1", "memory: HEAD_AT_CPU", "view: 02"),
    ] == capsys.readouterr().out.splitlines()


def test_a_program_that_has_no_log_stays_as_it_is() -> None:
    plain = Violation("F01-zero-bytes", "wrong", ("check_buffers(subject)",))
    begun = "log, host, device = recorded(subject)"
    kept = Violation("R10-same-bytes", "wrong", (begun, "memory = subject.make(1, host=host, device=device)"))

    assert plain.reproducer == showing(plain)
    assert "\nshow(log=log, memory=memory)\n# R10-same-bytes: wrong" in showing(kept)


# --- the page in a browser

_WIDTHS = "return [document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages of passing, failing and incomplete reports."""
    found = fuzz(ALLOCATOR_BUGS["PutBackTwice"].target, steps=2000, seconds=1, first=True)
    documents = {
        "verify passed": document(verification(toured(), MISSING)),
        "verify failed": document(verification(toured(BUG), MISSING)),
        "verify incomplete": document(verification(toured(), MISSING, requested=("cuda",))),
        "fuzz failed": fuzz_document(found),
    }
    folder = tmp_path_factory.mktemp("reports")
    made = {name: folder / f"{name}.html" for name in documents}
    for name, path in made.items():
        path.write_text(page(documents[name]), encoding="utf-8")
    return {name: path.as_uri() for name, path in made.items()}


@pytest.fixture
def browser(opened: Explorer) -> Iterator[Explorer]:
    """The browser of the explorer's tests, with other pages."""
    yield opened
    opened.look(1360, 1000)


@pytest.mark.parametrize("name", ["verify passed", "verify failed", "verify incomplete", "fuzz failed"])
def test_the_page_can_be_read_on_every_screen(browser: Explorer, pages: dict[str, str], name: str) -> None:
    """Nothing is wider than a phone, in light and in dark; all requirements are open."""
    for width, dark in LOOKS:
        browser.look(width, 844, dark=dark)
        browser.driver.get(pages[name])
        browser.run("for (const it of document.querySelectorAll('details')) it.open = true")
        assert [width, width] == browser.run(_WIDTHS)
    assert [] == browser.complaints()


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_on_a_page(browser: Explorer, pages: dict[str, str], dark: bool) -> None:
    """It looks for contrast and structure; the page has every part that a page can have."""
    browser.look(390, 844, dark=dark)
    browser.driver.get(pages["verify failed"])

    assert [] == browser.axe()
    browser.run("document.querySelector('h1').style.color = getComputedStyle(document.body).backgroundColor")
    assert "color-contrast" in [found["id"] for found in browser.axe()]


def test_a_page_that_is_too_wide_would_be_seen(browser: Explorer, pages: dict[str, str]) -> None:
    browser.look(390, 844)
    browser.driver.get(pages["verify failed"])
    browser.run("document.querySelector('.message').style.whiteSpace = 'nowrap'")
    browser.run("document.querySelector('.message').textContent = 'wide '.repeat(100)")
    seen, wanted = browser.run(_WIDTHS)

    assert seen > wanted
