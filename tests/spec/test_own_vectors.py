"""Vectors of a machine with names of its own: they are runs of it, take what they promise, and refuse a wrong one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.__main__ import main
from syncedmem.model import Call, Declaration, Rule, declare, head_machine, space
from syncedmem.model.compiled import dispatch
from syncedmem.model.exports.declared import machine_named
from syncedmem.spec.vectors.own_vectors import OWN_SUITES, own_files
from syncedmem.spec.vectors.traces import Stop, checked_lines

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PETSC = f"{ROOT / 'examples' / 'machines' / 'petsc.py'}:OFFLOAD_MASK"
MACHINES = (PETSC, *(f"{ROOT / 'examples' / 'machines' / name}" for name in ("mfem.py:FLAGS", "msi.py:LINE")))
PAGE = (ROOT / "docs" / "own-machine.md").read_text(encoding="utf-8")


def lines_of(machine: Declaration, suite: str) -> list[dict[str, Any]]:
    return [json.loads(line) for _, text in own_files(machine, [suite]) for line in text.splitlines()]


def own(text: str) -> Declaration:
    machine = machine_named(text)
    assert isinstance(machine, Declaration)
    return machine


def no_push() -> Declaration:
    """Caffe's machine with fewer rows: its names are Caffe's, and its inputs have modes and missing data."""
    caffe = Declaration.of("caffe")
    rows = tuple(row for row in caffe.rows if row.call is not Call.ASYNC_GPU_PUSH)
    return Declaration(replace(caffe.edition, name="no_push", about="Without pushes", cycles=()), rows)


def is_run(vector: dict[str, Any], machine: Declaration) -> bool:
    try:
        return not isinstance(checked_lines([(1, vector)], machine), Stop)
    except ValueError:  # a name that the machine does not have
        return False


@pytest.mark.parametrize("suite", OWN_SUITES)
def test_vectors_are_runs_of_their_machine(suite: str) -> None:
    """One is no run of it when its last action, head or refusal is another."""
    for machine in (*map(own, MACHINES), no_push()):
        found = lines_of(machine, suite)
        assert found or suite == "ends"
        assert all(is_run(vector, machine) for vector in found)
        for key, wrong in (("actions", ["free_cpu", "free_cpu"]), ("head", "NOWHERE"), ("refusal", "nobody")):
            for step in [step for vector in found[-1:] for step in vector["steps"] if key in step][-1:]:
                step[key], kept = wrong, step[key]
                assert not is_run(found[-1], machine)
                step[key] = kept


@pytest.mark.parametrize("name", MACHINES, ids=lambda name: name.rpartition(":")[2])
def test_the_tour_takes_every_transition_and_the_ends_every_end(name: str) -> None:
    machine = own(name)
    wanted = {(state, entry) for state, row in space(machine).steps.items() for entry in row}
    taken = set[Any]()
    for vector in lines_of(machine, "tour"):
        at = space(machine).start
        for step in vector["steps"]:
            entry = next(it for it in space(machine).steps[at] if str(it) == step["call"])
            taken.add((at, entry))
            at = space(machine).steps[at][entry].after
    ends = [call for call in head_machine(machine).calls if call.ends]
    cells = [dispatch(machine).cell(call, state.packed) for state in space(machine).steps for call in ends]

    assert taken == wanted
    assert len(lines_of(machine, "ends")) == sum(cell is not None and cell.refusal is None for cell in cells)


def test_ids_are_those_of_the_calls() -> None:
    """They are not taken twice, and stay when an action gets another name."""
    machine = own(PETSC)
    found = [vector["id"] for suite in OWN_SUITES for vector in lines_of(machine, suite)]

    assert all(re.fullmatch("[0-9a-f]{16}", it) for it in found)
    assert len({*found}) == len({json.dumps(v["steps"]) for suite in OWN_SUITES for v in lines_of(machine, suite)})


# --- the command


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs the command: its status, and all that it prints."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["syncedmem", "vectors", "--out", str(tmp_path / "out"), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), "".join(capsys.readouterr())

    return run


def test_the_command_writes_and_compares(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("--edition", PETSC) == (0, f"4 files in {out}\n")
    assert run("--edition", PETSC, "--check") == (0, "")
    assert [f"petsc/{name}.jsonl" for name in sorted(OWN_SUITES)] == sorted(
        str(path.relative_to(out)) for path in out.rglob("*.jsonl")
    )
    with (out / "petsc" / "tour.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    status, said = run("--edition", PETSC, "--check", "--suite", "hsi,tour")

    assert (status, said.count("\n")) == (1, 1)
    assert "petsc/tour.jsonl is not up to date" in said


def test_an_edition_of_ours_has_its_own_files(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    assert run("--edition", "early", "--suite", "tour")[0] == 0
    assert run("--edition", "early", "--suite", "early/tour", "--check") == (0, "")
    assert {"early"} == {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--edition", PETSC, "--suite", "modes"), "suite must be one of tour, pairs, hsi, ends, got 'modes'"),
        (("--edition", "caffe", "--suite", "early/tour"), "alone or as caffe/NAME, got 'early/tour'"),
        (("--edition", PETSC, "--archive"), "--archive and --measure are about all editions: leave --edition out"),
        (("--edition", "caffe", "--measure"), "--archive and --measure are about all editions: leave --edition out"),
        (("--edition", "nobody"), "unknown edition 'nobody'"),
        (("--edition", "missing.py:M"), "missing.py"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], said: str, run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    status, output = run(*words)

    assert status == 2
    assert said in output
    assert output.count("\n") == 1
    assert not (tmp_path / "out").exists()


# --- the program of the page

LIGHT = declare(
    "light",
    "A light with a lock",
    heads="OFF ON",
    calls="press lock",
    facts="locked",
    actions={"turn": "+locked", "switch": ""},
    rows=[
        *(Rule("press", head, other, "switch", when="!locked") for head, other in (("OFF", "ON"), ("ON", "OFF"))),
        Rule("press", "OFF ON", refusal="is_locked", when="locked"),
        *(Rule("lock", head, head, "turn") for head in ("OFF", "ON")),
    ],
)


class Light:
    """A light that does what is declared."""

    head = "OFF"
    locked = False

    def press(self) -> None:
        if self.locked:
            raise PermissionError("is_locked")
        self.head = "ON" if self.head == "OFF" else "OFF"

    def lock(self) -> None:
        self.locked = True


class Unlocked(Light):
    """Its lock does nothing when it is on."""

    def lock(self) -> None:
        self.locked = self.head == "OFF"


def test_the_program_of_the_page_finds_what_is_wrong(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(import json\n.*?)```", PAGE, re.DOTALL)[0], names)  # noqa: S102 -- as a reader does
    for path, text in own_files(LIGHT, OWN_SUITES):
        (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    first_failure = names["first_failure"]

    assert first_failure(tmp_path / "tour.jsonl", Light) is None
    assert first_failure(tmp_path / "hsi.jsonl", Light) is None
    _, _, step, seen = first_failure(tmp_path / "tour.jsonl", Unlocked)
    assert ("press", "is_locked") == (step["call"], step["refusal"])
    assert "refusal" not in seen
