"""Machines as values: Caffe's three, machines of others in their own words, and what is no machine."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from machines import MACHINES

from syncedmem.model import DeclarationError
from syncedmem.model.caffe import CAFFE, DEFAULT
from syncedmem.model.caffe import EDITIONS as NEW
from syncedmem.model.declaration import Action, Call, Fact, Head, Machine, Refusal, Row, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 160
"""The characters of an error."""


def test_an_edition_has_no_fact_that_never_holds() -> None:
    assert ["has_cpu_pointer", "own_cpu_data"] == [*NEW["cpu_only"].facts]
    assert ("has_cpu_pointer", "own_cpu_data") == NEW["cpu_only"].actions["allocate_cpu"].sets
    assert () == NEW["early"].actions["allocate_cpu"].by_setting
    assert NEW["early"].facts["own_gpu_data"] == Fact("own_gpu_data", "owned", "gpu")
    assert DEFAULT is CAFFE


# --- machines of others


def test_a_first_machine_needs_only_rows() -> None:
    """Its words are those of the rows, in their order, and mean nothing."""
    door = Machine(
        "door",
        [
            Row("open", "SHUT", "OPEN", unless="locked"),
            Row("open", "SHUT", when="locked", refused="no_key"),
            Row("close", ["OPEN", "SHUT"], "SHUT", do=["creak", "ring"]),
        ],
    )

    assert "SHUT" == door.initial.name == str(door.initial)
    assert ["SHUT", "OPEN"] == [*door.heads]
    assert {"open": Call("open"), "close": Call("close")} == dict(door.calls)
    assert {"creak": Action("creak"), "ring": Action("ring")} == dict(door.actions)
    assert {"locked": Fact("locked")} == dict(door.facts)
    assert {"no_key": Refusal("no_key")} == dict(door.refusals)
    assert ((), (), {}, "door") == (door.sides, door.flags, dict(door.settings), str(door))
    assert ["open@SHUT[!locked]", "open@SHUT[locked]", "close@OPEN|SHUT"] == [*map(str, door.rows)]


def test_words_print_as_their_names() -> None:
    words = (Head("A"), Call("go"), Fact("wet"), Action("run"), Refusal("busy"), Setting("gear", ("1",)))
    assert ["A", "go", "wet", "run", "busy", "gear"] == [*map(str, words)]


def test_the_one_fact_of_an_action_stands_alone() -> None:
    """As the one condition of a row does; it is no sequence of letters."""
    row = Row("dry", "A", when="wet", do="wring")
    machine = Machine("towel", [row], actions=[Action("wring", sets="warm", clears="wet")])  # type: ignore[arg-type]

    assert Action("wring", sets=("warm",), clears=("wet",)) == machine.actions["wring"]
    assert {"warm", "wet"} == {*machine.facts}


def test_heads_may_be_given_with_what_they_say_is_fresh() -> None:
    """PETSc's mask, with access that only writes; sides and facts are those that the words name."""
    calls = [Call("VecGetArrayRead", "read", "host"), Call("VecCUDAGetArrayWrite", "overwrite", "device")]
    mask = Machine(
        "petsc",
        [
            Row("VecGetArrayRead", "GPU", "BOTH", do="copy"),
            Row("VecGetArrayRead", ["CPU", "BOTH"], "CPU"),
            Row("VecCUDAGetArrayWrite", ["CPU", "GPU", "BOTH"], "GPU", do="malloc"),
        ],
        heads={"CPU": "host", "GPU": "device", "BOTH": ("host", "device")},
        calls=calls,
        actions=[Action("copy", "copy", "host", "device"), Action("malloc", "allocate", "device", sets=("GPUarray",))],
    )

    assert {"CPU": ("host",), "GPU": ("device",), "BOTH": ("host", "device")} == {
        name: head.fresh for name, head in mask.heads.items()
    }
    assert (("host", "device"), {"GPUarray": Fact("GPUarray")}) == (mask.sides, dict(mask.facts))


def test_any_number_of_sides_and_heads() -> None:
    """MSI: a memory and three caches, of which several may share what is in the memory."""
    nodes = ("a", "b", "c")
    shared = [frozenset(some) for n in range(4) for some in combinations(nodes, n)]

    def name(some: frozenset[str]) -> str:
        return "S_" + "".join(sorted(some)) if some else "I"

    rows = [
        Row(f"read_{node}", name(some), name(some | {node}), do=() if node in some else f"fetch_{node}")
        for node in nodes
        for some in shared
    ]
    msi = Machine("msi", rows, heads={name(some): ("mem", *sorted(some)) for some in shared}, sides=("mem", *nodes))

    assert (8, 3, 3, ("mem", "a", "b", "c")) == (len(msi.heads), len(msi.calls), len(msi.actions), msi.sides)


def test_a_selection_drops_what_cannot_hold() -> None:
    """Rows that need a fact which never holds, heads to which no row leads, and words that are left over."""
    whole = Machine(
        "whole",
        [
            Row("go", "A", "B", when="fast", do="run"),
            Row("go", "A", "C", unless="fast", do="walk", only=("slow", "calm")),
            Row("rest", ["B", "C"], refused="busy", unless="fast"),
        ],
        facts=[Fact("fast", flag=True), Fact("quick", flag=True)],
        actions=[Action("run", sets=("fast",)), Action("walk", clears=("fast",), by_setting=(("fast", "gear", "5"),))],
        settings=[Setting("gear", ("1", "5"))],
    )
    slow = whole.select("slow", about="on foot", fix={"fast": False, "quick": "fast"}, cycles=[["go"]], cite="x:1")

    assert (["A", "C"], ["walk"], ["quick"]) == ([*slow.heads], [*slow.actions], [*slow.facts])
    assert ["go@A", "rest@C"] == [*map(str, slow.rows)]
    assert (Action("walk"), Fact("quick"), ()) == (slow.actions["walk"], slow.facts["quick"], slow.flags)
    assert ("on foot", (("go",),), "x:1", [*whole.settings]) == (
        slow.about,
        slow.cycles,
        slow.cite,
        [*slow.settings],
    )
    assert ["A", "B"] == [*whole.select("other").heads]
    assert "async_gpu_push" not in CAFFE.select("no_push", without=CAFFE.calls["async_gpu_push"]).calls


def test_a_machine_can_be_copied_and_pickled() -> None:
    for machine in (CAFFE, *MACHINES):
        again = pickle.loads(pickle.dumps(machine))  # noqa: S301 -- our own bytes
        assert machine == again == copy.deepcopy(machine)
        assert again.numbered_as == machine.numbered_as


def test_values_are_equal_and_cannot_be_changed() -> None:
    row = Row(Call("go"), Head("A"), Head("B"), do=Action("run"), when=[Fact("fast")])

    assert row == Row("go", "A", "B", do="run", when="fast")
    assert Machine("m", [row]) == Machine("m", [row])
    assert CAFFE.heads["SYNCED"] != replace(CAFFE.heads["SYNCED"], letter="X")
    for value, name in ((row, "call"), (CAFFE, "name"), (CAFFE.heads["SYNCED"], "fresh")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, "other")
    with pytest.raises(TypeError):
        CAFFE.heads["NEW"] = Head("NEW")  # type: ignore[index]


# --- what is no machine

R = Row("go", "A", "B", do="run", when="fast")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Machine("m", []), "m: this machine has no rows"),
        (lambda: Machine("m", [Row("go", [], "B")]), "m: a row of go has no head in which it applies"),
        (lambda: Machine("m", [Row("go", "A", "B", refused="no")]), "m: go@A refuses, and has actions or leads to"),
        (lambda: Machine("m", [Row("go", "A", do="run", refused="no")]), "m: go@A refuses, and has actions or leads"),
        (lambda: Machine("m", [Row("go", "A", when="x", unless="x")]), "wants x to be true and to be false"),
        (lambda: Machine("m", [R], heads=["A"]), r"m: go@A\[fast\] names the head 'B'; there are A$"),
        (lambda: Machine("m", [R], heads=["A", "B", "A"]), "m: the head 'A' is listed twice"),
        (lambda: Machine("m", [R], calls=["rest"]), "names the call 'go'; there are rest"),
        (lambda: Machine("m", [R], calls=[Head("go")]), r"m: Head\(name='go'.* is no call"),
        (lambda: Machine("m", [R], facts=["slow"]), "names the fact 'fast'; there are slow"),
        (lambda: Machine("m", [R], actions=list("abcde")), "names the action 'run'; there are a, b, c and 2 more"),
        (
            lambda: Machine("m", [R], facts=["fast"], actions=[Action("run", sets=("wet",))]),
            "m: an action changes the fact 'wet', which is not listed",
        ),
        (lambda: Machine("m", [R], sides=["cpu"], heads={"A": (), "B": "gpu"}), "B is about the side 'gpu'"),
        (lambda: Machine("m", [R], cycles=[["go", "back"]]), "m: a cycle calls 'back', for which there is no row"),
        (lambda: Machine("m", [R], calls=["go", "rest"]), "m: the call 'rest' has no rows"),
        (lambda: Setting("gear", ()), "the setting gear has no values"),
        (lambda: Setting("gear", ("1",), "R"), "the setting gear cannot start as 'R': there are 1"),
        (lambda: Machine("m", [R], settings=[Setting("gear", ("1",))] * 2), "m: a setting is listed twice: gear, gear"),
        (
            lambda: Machine("m", [R], actions=[Action("run", by_setting=(("fast", "gear", "5"),))]),
            "m: run looks at the setting gear=5: there is none",
        ),
        (lambda: Machine("m", [Row("go", "SYNCD")], heads=["SYNCED"]), r"'SYNCD'; did you mean SYNCED\?"),
        (
            lambda: Machine("m", [Row("go", "x")], heads=["lent out", "lost, then found", "here"]),
            "there are here, 'lent out', 'lost, then found'",
        ),
        (lambda: Machine("m", [R], heads="AB"), "m: 'AB' is a text, not a list of words"),
        (lambda: Machine("m", [("go", "A")]), r"m: \('go', 'A'\) is no row"),  # type: ignore[list-item]
        (lambda: Machine("two\nlines", [R]), "cannot be the name of a machine"),
        (lambda: Machine("m", [R], title="\ud800"), "cannot be the title of a machine"),
        (lambda: Machine("m", [R], about=7), "m: 7 is no text for about="),  # type: ignore[arg-type]
        (lambda: Row("go", 1), "1 is no word"),  # type: ignore[arg-type]
        (lambda: Row("go", "A", do=[None]), "None is no word"),  # type: ignore[list-item]
        (lambda: Row("go", "A", cite=None), "None is no text for cite="),  # type: ignore[arg-type]
        (lambda: Call("look", "read"), "the call look means 'read', and names no side"),
        (lambda: Action("run", "zero"), "the action run means 'zero', and names no side"),
        (lambda: Action("run", "copy", "gpu"), "the action run is a copy to gpu, and names no other source"),
        (lambda: Action("run", "copy", "gpu", "gpu"), "the action run is a copy to gpu, and names no other source"),
        (lambda: Call("go", "red"), "the call go cannot mean 'red': there are read, write, "),
        (lambda: Action("run", "jump"), "the action run cannot mean 'jump': there are allocate, zero, "),
        (lambda: Fact("fast", "quick"), "the fact fast cannot mean 'quick': there are pointer, owned, "),
        (lambda: CAFFE.select("x", fix={"own_data": False}), "x: caffe has no fact 'own_data' to fix"),
        (lambda: CAFFE.select("x", without=["go", "cpu_data"]), "x: caffe has no call 'go' to drop"),
        (lambda: CAFFE.select("x", fix={"own_cpu_data": "y"}), "x: caffe has no fact 'y' to fix"),
        (lambda: Machine("m", [R]).select("x", fix={"fast": False}), "x: this machine has no rows"),
    ],
)
def test_what_is_no_machine_is_said_in_one_sentence(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message) as found:
        make()

    assert len(str(found.value)) <= LONGEST
