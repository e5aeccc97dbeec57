"""The command ``conform``: what it refuses, what it prints and writes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_fixtures import run
from port_fixtures import WRONG, command_of

from syncedmem.model import SyncedMemoryError
from syncedmem.spec import check_conformance

if TYPE_CHECKING:
    from syncedmem.spec import Subject

pytestmark = pytest.mark.deep


def port(way: str) -> list[str]:
    return ["--command", shlex.join(command_of(way)), "--steps", "0", "--timeout", "60", "--profile", "caffe"]


@pytest.fixture(autouse=True)
def few_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    def tour(_: Subject) -> tuple[str, ...]:
        return ("tour",)

    monkeypatch.setattr("syncedmem.spec.conformance.suite_names", tour)


def conform(tmp_path: Path, *arguments: str) -> Any:
    return run("conform", "--out", str(tmp_path), *arguments)


def test_a_port_that_conforms_is_told_its_level_and_what_it_lacks_of_the_profile_safe(tmp_path: Path) -> None:
    """The status is that of the profile caffe."""
    for way, last in (("right", "to safe: yes"), ("rude", "to safe: no, R42-in-flight-not-freed")):
        done = conform(tmp_path, *port(way)[:-2])
        report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

        assert 0 == done.exit_code, done.output
        assert last == done.output.splitlines()[-1] == report["safe"]
        assert f"conforms to caffe/{report['reached']}: 3" in done.output.splitlines()[-2]
        assert "Only the profile safe looks at" not in done.output
    assert 1 == conform(tmp_path, *port("rude")[:-1], "safe").exit_code


def test_a_port_that_reaches_less_than_it_names_does_not_conform(tmp_path: Path) -> None:
    """The status is 1, and the reason for the next level is printed."""
    done = conform(tmp_path, *port("needless copy"), "--keep-going", "--junit", str(tmp_path / "report.xml"))
    last = done.output.splitlines()[-1]

    assert 1 == done.exit_code, done.output
    kept = "conforms to caffe/L1 only: 16 of 16 requirements, 558 of 558 transitions"
    assert f"{kept}; the port names L3" == last
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [("L3", False), ("L2", False), ("L1", True)] == [
        (level["level"], level["passed"]) for level in report["levels"]
    ]
    assert ("L1", "L3", False) == tuple(report[name] for name in ("reached", "named", "passed"))
    assert {"failed", "not checked"} == {requirement["status"] for requirement in report["levels"][0]["requirements"]}
    assert "What keeps it from caffe/L2: R09-no-needless-copy\n" in done.output
    assert 1 == done.output.count("R09-no-needless-copy: ")  # at once, and never again
    assert done.output.index("R09-no-needless-copy: ") < done.output.index("1 of 34 violated")
    assert all(counted in done.output for counted in ("1 of 35 violated", "1 of 34 violated", "16 of 16"))
    assert 'failures="1"' in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_the_first_violation_ends_the_test(tmp_path: Path) -> None:
    """No lower level is tested, and no suite after the one that found it."""
    done = conform(tmp_path, *port("needless copy"))
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    assert 1 == done.exit_code, done.output
    assert "does not conform to caffe/L3: R09-no-needless-copy" == done.output.splitlines()[-1]
    assert ["L3"] == [level["level"] for level in report["levels"]]
    assert "walks" not in [suite["name"] for suite in report["levels"][0]["suites"]]


def test_the_files_of_a_run_replace_those_of_the_run_before(tmp_path: Path) -> None:
    """Of the same target, and no other files; those of another target are named."""
    for name in ("R09-no-needless-copy.txt", "R10-same-bytes.jsonl", "mine.py"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    way = [*port("needless copy"), "--level", "L2"]
    conform(tmp_path, *way)
    found = {"R09-no-needless-copy.jsonl"}
    mine = {path.name for path in tmp_path.iterdir()} - found
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert found == set(report["files"])

    other = conform(tmp_path, *port("right"), "--level", "l0")
    said = f"{tmp_path} also has files of an earlier run on --command "
    assert said in other.output
    assert "needless copy" in other.output.partition(said)[2].partition(": ")[0]
    assert (tmp_path / "R09-no-needless-copy.jsonl").is_file()

    report["files"] += ["mine.py", "../out.py", 5]
    (tmp_path / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    again = conform(tmp_path, *way[:-1], "L0")
    assert "earlier run" not in again.output
    assert mine == {path.name for path in tmp_path.iterdir()}
    assert [] == json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["files"]


def test_a_violation_is_printed_with_what_shows_it(tmp_path: Path) -> None:
    done = conform(tmp_path, *port("crash"), "--level", "L2", "--seed", "3")

    assert 1 == done.exit_code, done.output
    assert "P01-answers: gpu_data: the program was ended by SIGSEGV" in done.output
    assert "Shortest program, seed 3:" in done.output
    assert "does not conform to caffe/L2: P01-answers" == done.output.splitlines()[-1]
    program = (tmp_path / "P01-answers.jsonl").read_text(encoding="utf-8")
    assert program in done.output
    assert f"wrong_port.py crash < {tmp_path / 'P01-answers.jsonl'}" in done.output


def test_a_long_program_is_only_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncedmem.cli.conform._SHOWN", 10)
    done = conform(tmp_path, *port("crash"), "--level", "L0")

    assert "Shortest program" not in done.output
    assert "Run it: " in done.output


@pytest.mark.parametrize(
    ("does", "requirement", "seconds"),
    [("raise RuntimeError(size)", "R11-head", "300"), ("import os; os._exit(3)", "P01-answers", "60")],
)
def test_a_maker_that_raises_or_ends_its_process_has_its_program_printed(
    does: str, requirement: str, seconds: str, tmp_path: Path
) -> None:
    (tmp_path / "wrong.py").write_text(f"def maker(size, *, host, device): {does}\n", encoding="utf-8")
    done = conform(tmp_path, f"{tmp_path / 'wrong.py'}:maker", "--level", "L0", "--steps", "0", "--timeout", seconds)

    assert 1 == done.exit_code, done.output
    assert "subject.make(" in done.output
    assert f"It is in {tmp_path / f'{requirement}.py'}." in done.output
    assert {f"{requirement}.py", "report.json"} <= {path.name for path in tmp_path.iterdir()}


def test_a_maker_that_cannot_be_imported_has_no_program(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
    done = conform(tmp_path, f"{tmp_path / 'ends.py'}:maker", "--level", "L0", "--steps", "0", "--timeout", "60")

    assert "P01-answers: the process ended with status 3, before anything was called" in done.output
    assert "Shortest program" not in done.output
    assert ["report.json"] == [path.name for path in tmp_path.iterdir() if path.suffix == ".json"]


def test_reports_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    done = conform(tmp_path, *port("right"), "--level", "L0", "--json", "-", "--junit", str(tmp_path / "report.xml"))

    assert "right" not in json.loads(done.stdout)["name"]
    assert "<testsuite" in (tmp_path / "report.xml").read_text(encoding="utf-8")
    other = conform(tmp_path, *port("right"), "--level", "L0", "--junit", "-", "--json", str(tmp_path / "report2.json"))
    assert other.stdout.startswith("<?xml")
    assert "L0" == json.loads((tmp_path / "report2.json").read_text(encoding="utf-8"))["reached"]


def test_what_is_excepted_is_in_the_verdict(tmp_path: Path) -> None:
    done = conform(tmp_path, *port("needless copy"), "--level", "L2", "--except", "R09", "--keep-going")

    kept = "conforms except R09 to caffe/L2: 33 of 34 requirements, 558 of 558 transitions"
    assert kept == done.output.splitlines()[-1]


WRONG_OPTIONS = [
    ("--edition late", "one of caffe, early, cpu_only"),
    ("--timeout 0", "--timeout"),
    ("--timeout nan", "--timeout"),
    ("--edition early", "is of the edition caffe, not early"),
    (f"--json {Path(WRONG).parent}", str(Path(WRONG).parent)),
    ("some:port", "name one port"),
]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        *(("conform", *row) for row in WRONG_OPTIONS),
        *(("learn", *row) for row in WRONG_OPTIONS),
        ("conform", "--profile cafe", "--profile"),
        ("conform", "--level L5", "one of L0, L1, L2, L3, L4"),
        ("conform", "--except R99", "a requirement, such as R09"),
        ("conform", "--level L4", "shows L3 at most, not L4"),
        ("conform", "--json - --junit -", "another place than that of --json"),
        ("learn", "--memory -1", "--memory"),
        ("learn", "--level L3", "--level must be one of L0, L1, L2"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, command: str, arguments: str, message: str) -> None:
    """The commands end with status 2 for errors of this package."""
    named = [*port("right")[:2], "--timeout", "60"]
    done = run(command, "--out", str(tmp_path), *named, *arguments.split())

    assert isinstance(done.exception, SyncedMemoryError), done.output
    assert message in str(done.exception)
    assert 1 == len(str(done.exception).splitlines())


def test_a_partial_run_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found until an interrupt is in the folder."""

    def interrupted(*arguments: Any, **options: Any) -> object:
        check_conformance(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("syncedmem.spec.ports.conformance.check_conformance", interrupted)
    conform(tmp_path, *port("crash"), "--level", "L2")

    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert ["P01-answers"] == [violation["requirement"] for violation in report["unfinished"]]
    assert (tmp_path / "P01-answers.jsonl").is_file()


MIRROR = """
from syncedmem.model import Action, Call, Machine, Row
from syncedmem.spec import Policy, ReferenceMemory

MACHINE = Machine(
    "mirror",
    [Row("upload", "ON_HOST", "ON_BOTH", do="send"), Row("upload", "ON_BOTH", "ON_BOTH"),
     Row("edit", ["ON_HOST", "ON_BOTH"], "ON_HOST")],
    heads={"ON_HOST": "host", "ON_BOTH": ("host", "device")},
    calls=[Call("upload", "read", "device"), Call("edit", "write", "host")],
    actions=[Action("send", "copy", "device", "host")],
)
POLICY = Policy(MACHINE.sides, born_fresh=frozenset(["host"]))
OTHER, UNBORN = Policy(("a", "b")), Policy(MACHINE.sides)

def right(size, **allocators):
    return ReferenceMemory(size, MACHINE, **allocators)

def bare(size, mem, **allocators):
    pass

def empty(size, **allocators):
    pass

class Wrong(ReferenceMemory):
    def copy(self, action, blocks, stream):
        pass

def wrong(size, **allocators):
    return Wrong(size, MACHINE, **allocators)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ("right MACHINE POLICY", 0, "conforms to caffe/L4 of the machine mirror: "),
        ("right MACHINE", 0, "conforms to caffe/L4 of the machine mirror, by its table alone: "),
        ("wrong MACHINE POLICY", 1, "does not conform to caffe/L1 of the machine mirror: R10-same-bytes"),
        ("right NOTHING POLICY", 1, "mirror.py has no NOTHING"),
        ("right MACHINE MACHINE", 1, "MACHINE is no Policy but of type Machine"),
        ("right MACHINE NOTHING", 1, "--policy {place}:NOTHING: {place} has no NOTHING"),
        ("bare MACHINE", 1, "bare cannot be called with (size, host=..., device=...): "),
        ("empty MACHINE", 1, "empty returned None, which has none of upload, edit"),
        (" MACHINE", 1, "{place} is a Python file: say what in it is meant, {place}:NAME"),
        ("right MACHINE OTHER", 1, "a policy for the sides host, device of mirror, got ('a', 'b')"),
        ("right MACHINE UNBORN", 1, "a new memory in ON_HOST: the table says ON_HOST, so fresh: host; the policy"),
    ],
)
def test_a_memory_of_another_machine(arguments: str, code: int, line: str, tmp_path: Path) -> None:
    (tmp_path / "mirror.py").write_text(MIRROR, encoding="utf-8")
    maker, *named = (f"{tmp_path / 'mirror.py'}:{name}" for name in arguments.split(" "))
    given = [item for pair in zip(("--machine", "--policy"), named, strict=False) for item in pair]
    level = ["--level", "L1"] if "wrong" in arguments else []
    result = conform(tmp_path, maker, *given, *level, "--steps", "0", "--timeout", "60")

    assert code == result.exit_code
    assert line.format(place=tmp_path / "mirror.py") in result.output.replace("\n", " ") + str(result.exception)


def test_the_program_of_a_violation_runs_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror.py").write_text(MIRROR, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    named = ["mirror.py:wrong", "--machine", "mirror.py:MACHINE", "--policy", "mirror.py:POLICY"]
    conform(tmp_path, *named, "--level", "L1", "--steps", "0", "--timeout", "60")
    program = (tmp_path / "R10-same-bytes.py").read_text(encoding="utf-8")

    assert [f"'{tmp_path / 'mirror.py'}:{name}'" in program for name in ("wrong", "MACHINE", "POLICY")] == [True] * 3


def test_one_port_must_be_named_and_a_policy_with_its_machine(tmp_path: Path) -> None:
    assert "name one port" in str(conform(tmp_path).exception)
    assert "--machine" in str(conform(tmp_path, "mirror.py:right", "--policy", "mirror.py:POLICY").exception)
