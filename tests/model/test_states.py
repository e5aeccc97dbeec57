"""Steps, states and suites of any machine; Caffe's are compared with those that they replace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from loops import some
from machines import DOOR, MACHINES, MSI, PETSC, TCP
from transitions import Machine as Transitions
from triggered import triggered

from syncedmem.model import DeclarationError
from syncedmem.model.caffe import EDITIONS
from syncedmem.model.declaration import Action, Call, Machine, Row, Setting
from syncedmem.model.moves import Input, State, Stepper
from syncedmem.model.states import Configuration, Space, configurations, space, stepper

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 160
"""The characters of an error."""


def one_by_one(machine: Machine, state: State, actions: tuple[str, ...]) -> frozenset[str]:
    """The facts after some actions, one after the other."""
    facts, settings = set(state.facts), dict(zip(machine.settings, state.settings, strict=True))
    for action in map(machine.actions.__getitem__, actions):
        facts = (facts | {*action.sets}) - {*action.clears}
        for fact, setting, value in action.by_setting:
            (facts.add if settings[setting] == value else facts.discard)(fact)
    return frozenset(facts)


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_a_step_is_what_transitions_decides(machine: Machine) -> None:
    """Also where a fact, an action or a head has the name of an attribute; facts as each action changes them."""
    found = stepper(machine)
    for state in some(space(machine, null=True).steps):
        for entry in some(entry for entry in found.inputs(end=True) if entry.call):
            move = found.step(state, entry)
            assert triggered(found, state, entry) == (move and (move.actions, move.refusal, move.after.head))
            assert move is None or one_by_one(machine, state, move.actions) == move.after.facts


def test_rows_that_transitions_does_not_keep_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = Transitions

    def forgetful(*, transitions: list[dict[str, object]], **others: object) -> Any:
        return library(transitions=[transition | {"unless": []} for transition in transitions], **others)

    monkeypatch.setattr("syncedmem.model.moves.Transitions", forgetful)
    with pytest.raises(DeclarationError, match=r"^door: transitions changed the rows of open in SHUT$"):
        Stepper(DOOR)


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_nothing_is_reached_after_the_end(machine: Machine) -> None:
    whole, ended = space(machine, null=True), space(machine, null=True, end=True)

    assert [*whole.steps] == [*ended.steps]
    assert {*whole.moves} == {move for move in ended.moves if not move.input.ends}


def test_names_of_configurations_say_what_the_facts_mean() -> None:
    assert ["UNALLOCATED:--", "CPU:p-", "GPU:-p", "BOTH:pp", "GPU:pp", "CPU:pp"] == [*map(str, configurations(PETSC))]
    assert ["SHUT", "OPEN"] == [*map(str, configurations(DOOR))]
    hot = Machine(
        "hot", [Row("go", "A", do="run"), Row("go_on", "A", when="wet")], actions=[Action("run", sets=("wet",))]
    )
    assert [Configuration("A", "A", frozenset()), Configuration("A+wet", "A", frozenset({"wet"}))] == [
        *configurations(hot)
    ]


def test_what_nobody_changes_may_be_true_at_any_call() -> None:
    found = stepper(DOOR)
    assert ["open", "open[locked]", "close"] == [*map(str, found.inputs())]
    assert "no_key" == found.step(found.start, Input(DOOR.calls["open"], given=("locked",))).refusal  # type: ignore[union-attr]


def test_a_call_that_means_nothing_may_lack_rows() -> None:
    start = space(TCP).start
    assert ["passive_open", "active_open"] == [*map(str, space(TCP).steps[start])]
    assert stepper(TCP).step(start, Input(TCP.calls["ack"])) is None


def test_a_setting_is_an_input() -> None:
    """An effect may look at it, and a configuration lacks it, and the fact that it decides if no row tests that."""

    def machine(*rows: Row) -> Machine:
        run = Action("run", by_setting=(("fast", "gear", "5"),), clears=("wet",))
        return Machine("car", [*rows], actions=[run], settings=[Setting("gear", ("1", "5"))])

    car = machine(Row("go", "A", do="run"))
    tested = machine(Row("go", "A", do="run", unless="fast"), Row("go", "A", do="run", when="fast"))

    assert ["go", "set_gear(1)", "set_gear(5)"] == [*map(str, stepper(car).inputs())]
    assert (4, 1, 2) == (len(space(car).steps), len(configurations(car)), len(configurations(tested)))
    start, shift = stepper(car).start, stepper(car).inputs()[2]
    assert start == State("A", frozenset(), ("1",))
    assert State("A", frozenset(), ("5",)) == stepper(car).step(start, shift).after  # type: ignore[union-attr]


# --- what is unsound

A, B = "A", "B"


def dried(*rows: Row) -> Machine:
    """A machine with a fact, "wet", that is never true."""
    return Machine("m", [*rows], actions=[Action("dry", clears=("wet",))], facts=["wet"])


def reading(*rows: Row) -> Machine:
    """A machine whose call "read" means something."""
    return Machine("m", [*rows], calls=[Call("read", "read", "host"), "go"])


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (
            Machine("m", [Row("go", A, B), Row("go", A, A, unless="wet", when="dry")]),
            r"^m: go in A with dry: 2 rows are enabled at once: go@A to B, go@A\[dry,!wet\] to A$",
        ),
        (reading(Row("read", A, B), Row("go", A, B)), r"^m: read in B: no row is enabled: it has no row there$"),
        (reading(Row("read", (A, B), B, when="wet"), Row("go", A, B)), r"^m: read in A: .*: read@A\[wet\] to B$"),
        (Machine("m", [Row("go", A, A), Row("go", B, "C")]), r"^m: cannot be reached: B \(no row leads there\)$"),
        (Machine("m", [Row("go", A, A), Row("go", B, "C"), Row("go", "C", B)]), r"reached: B \(only rows of heads"),
        (dried(Row("go", A, B, when="wet"), Row("go", A, A, unless="wet")), r": B .*takes=.wet.*: go@A\[wet\]"),
        (
            Machine("m", [Row("go", "SHUT", "HEAD_1"), Row("go", "HEAD_1", "SHUT"), Row("go", "HEAD1", "SHUT")]),
            r"^m: .*: HEAD1 \(no row leads there; go@HEAD1 names it, others name HEAD_1: is one of them misspelled\?\)",
        ),
        (
            dried(Row("go", A, A, when="wet"), Row("go", A, A, unless="wet")),
            r"^m: never fires .*takes=.wet.*: go@A\[wet\]$",
        ),
        (dried(Row("go", A, A, unless="wet")), r"condition wet never .*takes=.wet.* in go@A\[!wet\]$"),
        (
            Machine("m", [Row("go", A, B, when=f"a_condition_with_a_long_name_{k}") for k in range(5)]),
            r"^m: go in A with a_.*_0, a_.*_1: 2 rows are enabled at once: go@A\[a_.*_0\] to B and 1 more$",
        ),
        (
            Machine("m", [Row("go", A, B, unless="locked"), Row("go", A, when="lokced", refused="no key")]),
            r"2 rows are enabled at once .*'lokced'.*: go@A\[!locked\] to B, go@A\[lokced\] to A$",
        ),
        (
            Machine(
                "m",
                [Row("go", A, B, when="all votes"), Row("go", A, unless="al votes", refused="wait")],
                calls=[Call("go", takes="all votes")],
            ),
            r"2 rows are enabled at once .*'all votes'.*: go@A\[all votes\] to B, ",
        ),
        (Machine("m", [Row("go", "*", A)]), r"^m: a head cannot be named '\*', which stands for others$"),
        (Machine("m", [Row("go", A, "=")]), r"^m: a head cannot be named '=', which stands for others$"),
    ],
)  # fmt: skip
def test_an_unsound_machine_is_refused(machine: Machine, message: str) -> None:
    with pytest.raises(DeclarationError, match=message) as refused:
        space(machine)
    assert len(str(refused.value)) <= LONGEST


def sixteen_settings() -> Machine:
    settings = [Setting(f"s{k}", ("a", "b"), "a") for k in range(16)]
    return Machine("many", [Row("go", A)], settings=settings)


def thirty_facts() -> Machine:
    rows = [Row(f"set_{k}", A, do=f"do_{k}") for k in range(30)]
    return Machine("many", rows, actions=[Action(f"do_{k}", sets=(f"fact_{k}",)) for k in range(30)])


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (sixteen_settings, "2,162,688"),
        (thirty_facts, "32,212,254,720"),
        (lambda: Machine("many", [Row("go", A, when=[f"free_{k}" for k in range(1000)])]), "10^301"),
        (lambda: Machine("many", [Row("go", A, do=["wait"] * 50_000)]), "50,001"),
        (lambda: Machine("many", [Row("go", A)], heads=[A, *map(str, range(10**6))]), "1,000,001"),
        (lambda: Machine("many", [Row("go", [*map(str, range(10**5))])]), "100,000"),
        (lambda: Machine("many", [Row("go", A)], settings=[Setting("s", (*map(str, range(10**5)),), "0")]), "100,000"),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_explored(
    make: Callable[[], Machine], number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen settings took minutes, and half a gigabyte."""
    monkeypatch.setattr("syncedmem.model.states.explore", None)
    with pytest.raises(DeclarationError, match=rf"^many: (about )?{re.escape(number)} "):
        space(make())


def test_machines_are_told_apart_by_their_rows() -> None:
    other = Machine("msi", MSI.rows[:1])
    assert isinstance(space(other), Space)
    assert space(other) is not space(MSI)
    assert Stepper(MSI).start == State("I")
