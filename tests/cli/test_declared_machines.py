"""``--edition`` with a machine of somebody's own: a Python file, or a JSON document."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncedmem.cli import main
from syncedmem.model import EDITIONS
from syncedmem.model.exports.document import machine_json

LINE = f"{Path(__file__).parents[2]}/examples/machines/msi.py:LINE"
MINE = """
from dataclasses import replace
from syncedmem.model import Call, Declaration
caffe = Declaration.of("caffe")
NO_PUSH = Declaration(
    replace(caffe.edition, name="no_push", cycles=()),
    tuple(row for row in caffe.rows if row.call is not Call.ASYNC_GPU_PUSH),
)
EMPTY = replace(NO_PUSH, rows=())
LONELY = replace(NO_PUSH, rows=tuple(row for row in NO_PUSH.rows if row.dest is None or row.dest.name != "SYNCED"))
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a file of machines, and with files that are none."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.py").write_text(MINE)
    tmp_path.joinpath("raises.py").write_text("1 / 0\n")
    tmp_path.joinpath("unsound.py").write_text(
        "from syncedmem.model import declare\nM = declare('lamp', 'A lamp', heads='on', calls='push', rows=())\n"
    )
    tmp_path.joinpath("leaves.py").write_text("raise SystemExit\n")
    tmp_path.joinpath("broken.json").write_text("{")
    tmp_path.joinpath("all.json").write_text(machine_json())
    tmp_path.joinpath("old.json").write_text(machine_json("caffe").replace('"version": "2.0"', '"version": "1.0"'))


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


def test_a_run_of_a_machine_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A push is a call of Caffe's, and not of a machine without pushes."""
    log = tmp_path / "run.jsonl"
    log.write_text('{"edition": "no_push", "size": 2}\n{"call": "cpu_data"}\n{"call": "gpu_data"}\n')
    assert not run(monkeypatch, "check-trace", "run.jsonl", "--edition", "mine.py:NO_PUSH")
    assert "run.jsonl is a run of no_push: 3 lines\n" == capsys.readouterr().out
    assert 2 == run(monkeypatch, "check-trace", "run.jsonl")
    assert "there is no edition 'no_push'" in capsys.readouterr().err
    log.write_text('{"edition": "early", "size": 2}\n{"call": "cpu_data"}\n')
    assert not run(monkeypatch, "check-trace", "run.jsonl", "--edition", "mine.py:NO_PUSH")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("late", f"unknown edition 'late'; there are {', '.join(EDITIONS)}, and FILE.py:NAME and FILE.json for other"),
        ("mine.py", "mine.py is a Python file: say which declaration in it is meant, mine.py:NAME"),
        ("mine.py:", "mine.py is a Python file: say which declaration in it is meant, mine.py:NAME"),
        ("mine.py:MISSING", "mine.py has no MISSING"),
        ("mine.py:NUMBER", "mine.py:NUMBER is no Declaration but of type int"),
        ("mine.py:EMPTY", "no_push: this machine has no rows"),
        ("mine.py:LONELY", "no_push: cpu_data in HEAD_AT_GPU with no fact: no row is enabled"),
        ("raises.py:M", "raises.py cannot be run: ZeroDivisionError: division by zero"),
        ("unsound.py:M", "unsound.py: lamp: a head cannot be named 'on': use upper-case letters, digits and _"),
        ("leaves.py:M", "leaves.py cannot be run: SystemExit"),
        ("missing.py:M", "missing.py: No such file or directory"),
        ("missing.json", "missing.json: "),
        ("broken.json", "broken.json: this is broken JSON: line 1, column 2"),
        ("old.json", "old.json: its version is 1.0, and this needs 2.0: export it again"),
        ("all.json", "all.json: it has several editions: name one, caffe, early, cpu_only"),
        ("all.json:late", "all.json: it has no edition late; it has caffe, early, cpu_only"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["diagram"], ["check-trace", "run.jsonl"], ["explore", "--out", "page.html"]],
    ids=["diagram", "check-trace", "explore"],
)
def test_what_is_no_machine_is_one_line(
    command: list[str], text: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake is one line and exit status 2, and nothing is written."""
    assert 2 == run(monkeypatch, *command, "--edition", text)
    said = capsys.readouterr().err
    assert said.startswith(f"syncedmem: {message}")
    assert 1 == said.count("\n")
    assert not Path("page.html").exists()


def test_a_machine_with_names_of_its_own_is_drawn_and_compared_with_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.joinpath("run.jsonl").write_text(
        '{"call": "read", "head": "SHARED"}\n{"call": "evict", "head": "SHARED"}\n'
    )
    assert run(monkeypatch, "diagram", "--edition", LINE, "--calls", "evict", "-o", "msi.svg") == 0
    assert "A line of a cache with the protocol MSI (msi)" in tmp_path.joinpath("msi.svg").read_text()
    assert run(monkeypatch, "check-trace", "run.jsonl", "--edition", LINE) == 1
    assert run(monkeypatch, "diagram", "--edition", LINE, "-o", "msi.rs") == 2
    told, said = (it.replace("\n", " ") for it in capsys.readouterr())
    assert "run.jsonl is not a run of msi from line 2: seen evict, head SHARED, expected evict: no action" in told
    assert "the format rust has Caffe's names, and msi has its own: use mermaid" in said
    assert not tmp_path.joinpath("msi.rs").exists()
