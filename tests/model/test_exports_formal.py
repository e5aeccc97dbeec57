"""TLA+ and Promela check every state: no invariant is broken, and all engines count the same states."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from controls.memories import evicting
from exported import exported
from machines import changed as changed_row
from programs import program, run_node

from syncedmem.model import EDITIONS
from syncedmem.model.caffe import CAFFE, FREE_CPU
from syncedmem.model.declaration import Action, Call, Machine, Row
from syncedmem.model.exports import formal
from syncedmem.model.exports.formats import export, tla_config
from syncedmem.spec.memory.policy import POLICIES
from syncedmem.spec.proofs import compare

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = {2: 186, 3: 374, 4: 626, 16: 8642}
"""The number of states of Caffe's edition for each K."""


def explored(edition: str, modulus: int) -> int:
    """Count the states of the table and the oracle together, with contents modulo a number."""
    return compare(EDITIONS[edition], POLICIES[edition], modulus).states


def config_of(edition: str = "caffe", modulus: int = 4) -> str:
    """Return the checker's configuration, for contents modulo a number."""
    return tla_config(edition).replace("K = 4", f"K = {modulus}")


def by_tla(module: str, config: str) -> tuple[bool, int, str]:
    """Return whether the check passed, the number of states, and the violation."""
    found = run_node("run_tla.mjs", {"module": module, "config": config})
    return found["success"], found["states_explored"], str(found["error_message"])


def by_spin(text: str, folder: Path, modulus: int) -> tuple[int, int, str]:
    """Return the number of errors and of states that SPIN finds, and its output."""
    (folder / "model.pml").write_text(text, encoding="utf-8")
    for command in (
        [program("spin"), "-o2", f"-DK={modulus}", "-a", "model.pml"],
        [program("cc"), "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
    said = subprocess.run(["./pan", "-m1000000"], cwd=folder, capture_output=True, text=True, check=True).stdout
    errors, states = re.search(r"errors: (\d+)", said), re.search(r"(\d+) states, stored", said)
    assert errors
    assert states
    assert "max search depth too small" not in said
    return int(errors[1]), int(states[1]), said


@pytest.mark.parametrize(("modulus", "states"), COUNTS.items())
def test_tla_has_our_states_and_breaks_nothing(modulus: int, states: int) -> None:
    assert (True, states, "None") == by_tla(exported("tla"), config_of(modulus=modulus))
    assert states == explored("caffe", modulus)


@pytest.mark.deep
@pytest.mark.parametrize(("modulus", "states"), COUNTS.items())
def test_spin_has_our_states_and_breaks_nothing(modulus: int, states: int, tmp_path: Path) -> None:
    assert (0, states) == by_spin(exported("promela"), tmp_path, modulus)[:2]


@pytest.mark.deep
@pytest.mark.parametrize("edition", EDITIONS)
def test_engines_agree_about_every_edition(edition: str, tmp_path: Path) -> None:
    states = explored(edition, 4)
    assert (True, states, "None") == by_tla(exported("tla", edition), config_of(edition))
    assert (0, states) == by_spin(exported("promela", edition), tmp_path, 4)[:2]


WITHOUT_FLAGS = CAFFE.select(
    "without_flags",
    fix={flag.name: False for flag in CAFFE.flags},
    without=("set_cpu_data", "set_gpu_data", "async_gpu_push"),
)
"""A machine of somebody else, in which nobody owns anything."""


@pytest.mark.parametrize("name", ["mermaid", "plantuml"])
def test_an_end_that_does_nothing_is_said_in_words(name: str) -> None:
    assert "release in every head: the end" in str(export(name, edition=WITHOUT_FLAGS))


def changed(call: str, head: str, *actions: str) -> list[Row]:
    """Return the table with other actions in the rows of one call in one head, if they have actions."""
    found: list[Row] = []
    for row in CAFFE.rows:
        wrong = row.call == call and head in row.source and row.actions
        do = actions if wrong else row.actions
        found.append(
            Row(row.call, row.source, row.dest, do=do, when=row.conditions, unless=row.unless, refused=row.refusal)
        )
    return found


U, C, G, S = CAFFE.heads
WRONG = {
    "FreshStart": changed("gpu_data", U, "zero_gpu"),
    "FreshExists": changed("mutable_gpu_data", C),
    "FreshIsNewest": changed("cpu_data", G, "allocate_cpu"),
    "OwnedExists": changed("set_cpu_data", S, "free_cpu"),
    "NothingWithout": changed("gpu_data", C, "copy_to_gpu"),
    "NoFault": changed("set_cpu_data", S, "free_cpu", "adopt_cpu"),
}
"""Wrong tables, by the invariant that has to find the error.  ``early`` and ``cpu_only`` are not needed here."""


@pytest.mark.deep
@pytest.mark.parametrize("invariant", WRONG)
def test_a_wrong_table_breaks_the_invariant(invariant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgets = invariant == "OwnedExists"
    actions = [
        replace(action, clears=action.clears[:1]) if forgets and action == FREE_CPU else action
        for action in CAFFE.actions.values()
    ]
    machine = Machine(
        "caffe",
        WRONG[invariant],
        title=CAFFE.title,
        sides=CAFFE.sides,
        heads=CAFFE.heads.values(),
        calls=CAFFE.calls.values(),
        facts=CAFFE.facts.values(),
        actions=actions,
        refusals=CAFFE.refusals.values(),
        settings=CAFFE.settings.values(),
    )

    def wrong(_edition: str) -> Machine:
        return machine

    monkeypatch.setattr(formal, "machine_of", wrong)
    module, config = exported("tla"), config_of()
    alone = "\n".join(line for line in config.splitlines() if not line.startswith("INV") or line.endswith(invariant))
    fine, _, message = by_tla(module, alone + "\n")
    assert not fine
    assert message == "Invariant 0 violated"
    errors, _, said = by_spin(exported("promela"), tmp_path, 4)
    assert errors == 1
    assert "assertion violated" in said


def _halves(*rows: Row) -> Machine:
    """Two sides, of which calls know what they do; the rows are those of `edit`, which writes the host side."""
    return Machine(
        "halves",
        [
            *rows,
            Row("look", "GPU", "BOTH", do="down"),
            Row("look", ["CPU", "BOTH"]),
            Row("launch", "CPU", "GPU", do="up"),
            Row("launch", ["GPU", "BOTH"], "GPU"),
            Row("fill", ["CPU", "GPU", "BOTH"], "GPU"),
            Row("reset", "CPU", "NONE"),
            Row("fill", "NONE", "GPU"),
            Row("edit", "NONE", "CPU"),
            Row("look", "NONE", "CPU"),
            Row("launch", "NONE", "GPU"),
        ],
        sides=["host", "device"],
        heads={"BOTH": ("host", "device"), "CPU": "host", "GPU": "device", "NONE": ()},
        calls=[
            Call("edit", "write", "host"),
            Call("look", "read", "host"),
            Call("launch", "write", "device"),
            Call("fill", "overwrite", "device"),
            Call("reset"),
        ],
        actions=[Action("down", "copy", "host", "device"), Action("up", "copy", "device", "host")],
    )


RIGHT = Row("edit", ["CPU", "BOTH"], "CPU"), Row("edit", "GPU", "CPU", do="down")
LOSING = {
    "the other side counts as fresh": (Row("edit", ["CPU", "BOTH"]), RIGHT[1]),
    "it was copied before it was written": (Row("edit", ["CPU", "BOTH"], "BOTH", do="up"), RIGHT[1]),
    "only the other side is fresh": (Row("edit", ["CPU", "BOTH"], "GPU"), RIGHT[1]),
    "nothing is fresh": (Row("edit", ["CPU", "BOTH"], "NONE"), RIGHT[1]),
    "the rest of the side is stale": (RIGHT[0], Row("edit", "GPU", "CPU")),
}
"""Rows that lose a write, by how."""


@pytest.mark.parametrize("rows", LOSING.values(), ids=LOSING)
def test_tla_finds_a_write_that_is_lost(rows: tuple[Row, ...]) -> None:
    machine = _halves(*rows)
    fine, _, message = by_tla(exported("tla", machine), tla_config(machine))
    assert (fine, "violated" in message) == (False, True)


def test_tla_finds_a_read_that_shows_a_stale_side() -> None:
    machine = changed_row(_halves(*RIGHT), "look", "GPU", dest=None, do=())
    assert not by_tla(exported("tla", machine), tla_config(machine))[0]


@pytest.mark.deep
@pytest.mark.parametrize("rows", LOSING.values(), ids=LOSING)
def test_spin_finds_a_write_that_is_lost(rows: tuple[Row, ...], tmp_path: Path) -> None:
    errors, _, said = by_spin(exported("promela", _halves(*rows)), tmp_path, 4)
    assert errors == 1
    assert "assertion violated" in said


def test_a_side_that_an_evict_freed_holds_nothing(tmp_path: Path) -> None:
    machine = evicting()
    fine, states, message = by_tla(exported("tla", machine), tla_config(machine))
    assert (fine, message) == (True, "None")
    assert (0, states) == by_spin(exported("promela", machine), tmp_path, 4)[:2]


def test_tla_finds_an_evict_that_frees_the_only_fresh_side() -> None:
    machine = changed_row(evicting(), "evict", "AWAY", do=("drop",))
    assert not by_tla(exported("tla", machine), tla_config(machine))[0]


@pytest.mark.deep
def test_checkers_find_no_fault_where_no_write_is_lost(tmp_path: Path) -> None:
    machine = _halves(*RIGHT)
    fine, states, message = by_tla(exported("tla", machine), tla_config(machine))
    assert (fine, message) == (True, "None")
    assert (0, states) == by_spin(exported("promela", machine), tmp_path, 4)[:2]


@pytest.mark.parametrize("format_", ["tla", "promela"])
def test_a_model_names_the_words_that_it_cannot_judge(format_: str) -> None:
    heading = exported(format_, _halves(*RIGHT)).partition("K")[0]
    assert "reset" in heading
    assert "edit" not in heading
