"""A command replaces the files that it has written, and no others: those only with ``--force``."""

from __future__ import annotations

import json
import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_fixtures import run
from machines import PETSC, TCP
from port_fixtures import command_of

from syncedmem.cli.output import is_other, signed, write_over
from syncedmem.model import FileAccessError
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.files import SIGN
from syncedmem.spec.fuzz import Capabilities, Finding, FuzzWanted, HeapStep, Replay, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from syncedmem.model import Machine

PORT = ("--command", shlex.join(command_of("right")), "--timeout", "60")
POOL = "mutants.allocator:Pool"

# What somebody has written, though it begins as our files do; and each way to lose it, of which {} is the file.
PAGE = b"<!doctype html>\n<html>\n<title>Mine</title>\n"
CAPTIONED = str(export("html")).encode() + b"<p>Mine</p>\n"
QUOTING = PAGE + f"<!-- {SIGN} -->\n".encode()
PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\n'
PIXELS = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x05\xdc\x00\x00\x07]\x08\x02\x00\x00\x00\xf5$\rg\x00\x00\x00\x06bKGD"
)
DATA = b'{\n  "name": "package",\n  "version": "1.0",\n  "format": 4\n}\n'
RESULTS = b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites><testsuite name="pytest"></testsuite></testsuites>\n'

QUICK: dict[str, tuple[str, bytes]] = {
    "diagram -o {}/x.svg": ("x.svg", PICTURE),
    "diagram -o {}/x.png": ("x.png", PIXELS),
    "diagram -o {}/x.pdf": ("x.pdf", b"%PDF-1.5\n%\xb5\xed\xae\xfb\n4 0 obj\n<< /Producer (cairo) >>\n%%EOF\n"),
    "diagram -o {}/x.puml": ("x.puml", b"@startuml\ntitle Mine\n@enduml\n"),
    "diagram --format mermaid -o {}/README.md": ("README.md", b"# Mine\n"),
    "diagram -o {}/x.tla": ("x.cfg", b"CONSTANT Mine = 3\n"),
    "diagram -o {}/own.html": ("own.html", CAPTIONED),
    "diagram --machine early -o {}/own.html": ("own.html", QUOTING),
    "explore -o {}/x.html": ("x.html", PAGE),
    "fuzz {}/x.hpp --write-target cpp": ("x.hpp", b"// Mine\n"),
    "fuzz {}/x.rs --write-target rust": ("x.rs", b"// Mine\n"),
    "diff caffe early --json {}/x.json": ("x.json", DATA),
    "verify --model caffe --json {}/x.json": ("x.json", DATA),
    "vectors --suite modes --out {}": ("vector.schema.json", b'{\n  "$schema": "mine"\n}\n'),
    "vectors --suite caffe/modes --out {}": ("caffe/modes.jsonl", b'{"format":1}\n'),
}
LONG: dict[str, tuple[str, bytes]] = {
    f"fuzz {POOL} --json {{}}/x.json --out {{}}/out": ("x.json", DATA),
    f"fuzz {POOL} --junit {{}}/x.xml --out {{}}/out": ("x.xml", RESULTS),
    f"fuzz {POOL} --out {{}}": ("report.json", DATA),
    f"conform {shlex.join(PORT)} --json {{}}/x.json --out {{}}/out": ("x.json", DATA),
    f"conform {shlex.join(PORT)} --junit {{}}/x.xml --out {{}}/out": ("x.xml", RESULTS),
    f"conform {shlex.join(PORT)} --out {{}}": ("report.json", DATA),
    f"learn {shlex.join(PORT)} --json {{}}/x.json --out {{}}/out": ("x.json", DATA),
    f"learn {shlex.join(PORT)} --out {{}}": ("report.json", DATA),
    f"learn {shlex.join(PORT)} --level L0 --out {{}}": ("machine.svg", PICTURE),
    "verify --device cpu --json {}/x.json --out {}/out": ("x.json", DATA),
    "verify --device cpu --out {}": ("index.html", PAGE),
    "verify --device cpu --steps 0 --out {}": ("report.json", DATA),
}
EVERY = QUICK | LONG


def words(command: str, folder: Path) -> list[str]:
    return [word.replace("{}", str(folder)) for word in shlex.split(command)]


@pytest.fixture(autouse=True)
def _nothing_begins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long does not begin where a place is refused."""

    def begin(*_: object, **__: object) -> None:
        pytest.fail("it began")

    if "refused" in request.fixturenames:
        for place in (
            "verification.verify",
            "spec.fuzz.fuzz",
            "spec.learning.learn",
            "spec.ports.conformance.conform_program",
            "explorer.explorer_page",
            "spec.vectors.suite_files",
        ):
            monkeypatch.setattr(f"syncedmem.{place}", begin)


@pytest.mark.parametrize("command", EVERY, ids=str)
def test_a_file_that_no_command_wrote_stays(command: str, refused: Callable[..., str], tmp_path: Path) -> None:
    """The error names it and ``--force``, and comes before anything is computed or written."""
    name, content = EVERY[command]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    there = {*tmp_path.rglob("*")}
    said = refused(*words(command, tmp_path))

    assert f"{tmp_path / name}: " in said
    assert "--force" in said
    assert content == (tmp_path / name).read_bytes()
    assert there == {*tmp_path.rglob("*")}


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize("leads", ["somewhere", "nowhere"])
def test_a_link_is_not_followed(command: str, leads: str, refused: Callable[..., str], tmp_path: Path) -> None:
    """Nor is it replaced, whatever it leads to, even to a file of ours or to none."""
    name, _ = EVERY[command]
    folder, target = tmp_path / "here", tmp_path / "target"
    (folder / name).parent.mkdir(parents=True)
    if leads == "somewhere":
        target.write_bytes(b"")
    (folder / name).symlink_to(target)
    said = refused(*words(command, folder))

    assert f"{folder / name}: it is a symbolic link" in said
    assert "--force" in said
    assert (folder / name).is_symlink()
    assert b"" == (target.read_bytes() if target.exists() else b"")


@pytest.mark.parametrize("command", QUICK)
@pytest.mark.parametrize("linked", [False, True])
def test_force_replaces_it_and_then_it_is_ours(command: str, linked: bool, tmp_path: Path) -> None:
    """In place of a link there is a file then, and what the link led to has not changed."""
    name, content = QUICK[command]
    folder, target = tmp_path / "here", tmp_path / "target"
    (folder / name).parent.mkdir(parents=True)
    target.write_bytes(content)
    if linked:
        (folder / name).symlink_to(target)
    else:
        (folder / name).write_bytes(content)
    arguments = words(command, folder)
    codes = [run(*arguments, *force).exit_code for force in (["--force"], [])]

    assert codes == [1 if command.startswith("diff") else 0] * 2
    assert content == target.read_bytes()
    assert not (folder / name).is_symlink()
    assert content != (folder / name).read_bytes()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_below_a_folder_no_link_is_followed(force: list[str], refused: Callable[..., str], tmp_path: Path) -> None:
    """The folder that is named may be a link itself."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")
    (tmp_path / "real" / "caffe").symlink_to(tmp_path / "elsewhere")
    said = refused("vectors", "--suite", "caffe/modes", "--out", tmp_path / "named", *force)

    assert f"{tmp_path / 'named' / 'caffe'}: it is a symbolic link" in said
    assert [] == [*(tmp_path / "elsewhere").iterdir()]


def test_a_folder_that_is_named_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")

    assert 0 == run("vectors", "--suite", "caffe/modes", "--out", str(tmp_path / "named")).exit_code
    assert (tmp_path / "real" / "caffe" / "modes.jsonl").is_file()


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"mine")
    files = {tmp_path / name: b"new" for name in ("a", "b")}
    with pytest.raises(FileAccessError) as caught:
        write_over(files, force=False)

    assert str(tmp_path / "b") == caught.value.source
    assert (b"mine", ["b"]) == ((tmp_path / "b").read_bytes(), [path.name for path in tmp_path.iterdir()])


# --- what a command has written itself is replaced


def report_of(*findings: Finding, target: str = POOL) -> Report:
    return Report(FuzzWanted(target, steps=100), "a kind", Capabilities(), protected=True, violating=[*findings])


def fuzz(monkeypatch: pytest.MonkeyPatch, report: Report, *arguments: str) -> Result:
    """What the command does with a report."""

    def reports(*_: object, on_change: Callable[[Report], None], **__: object) -> None:
        on_change(report)

    monkeypatch.setattr("syncedmem.spec.fuzz.fuzz", reports)
    return run("fuzz", POOL, *arguments)


def test_the_reports_of_fuzz_are_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = [*("--out", str(tmp_path / "out")), *("--json", str(tmp_path / "j")), *("--junit", str(tmp_path / "x"))]
    codes = [fuzz(monkeypatch, report_of(), *arguments).exit_code for _ in range(2)]

    assert [0, 0] == codes
    assert [] == [path for path in tmp_path.iterdir() if is_other(path)]


@pytest.mark.parametrize("content", [b"mine", DATA, b'{"target": 3', b"[" * 100_000, b""])
def test_a_replay_takes_the_name_of_no_other_file(
    content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor of a link.  The output names the file that was written."""
    (tmp_path / "A17-statistics.json").write_bytes(content)
    (tmp_path / "A17-statistics-2.json").symlink_to("nowhere")
    finding = Finding("A17-statistics", "wrong", (HeapStep("compare", ()),))
    written = tmp_path / "A17-statistics-3.json"
    for _ in range(2):
        result = fuzz(monkeypatch, report_of(finding), "--out", str(tmp_path))

        assert (1, str(written) in result.output) == (1, True)
        assert POOL == Replay.read(written).wanted.target
    assert content == (tmp_path / "A17-statistics.json").read_bytes()
    assert 4 == len([*tmp_path.iterdir()])


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("command", ["learn", "conform", "verify"])
def test_the_files_of_an_earlier_run_are_replaced(command: str, tmp_path: Path) -> None:
    given: dict[str, list[str]] = {
        "learn": ["syncedmem.spec:ReferenceMemory", "--edition", "cpu_only", "--steps", "0", "--timeout", "60"],
        "conform": [*PORT, "--level", "L0", "--steps", "0", "--junit", str(tmp_path / "x.xml")],
        "verify": ["--device", "cpu", "--steps", "0"],
    }
    arguments = [command, *given[command], "--out", str(tmp_path / "out"), "--json", str(tmp_path / "x.json")]

    assert [0, 0] == [run(*arguments).exit_code for _ in range(2)]
    assert [] == [path for path in tmp_path.rglob("*.*") if path.suffix != ".py" and is_other(path)]


def test_a_program_takes_the_name_of_no_other_file(tmp_path: Path) -> None:
    """The report and the output name the file that was written."""
    taken = tmp_path / "R09-no-needless-copy.jsonl"
    taken.write_text("mine")
    named = ("--command", shlex.join(command_of("needless copy")), "--steps", "0", "--timeout", "60", "--level", "L2")
    for _ in range(2):
        result = run("conform", *named, "--out", str(tmp_path))

        assert f"{tmp_path}/R09-no-needless-copy-2.jsonl" in result.output
        assert '"R09-no-needless-copy-2.jsonl"' in (tmp_path / "report.json").read_text(encoding="utf-8")
    assert "mine" == taken.read_text()
    assert 3 == len([*tmp_path.iterdir()])


WRITTEN = [
    *(f"diagram --format {name} -o {{}}/x.{kind.extension}" for name, kind in FORMATS.items()),
    *(command for command in QUICK if not command.startswith("diagram")),
]


@pytest.mark.parametrize("command", WRITTEN)
def test_a_file_is_ours_by_its_sign_alone(command: str, tmp_path: Path) -> None:
    """It is replaced as it was written; without the sign it is somebody else's, and nothing changes."""
    arguments = words(command, tmp_path)
    code = run(*arguments).exit_code
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert code == run(*arguments).exit_code == int(command.startswith("diff"))
    assert written
    for path, content in written.items():
        unsigned = content.replace(SIGN.encode(), b"@generated by somebody")
        path.write_bytes(unsigned)
        assert isinstance(run(*arguments).exception, FileAccessError)
        assert unsigned == path.read_bytes() != content
        path.write_bytes(content)


@pytest.mark.parametrize("name", [name for name, kind in FORMATS.items() if kind.extension not in ("png", "pdf")])
@pytest.mark.parametrize("machine", [PETSC, TCP])
def test_the_sign_is_found_whatever_machine_is_drawn(name: str, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(signed(str(export(name, edition=machine)), FORMATS[name].extension))

    assert not is_other(tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_bytes(content)

    assert 0 == run("diagram", "-o", str(tmp_path / "x.svg")).exit_code


def test_blanks_before_a_text_do_not_make_a_file_empty(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\n" * 5000 + b"mine")

    assert is_other(tmp_path / "x")


# --- what is no file


def test_an_open_file_is_written_to_by_its_number(tmp_path: Path) -> None:
    """As ``/dev/stdout`` is, which is a link to such a name."""
    for place in ("/dev/fd/{}", "/proc/self/fd/{}"):
        path = tmp_path / "opened"
        path.unlink(missing_ok=True)
        opened = os.open(path, os.O_CREAT | os.O_WRONLY)
        try:
            assert 0 == run("diagram", "--format", "svg", "-o", place.format(opened)).exit_code
        finally:
            os.close(opened)
        assert path.read_bytes().startswith(b"<svg ")


def test_a_device_and_a_pipe_are_written_to(tmp_path: Path) -> None:
    """Also by a link, which is nothing that could be lost."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "null").symlink_to(os.devnull)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    ran = partial(run, "diff", "caffe", "caffe", "--json")
    codes = [ran(str(item)).exit_code for item in (Path(os.devnull), tmp_path / "null", pipe)]
    found = os.read(reader, 1 << 16)
    os.close(reader)

    assert [0, 0, 0] == codes
    assert {"caffe"} == {*json.loads(found)["machines"]}
    assert (tmp_path / "null").is_symlink()
