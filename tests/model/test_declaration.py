"""The declared tables are sound, and every kind of unsound table is refused with an error that says what is wrong."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.model import (
    EDITIONS,
    EFFECTS,
    TRANSITIONS,
    Action,
    Call,
    Declaration,
    DeclarationError,
    Fact,
    Guard,
    HeadMachine,
    Refusal,
    SyncedHead,
    Transition,
    head_machine,
    space,
)
from syncedmem.model.compiled import dispatch, edition_for
from syncedmem.model.dispatch import compile_dispatch
from syncedmem.model.head import Host, Role, Verb
from syncedmem.model.soundness import check_soundness

if TYPE_CHECKING:
    from collections.abc import Callable

Table = tuple[Transition, ...]

U, C, G, S = SyncedHead
CPU_PTR, OWN_CPU, DATA = Guard.HAS_CPU_POINTER, Guard.OWN_CPU_DATA, Guard.HAS_DATA
ADOPTION = Transition(Call.SET_CPU_DATA, (C, G, S), C, (Action.ADOPT_CPU,), conditions=(DATA,))


@pytest.mark.parametrize(
    "declared",
    [TRANSITIONS[0], next(iter(EFFECTS.values())), EDITIONS["caffe"], head_machine().declaration, dispatch()],
    ids=lambda it: type(it).__name__,
)
def test_what_is_declared_or_compiled_cannot_be_changed(declared: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(declared, fields(declared)[0].name, None)


def test_the_edition_of_a_memory_is_the_first_that_is_declared_for_it() -> None:
    assert ("caffe", "cpu_only") == (edition_for(has_device=True), edition_for(has_device=False))


def build(table: Table, edition: str = "caffe") -> HeadMachine:
    """Make a checked machine from a table."""
    machine = HeadMachine(Declaration.of(edition, table))
    check_soundness(machine, compile_dispatch(machine))
    return machine


def where(identifier: str, edition: str = "caffe") -> int:
    """Return the position of a row in the table; the row is named by its identifier in its first head."""
    (place,) = (
        k
        for k, row in enumerate(TRANSITIONS)
        if edition in row.editions and identifier == row.identifier(row.source[0])
    )
    return place


def changed(identifier: str, **changes: Any) -> Table:
    """Return the table with one row changed."""
    place = where(identifier)
    return (*TRANSITIONS[:place], replace(TRANSITIONS[place], **changes), *TRANSITIONS[place + 1 :])


def without(*identifiers: str) -> Table:
    """Return the table without some rows."""
    dropped = {where(identifier) for identifier in identifiers}
    return tuple(row for k, row in enumerate(TRANSITIONS) if k not in dropped)


def split_adoption(*guards: tuple[tuple[Guard, ...], tuple[Guard, ...]]) -> Table:
    """Return the table with its row that adopts host memory split into rows with other guards."""
    rest = without(
        "set_cpu_data@HEAD_AT_CPU[has_data,own_cpu_data]", "set_cpu_data@HEAD_AT_CPU[has_data,!own_cpu_data]"
    )
    return rest + tuple(replace(ADOPTION, conditions=(DATA, *yes), unless=no) for yes, no in guards)


def never_synced() -> Table:
    """Return the table with every row that leads to SYNCED leading to HEAD_AT_CPU instead."""
    return tuple(replace(row, dest=C) if row.dest is S else row for row in TRANSITIONS)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_edition_is_sound(edition: str) -> None:
    """No check refuses the declared table, and its rows are the rows of the shared machine."""
    assert head_machine(edition).declaration == build(TRANSITIONS, edition).declaration


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            lambda: changed("cpu_data@HEAD_AT_GPU[has_cpu_pointer]", conditions=()),
            (
                r"^caffe: cpu_data in HEAD_AT_GPU with Fact\(0\) and data=False: 2 rows are enabled at once: "
                r"cpu_data@HEAD_AT_GPU\[!has_cpu_pointer\], cpu_data@HEAD_AT_GPU$"
            ),
        ),
        (
            lambda: changed("set_cpu_data@UNINITIALIZED[has_data]", conditions=()),
            (
                r"^caffe: set_cpu_data in UNINITIALIZED with Fact\(0\) and data=False: 2 rows are enabled at once: "
                r"set_cpu_data@UNINITIALIZED\[!has_data\], set_cpu_data@UNINITIALIZED$"
            ),
        ),
        (
            lambda: without("cpu_data@HEAD_AT_GPU[!has_cpu_pointer]"),
            (
                r"^caffe: cpu_data in HEAD_AT_GPU with Fact\(0\) and data=False: no row is enabled: "
                r"cpu_data@HEAD_AT_GPU\[has_cpu_pointer\]$"
            ),
        ),
        (
            lambda: without("gpu_data@SYNCED"),
            r"^caffe: gpu_data in SYNCED with Fact\(0\) and data=False: no row is enabled: it has no row there$",
        ),
        (never_synced, r"^caffe: cannot be reached: SYNCED \(no row leads there from a head that can be\)$"),
        (
            # Nothing in UNINITIALIZED has a pointer.
            lambda: (
                *(row for row in never_synced() if row.call is not Call.CPU_DATA or U not in row.source),
                Transition(Call.CPU_DATA, (U,), C, unless=(CPU_PTR,)),
                Transition(Call.CPU_DATA, (U,), S, conditions=(CPU_PTR,)),
            ),
            r"^caffe: cannot be reached: SYNCED \(only cpu_data@UNINITIALIZED\[has_cpu_pointer\], which never fires\)$",
        ),
        (
            lambda: (
                *changed("cpu_data@UNINITIALIZED", unless=(CPU_PTR,)),
                Transition(Call.CPU_DATA, (U,), C, conditions=(CPU_PTR,)),
            ),
            r"^caffe: cpu_data@UNINITIALIZED\[!has_cpu_pointer\]: the guard has_cpu_pointer never matters$",
        ),
        (
            lambda: (
                Transition(Call.CPU_DATA, (U,), C, conditions=(CPU_PTR,)),
                *changed("cpu_data@UNINITIALIZED", unless=(CPU_PTR,)),
            ),
            r"^caffe: cpu_data@UNINITIALIZED\[has_cpu_pointer\]: this row never fires$",
        ),
        (
            lambda: (*TRANSITIONS, Transition(Call.CPU_DATA, (U, S), C, conditions=(OWN_CPU,), unless=(OWN_CPU,))),
            r"^caffe: cpu_data@UNINITIALIZED\[own_cpu_data,!own_cpu_data\], cpu_data@SYNCED.*: this row never fires$",
        ),
        (
            lambda: (*TRANSITIONS, Transition(Call.CPU_DATA, (), C)),
            r"^caffe: Transition\(call=Call.CPU_DATA.*: this row never fires$",
        ),
        (
            # An owned pointer is a pointer, so the second guard is not needed.
            lambda: split_adoption(((OWN_CPU, CPU_PTR), ()), ((), (CPU_PTR,)), ((CPU_PTR,), (OWN_CPU,))),
            r"\[has_data,own_cpu_data,has_cpu_pointer\].*: the guard has_cpu_pointer never matters$",
        ),
        (
            lambda: split_adoption(((OWN_CPU,), ()), ((CPU_PTR,), (OWN_CPU,)), ((), (CPU_PTR, OWN_CPU))),
            r"\[has_data,!has_cpu_pointer,!own_cpu_data\].*: the guard own_cpu_data never matters$",
        ),
        (
            # Only a released memory is in HEAD_AT_CPU without a pointer.
            lambda: (
                *changed("cpu_data@HEAD_AT_CPU", conditions=(CPU_PTR,)),
                Transition(Call.CPU_DATA, (C,), C, unless=(CPU_PTR,)),
            ),
            r"^caffe: cpu_data@HEAD_AT_CPU\[has_cpu_pointer\]: the guard has_cpu_pointer never matters$",
        ),
        (
            # An accessor never receives data.
            lambda: (
                *changed("cpu_data@UNINITIALIZED", conditions=(DATA,)),
                Transition(Call.CPU_DATA, (U,), C, unless=(DATA,)),
            ),
            r"^caffe: cpu_data@UNINITIALIZED\[has_data\]: the guard has_data never matters$",
        ),
        (
            lambda: changed("cpu_data@HEAD_AT_CPU", refusal=Refusal.NO_GPU),
            r"^a refusal has no actions and leads to no head, but the row Transition\(call=Call.CPU_DATA",
        ),
        (
            lambda: changed("async_gpu_push@UNINITIALIZED", actions=(Action.ZERO_GPU,)),
            r"^a refusal has no actions and leads to no head, but the row Transition\(call=Call.ASYNC_GPU_PUSH",
        ),
    ],
)
def test_an_unsound_table_is_refused(table: Callable[[], Table], message: str) -> None:
    """The error names rows that are ambiguous, missing, dead or contradictory, and heads that cannot be reached."""
    with pytest.raises(DeclarationError, match=message):
        build(table())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"call": "open"}, "unknown Call 'open' in"),
        ({"source": ("HEAD_AT_MOON",)}, "unknown SyncedHead 'HEAD_AT_MOON' in"),
        ({"dest": "HEAD_AT_MARS"}, "unknown SyncedHead 'HEAD_AT_MARS' in"),
        ({"actions": ("allocate",)}, "unknown Action 'allocate' in"),
        ({"conditions": ("is_warm",)}, "unknown Guard 'is_warm' in"),
        ({"unless": ("is_cold",)}, "unknown Guard 'is_cold' in"),
        ({"refusal": "not_today"}, "unknown Refusal 'not_today' in"),
        ({"editions": ("caffe", "torch")}, "unknown edition 'torch' in"),
        ({"actions": ("allocate", "zero")}, "unknown Action 'allocate', Action 'zero' in"),
    ],
)
@pytest.mark.parametrize("edition", EDITIONS)
def test_an_unknown_name_is_refused(edition: str, changes: dict[str, Any], message: str) -> None:
    """A plain string in the place of a name is refused. The error lists all such strings, for any edition."""
    with pytest.raises(DeclarationError, match=f"^{message} the row Transition"):
        build(changed("cpu_data@SYNCED", **changes), edition)


def test_an_action_without_an_effect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the actions of a row whose effects are not declared, and says where to declare them."""
    left = {it: effect for it, effect in EFFECTS.items() if it not in (Action.ALLOCATE_CPU, Action.ZERO_CPU)}
    monkeypatch.setattr("syncedmem.model.machine.EFFECTS", left)
    with pytest.raises(DeclarationError, match=r"^no effect of allocate_cpu, zero_cpu: add it to EFFECTS$"):
        Declaration.of("caffe")


def test_a_head_that_the_edition_does_not_have_is_refused() -> None:
    """In the build without a GPU, no row can lead to SYNCED."""
    table = changed("cpu_data@HEAD_AT_CPU", dest=S)
    with pytest.raises(
        DeclarationError, match=r"^cpu_only has no head SYNCED, but the row Transition\(.* leads there$"
    ):
        build(table, "cpu_only")


def test_an_unknown_edition_is_refused() -> None:
    """The error names the edition that was requested, and the editions that exist."""
    with pytest.raises(DeclarationError, match=rf"^unknown edition 'torch'; there are {', '.join(EDITIONS)}$"):
        head_machine("torch")


def test_names_that_share_a_namespace_are_distinct() -> None:
    """`transitions` looks up guards, actions and refusals by name on one object."""
    names = [name.value for kind in (Guard, Action, Refusal) for name in kind]
    assert sorted(set(names)) == sorted(names)


def test_every_guard_reads_a_fact_of_its_own_or_the_argument() -> None:
    """Four guards read the pointers and the ownership flags; the fifth guard reads the argument."""
    expected = [Fact.CPU_POINTER, Fact.GPU_POINTER, Fact.OWN_CPU_DATA, Fact.OWN_GPU_DATA, None]
    assert expected == [guard.fact for guard in Guard]


def test_every_action_has_an_effect_that_does_not_contradict_itself() -> None:
    """No action both sets and clears a fact. If the mode decides a fact, nothing else decides it."""
    assert set(Action) == set(EFFECTS)
    for effect in EFFECTS.values():
        assert Fact(0) == effect.sets & effect.clears | effect.by_mode & (effect.sets | effect.clears)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_transition_has_a_name_of_its_own_and_a_source(edition: str) -> None:
    """Identifiers are unique within an edition, and every row cites its source."""
    rows = head_machine(edition).declaration.rows
    names = [row.identifier(head) for row in rows for head in row.source]
    assert sorted(set(names)) == sorted(names)
    assert not [row for row in rows if not row.cite]


def test_what_an_edition_implies_is_true_of_it() -> None:
    """In every state of the early edition, we own the device memory if there is any."""
    facts = [state.facts for state in space("early").steps]
    assert [Fact.GPU_POINTER in it for it in facts] == [Fact.OWN_GPU_DATA in it for it in facts]
    assert {True, False} == {Fact.GPU_POINTER in it for it in facts}


def test_what_an_edition_rules_out_is_never_asked() -> None:
    """In the build without a GPU, no row has a guard on the device side."""
    rows = head_machine("cpu_only").declaration.rows
    assert {OWN_CPU, DATA} == {guard for row in rows for guard in row.conditions + row.unless}


@pytest.mark.parametrize("call", Call)
def test_what_a_call_is_said_to_do_is_what_its_rows_do(call: Call) -> None:
    """Its first row from `SYNCED` is one of an edition with this call."""
    rows = [row for row in TRANSITIONS if row.call is call]
    from_synced = next(row for row in rows if SyncedHead.SYNCED in row.source)
    found = {
        Role.RELEASE: all(row.dest is None and row.refusal is None for row in rows),
        Role.ADOPT: any(Guard.HAS_DATA in row.conditions for row in rows),
        Role.PUSH: from_synced.refusal is Refusal.NOT_HEAD_AT_CPU,
        Role.READ: from_synced.dest is SyncedHead.SYNCED,
        Role.WRITE: from_synced.dest not in (None, SyncedHead.SYNCED) and not call.takes_data,
    }

    assert {call.does} == {role for role, holds in found.items() if holds}


@pytest.mark.parametrize("action", Action)
def test_what_an_action_is_said_to_do_is_in_its_effect_and_its_name(action: Action) -> None:
    effect = EFFECTS[action]
    there, owned = action.side.pointer, action.side.owned
    expected = {
        Verb.ALLOCATE: (there | owned, Fact(0)),
        Verb.ZERO: (Fact(0), Fact(0)),
        Verb.COPY: (Fact(0), Fact(0)),
        Verb.ADOPT: (there, owned),
        Verb.FREE: (Fact(0), there | owned),
    }

    assert expected[action.does] == (effect.sets, effect.clears)
    assert {action.does.value, action.side.value} <= set(action.value.split("_"))
    assert action.queued == action.value.endswith("_async")


def test_what_a_head_is_said_to_say_is_in_its_name() -> None:
    assert [(), (Host.CPU,), (Host.GPU,), (Host.CPU, Host.GPU)] == [head.fresh for head in SyncedHead]
    assert ["U", "C", "G", "S"] == [head.letter for head in SyncedHead]
    assert [SyncedHead.HEAD_AT_CPU, SyncedHead.HEAD_AT_GPU] == [host.head for host in Host]
