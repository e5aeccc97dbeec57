"""The machine as `transitions` runs it, with a caller's actions."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from loops import some

from syncedmem.model import (
    EDITIONS,
    Action,
    BufferMismatchError,
    Call,
    Declaration,
    DeclarationError,
    Fact,
    HeadMachine,
    IllegalCallError,
    Input,
    Mode,
    NoDeviceError,
    Refusal,
    SyncedHead,
    SyncedMemoryError,
    Transition,
    head_machine,
    space,
    using_mode,
)
from syncedmem.model.machine import refusal_error
from syncedmem.model.suites import access_sequences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.model import BoundHead


class Actions:
    """An object with every action. It records the calls, and the action that `fails` names raises."""

    def __init__(self) -> None:
        self.done: list[tuple[Action, object]] = []
        self.fails: Action | None = None

    def __getattr__(self, name: str) -> Callable[[object], None]:
        if name not in {action.value for action in Action}:
            raise AttributeError(name)
        return lambda argument: self._perform(Action(name), argument)

    def _perform(self, action: Action, argument: object) -> None:
        if action is self.fails:
            raise OSError(action.value)
        self.done.append((action, argument))


class Buffer:
    """An argument whose lifetime a test can watch."""


def walk(bound: BoundHead, word: tuple[Input, ...]) -> Mode:
    """Perform a sequence of inputs, and return the mode that is in force at its end."""
    mode = Mode.GPU
    for entry in word:
        mode = entry.mode or mode
        if entry.call:
            with using_mode(mode):
                bound.trigger(entry.call, Buffer() if entry.data else None)
    return mode


@pytest.fixture
def without_gc() -> Iterator[None]:
    """Switch the collector off, so that only the last reference frees an object."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_gc")
@pytest.mark.parametrize("ending", ["done", "refused", "failed"])
def test_nothing_is_kept_alive(ending: str) -> None:
    """Head, actions and argument are freed with their last reference, without a collector, however a call ends."""
    actions, argument = Actions(), Buffer()
    bound = head_machine().bind(actions)
    calls = {"done": Call.SET_CPU_DATA, "refused": Call.ASYNC_GPU_PUSH, "failed": Call.SET_GPU_DATA}
    actions.fails = Action.ADOPT_GPU
    watched = [weakref.ref(it) for it in (bound, actions, argument)]
    try:
        bound.trigger(calls[ending], argument)
    except (IllegalCallError, OSError) as error:
        found: object = type(error)
    else:
        found = None
    assert {"done": None, "refused": IllegalCallError, "failed": OSError}[ending] == found

    del bound, actions, argument

    assert [None] * 3 == [it() for it in watched]


def test_a_failing_action_leaves_head_and_flags() -> None:
    """Any action of any call may fail in any state. The same call then works, and ends in the right state."""
    failures = 0
    for state, row in space().steps.items():
        for entry, step in row.items():
            for action in step.actions:
                actions = Actions()
                bound = head_machine().bind(actions)
                mode = walk(bound, access_sequences()[state])
                actions.fails, actions.done, call = action, [], entry.call or Call.RELEASE
                with using_mode(mode), pytest.raises(OSError, match=f"^{action.value}$"):
                    bound.trigger(call, actions)
                assert (state.head, state.facts) == (bound.head, bound.facts)
                assert step.actions[: step.actions.index(action)] == tuple(done for done, _ in actions.done)
                actions.fails = None
                with using_mode(mode):
                    bound.trigger(call, actions)
                assert (step.after.head, step.after.facts) == (bound.head, bound.facts)
                failures += 1
    assert sum(len(step.actions) for row in space().steps.values() for step in row.values()) == failures


def test_actions_get_the_argument_in_order() -> None:
    """Every action of a call receives the argument of the call."""
    actions, buffer = Actions(), Buffer()
    bound = head_machine().bind(actions)
    bound.trigger(Call.CPU_DATA)
    bound.trigger(Call.SET_CPU_DATA, buffer)
    expected = [(Action.ALLOCATE_CPU, None), (Action.ZERO_CPU, None), (Action.FREE_CPU, buffer)]
    assert [*expected, (Action.ADOPT_CPU, buffer)] == actions.done


def test_every_refusal_has_an_error_of_its_own_or_names_a_head() -> None:
    """Two refusals with one error could not be told apart."""
    named = {refusal: type(refusal_error(refusal, "call", SyncedHead.SYNCED, None)) for refusal in Refusal}
    heads = {refusal for refusal in Refusal if refusal.needs}
    own = [error for refusal, error in named.items() if refusal not in heads]
    assert DeclarationError not in own
    assert len(own) == len(set(own)), f"say in refusal_error what each of these is raised as: {named}"
    assert {named[refusal] for refusal in heads} == {IllegalCallError}
    assert Refusal.NOT_HEAD_AT_CPU.needs is SyncedHead.HEAD_AT_CPU


@pytest.mark.parametrize(
    ("edition", "call", "argument", "error", "attributes"),
    [
        ("caffe", Call.SET_CPU_DATA, None, BufferMismatchError, {"call": "set_cpu_data", "buffer": None}),
        ("caffe", Call.SET_GPU_DATA, None, BufferMismatchError, {"call": "set_gpu_data", "buffer": None}),
        ("caffe", Call.ASYNC_GPU_PUSH, 7, IllegalCallError, {"call": "async_gpu_push", "head": SyncedHead.SYNCED}),
        ("cpu_only", Call.GPU_DATA, None, NoDeviceError, {}),
        ("cpu_only", Call.MUTABLE_GPU_DATA, None, NoDeviceError, {}),
        ("cpu_only", Call.SET_GPU_DATA, 7, NoDeviceError, {}),
        ("cpu_only", Call.SET_GPU_DATA, None, NoDeviceError, {}),
    ],
)
def test_a_refusal_names_the_call_and_changes_nothing(
    edition: str, call: Call, argument: object, error: type[SyncedMemoryError], attributes: dict[str, object]
) -> None:
    """A refused call performs no action, and its error has the call, the head and the argument."""
    actions = Actions()
    bound = head_machine(edition).bind(actions)
    bound.trigger(Call.CPU_DATA)
    if edition == "caffe":
        bound.trigger(Call.GPU_DATA)
    before = (bound.head, bound.facts, list(actions.done))
    with pytest.raises(error, match=f"^{call.value}") as caught:
        bound.trigger(call, argument)
    assert before == (bound.head, bound.facts, actions.done)
    assert attributes == {name: getattr(caught.value, name) for name in attributes}


@pytest.mark.parametrize("call", [Call.SET_GPU_DATA, Call.ASYNC_GPU_PUSH])
def test_a_call_that_the_edition_does_not_have_is_a_key_error(call: Call) -> None:
    """The early edition lacks both calls, so it has no row and no event for them."""
    machine = head_machine("early")
    assert call not in machine.calls
    for ask in (
        lambda: machine.bind(Actions()).trigger(call),
        lambda: machine.event(call),
        lambda: machine.row(call, SyncedHead.HEAD_AT_CPU, Fact(0), data=True),
    ):
        with pytest.raises(KeyError, match=call.value):
            ask()


def test_missing_actions_are_all_named() -> None:
    """Binding refuses an object without some actions. An attribute that cannot be called is not an action."""
    some = {action.value: print for action in Action if action not in (Action.ZERO_CPU, Action.FREE_GPU)}
    with pytest.raises(DeclarationError, match=r"^SimpleNamespace has no implementation for: zero_cpu, free_gpu$"):
        head_machine().bind(SimpleNamespace(**some, zero_cpu=3))


def test_only_the_actions_of_the_edition_are_needed() -> None:
    """The build without a GPU needs the host's actions only."""
    cpu = [action for action in Action if action.value.endswith("_cpu") and action is not Action.COPY_TO_CPU]
    bound = head_machine("cpu_only").bind(SimpleNamespace(**{action.value: print for action in cpu}))
    bound.trigger(Call.CPU_DATA)
    assert SyncedHead.HEAD_AT_CPU is bound.head


def test_attributes_named_like_guards_decide_nothing() -> None:
    """The object with the actions may have attributes `own_cpu_data` and `null_data` of its own."""
    actions = Actions()
    names: dict[str, Any] = {"own_cpu_data": True, "has_cpu_pointer": True, "has_data": False, "null_data": print}
    vars(actions).update(names, head=SyncedHead.SYNCED)
    bound = head_machine().bind(actions)
    bound.trigger(Call.SET_CPU_DATA, Buffer())
    bound.trigger(Call.SET_CPU_DATA, Buffer())
    assert [Action.ADOPT_CPU, Action.ADOPT_CPU] == [action for action, _ in actions.done]
    assert (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED) == (bound.head, vars(actions)["head"])


def test_a_name_that_nobody_has_is_an_attribute_error() -> None:
    """A guard that the checks did not see is found when it is asked, and then nothing has changed."""
    guard: Any = SimpleNamespace(value="is_warm")
    row = Transition(Call.CPU_DATA, (SyncedHead.UNINITIALIZED,), SyncedHead.HEAD_AT_CPU, conditions=(guard,))
    bound = HeadMachine(Declaration(EDITIONS["caffe"], (row,))).bind(Actions())
    with pytest.raises(AttributeError, match="'is_warm'"):
        bound.trigger(Call.CPU_DATA)
    assert SyncedHead.UNINITIALIZED is bound.head
    assert not hasattr(bound, "is_warm")


def pickled(bound: BoundHead) -> BoundHead:
    """Pickle a head, and return the loaded copy."""
    return cast("BoundHead", pickle.loads(pickle.dumps(bound)))  # noqa: S301 -- our own bytes


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_is_a_head_of_its_own(duplicate: Callable[[BoundHead], BoundHead]) -> None:
    """A copied or pickled head starts with the state of the first one, and then both move independently."""
    bound = head_machine("cpu_only").bind(Pickled())
    bound.trigger(Call.CPU_DATA)
    other = duplicate(bound)
    other.trigger(Call.SET_CPU_DATA, Buffer())
    assert (SyncedHead.HEAD_AT_CPU, Fact.CPU_POINTER | Fact.OWN_CPU_DATA) == (bound.head, bound.facts)
    assert (SyncedHead.HEAD_AT_CPU, Fact.CPU_POINTER) == (other.head, other.facts)


class Pickled:
    """An object with the host's actions, which do nothing."""

    def allocate_cpu(self, _: object) -> None: ...
    def zero_cpu(self, _: object) -> None: ...
    def adopt_cpu(self, _: object) -> None: ...
    def free_cpu(self, _: object) -> None: ...


@pytest.mark.parametrize(("mode", "pinned"), [(Mode.CPU, False), (Mode.GPU, True)])
def test_the_mode_decides_the_pinned_flag_alone(mode: Mode, *, pinned: bool) -> None:
    """Host memory is pinned if it is allocated in GPU mode. The early edition has no such flag."""
    for edition in ("caffe", "early"):
        bound = head_machine(edition).bind(Actions())
        with using_mode(mode):
            bound.trigger(Call.CPU_DATA)
        expected = Fact.CPU_MALLOC_USE_CUDA if pinned and edition == "caffe" else Fact(0)
        assert Fact.CPU_POINTER | Fact.OWN_CPU_DATA | expected == bound.facts


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_row_of_a_call_is_what_the_call_does(edition: str) -> None:
    """In every state, the row that `row` returns has the actions and the refusal of the explored step."""
    machine = head_machine(edition)
    for state, steps in some(space(edition).steps.items()):
        for call, data, step in some((entry.call, entry.data, it) for entry, it in steps.items() if entry.call):
            row = machine.row(call, state.head, state.facts, data)
            assert (row.actions, row.refusal) == (step.actions, step.refusal)
            assert (row.dest or state.head) is step.after.head


def test_a_refusal_without_an_error_is_named() -> None:
    unknown: Any = SimpleNamespace(name="TOO_LATE", value="too_late")

    error = refusal_error(unknown, "gpu_data", SyncedHead.SYNCED, None)

    assert isinstance(error, DeclarationError)
    assert "gpu_data in SYNCED: no error is declared for the refusal TOO_LATE" == str(error)
