"""Commands with a machine of somebody's own: a Python file, or a JSON document."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncedmem.cli import main
from syncedmem.model import EDITIONS
from syncedmem.model.exports.document import machine_json

if TYPE_CHECKING:
    from collections.abc import Callable

MINE = """
from syncedmem.model.caffe import CAFFE
from syncedmem.model.declaration import Machine, Row
NO_PUSH = CAFFE.select("no_push", title="edition no_push", without="async_gpu_push")
BOTH = Machine("both", [Row("go", "A", "B"), Row("go", "A", "A")])
LONELY = Machine("lonely", [Row("go", "A", "A"), Row("go", "B", "C")])
LOOKS = Machine("looks", [Row("look", "A")])
NUMBER = 3
from syncedmem.spec import Policy
ZEROING = Policy(("host", "device"), lazy=frozenset(("host", "device")), first_touch="zero")
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a file of machines, and with files that are none."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.py").write_text(MINE)
    tmp_path.joinpath("raises.py").write_text("1 / 0\n")
    tmp_path.joinpath("empty.py").write_text("from syncedmem.model.declaration import Machine; M = Machine('m', [])")
    tmp_path.joinpath("leaves.py").write_text("raise SystemExit\n")
    tmp_path.joinpath("broken.json").write_text("{")
    tmp_path.joinpath("all.json").write_text(machine_json())
    tmp_path.joinpath("lines.json").write_text(machine_json("caffe").replace('"call": "cpu_data"', r'"call": "a\nb"'))
    tmp_path.joinpath("old.json").write_text(machine_json("caffe").replace('"version": "1.0"', '"version": "2.0"'))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line, and return its exit status."""
    monkeypatch.setattr("sys.argv", ["syncedmem", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_machine_of_a_python_file_is_drawn_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture of the JSON document is the picture of the Python file."""
    assert not run(monkeypatch, "diagram", "--edition", "mine.py:NO_PUSH", "-o", "one.svg", "--trace", "cpu_data")
    assert not run(monkeypatch, "diagram", "--edition", "mine.py:NO_PUSH", "-o", "mine.json")
    assert not run(monkeypatch, "diagram", "--edition", "mine.json", "-o", "two.svg", "--trace", "cpu_data")
    assert not run(monkeypatch, "diagram", "--edition", f"{tmp_path}/mine.json:no_push", "-o", "two.svg", "--check",
                   "--trace", "cpu_data")  # fmt: skip
    assert tmp_path.joinpath("one.svg").read_text() == tmp_path.joinpath("two.svg").read_text()
    assert "edition no_push" in tmp_path.joinpath("one.svg").read_text()


def test_a_file_with_one_machine_is_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of ours that it imports do not count."""
    text = "from syncedmem.model.caffe import CAFFE\nfrom syncedmem.model import Machine, Row\n"
    tmp_path.joinpath("one.py").write_text(
        f"{text}DOOR = Machine('door', [Row('open', 'SHUT', 'OPEN')])\nSAME = DOOR\n"
    )
    assert not run(monkeypatch, "diagram", "--machine", "one.py", "-o", "one.svg")
    assert not run(monkeypatch, "diagram", "--machine", "one.py:DOOR", "-o", "one.svg", "--check")


def test_a_run_of_a_machine_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A push is a call of Caffe's, and not of a machine without pushes."""
    log = tmp_path / "run.jsonl"
    log.write_text('{"edition": "no_push", "size": 2}\n{"call": "cpu_data"}\n{"call": "gpu_data"}\n')
    assert not run(monkeypatch, "check-trace", "run.jsonl", "--edition", "mine.py:NO_PUSH")
    assert "run.jsonl is a run of no_push: 3 lines\n" == capsys.readouterr().out
    assert 2 == run(monkeypatch, "check-trace", "run.jsonl")
    assert "there is no machine 'no_push'" in capsys.readouterr().err
    log.write_text('{"edition": "early", "size": 2}\n{"call": "cpu_data"}\n')
    assert not run(monkeypatch, "check-trace", "run.jsonl", "--edition", "mine.py:NO_PUSH")


PETSC, TCP = (f"{Path(__file__).parents[2]}/examples/machines/{name}.py" for name in ("petsc", "tcp"))
MAKERS = """
from functools import partial
from machines import PETSC
from syncedmem.spec import ReferenceMemory

class Forgets(ReferenceMemory):
    def copy(self, *_):
        pass

right, wrong = (partial(kind, machine=PETSC) for kind in (ReferenceMemory, Forgets))
"""


def test_a_machine_has_vectors_that_are_replayed_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are a run of it; a right memory passes them, a wrong one does not, and Caffe's commands refuse them."""
    tmp_path.joinpath("makers.py").write_text(MAKERS)
    machine, file = ("--machine", f"{PETSC}:PETSC"), "vectors/petsc/tour.jsonl"
    writing = ("vectors", "--out", "vectors", "--suite", "petsc/tour", *machine, "--policy", f"{PETSC}:POLICY")

    assert not run(monkeypatch, *writing)
    assert not run(monkeypatch, *writing, "--check")
    assert not run(monkeypatch, "check-trace", file, *machine)
    assert not run(monkeypatch, "replay", file, "makers.py:right", *machine)
    capsys.readouterr()
    assert 1 == run(monkeypatch, "replay", file, "makers.py:wrong", *machine)
    assert "R07-copy-down: saw allocate host, expected allocate host, copy host\n" in capsys.readouterr().out
    assert 2 == run(monkeypatch, "replay", file, "makers.py:right")
    assert "it has a wrong 'edition': 'petsc' is not one of caffe, early, cpu_only" in capsys.readouterr().err


def test_the_table_of_a_machine_is_verified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    petsc = ("verify", "--model", f"{PETSC}:PETSC")

    assert not run(monkeypatch, *petsc)
    assert "petsc is sound: 6 states and 36 transitions" in (out := capsys.readouterr().out)
    assert "--policy" in out
    assert not run(monkeypatch, *petsc, "--policy", f"{PETSC}:POLICY", "--json", "-")
    printed = capsys.readouterr()
    assert "The table does what the oracle expects, by 8 invariants in 11 states" in printed.err
    assert 11 == json.loads(printed.out)["counts"]["proved_states"]
    assert 1 == run(monkeypatch, *petsc, "--policy", "mine.py:ZEROING")
    assert "the policy says what was written last\n" in capsys.readouterr().out
    assert not run(monkeypatch, "verify", "--model", "early")


MUTE = """
from syncedmem.model import Call, Machine, Row
from syncedmem.spec import Policy
ROWS = [Row("Read", "HOST"), Row("Write", "HOST"), Row("Tune", "HOST")]
CALLS = [Call("Read", "read", "host"), Call("Write", "write", "host"), Call("Tune")]
TUNED = Machine("tuned", ROWS, sides=["host"], heads={"HOST": "host"}, calls=CALLS)
POLICY = Policy(("host",), lazy=frozenset(), born_fresh=frozenset(("host",)))
"""


def test_a_call_that_means_nothing_is_named_as_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a policy it is judged by the table."""
    tmp_path.joinpath("tuned.py").write_text(MUTE, encoding="utf-8")
    tuned = ("verify", "--model", "tuned.py:TUNED", "--json", "-")

    assert not run(monkeypatch, *tuned, "--policy", "tuned.py:POLICY")
    printed = capsys.readouterr()
    assert ["Tune"] == json.loads(printed.out)["not_judged"]
    assert "Tune" in printed.err
    assert not run(monkeypatch, *tuned)
    assert [] == json.loads(capsys.readouterr().out)["not_judged"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("vectors --out x --policy mine.py:ZEROING", "--policy must be left out"),
        ("vectors --out x --machine mine.py:NO_PUSH --policy mine.py:NUMBER", "mine.py:NUMBER is no"),
        (f"vectors --out x --machine '{PETSC}:PETSC' --policy mine.py:ZEROING", "the machine petsc and"),
        ("vectors --out x --machine mine.py:NO_PUSH --suite caffe/tour", "suite must be one of "),
        ("vectors --out x --machine mine.py:LOOKS", "a call of looks must be"),
        ("verify --model mine.py:NO_PUSH --policy mine.py:ZEROING", "the policy is for the sides "),
        ("verify --model early --device cpu", "--device must be left out"),
    ],
)
def test_what_goes_with_no_machine_is_one_line(arguments: str, message: str, refused: Callable[..., str]) -> None:
    assert refused(*shlex.split(arguments)).startswith(f"syncedmem: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("late", f"unknown machine 'late'; there are {', '.join(EDITIONS)}, and FILE.py:NAME and FILE.json for other"),
        ("mine.py", "mine.py is a Python file: say which machine in it is meant, mine.py:NAME"),
        ("mine.py:", "mine.py is a Python file"),
        ("mine.py:MISSING", "mine.py has no MISSING"),
        ("mine.py:NUMBER", "mine.py:NUMBER is no Machine but of type int"),
        ("mine.py:BOTH", "both: go in A: "),
        ("mine.py:LONELY", "lonely: cannot be reached: B "),
        ("empty.py:M", "empty.py cannot be run: DeclarationError: m: "),
        ("raises.py:M", "raises.py cannot be run: ZeroDivisionError: "),
        ("leaves.py:M", "leaves.py cannot be run: SystemExit"),
        ("missing.py:M", "missing.py: "),
        ("missing.json", "missing.json: "),
        ("broken.json", "broken.json: this is broken JSON: line 1, column 2"),
        ("old.json", "old.json: its version is 2.0, and this reads 1.0"),
        ("lines.json", r"lines.json: caffe: a\nb@UNINITIALIZED names the call 'a\nb'; "),
        ("all.json", "all.json: it has several machines: name one, caffe, early, cpu_only"),
        ("all.json:late", "all.json: it has no machine 'late'; it has caffe, early, cpu_only"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["diagram", "--edition"],
        ["check-trace", "run.jsonl", "--machine"],
        ["vectors", "--out", "vectors", "--machine"],
        ["verify", "--model"],
        ["explore", "-o", "x.html", "--machine"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_no_machine_is_one_line(
    command: list[str], text: str, message: str, refused: Callable[..., str]
) -> None:
    assert refused(*command, text).startswith(f"syncedmem: {message}")
