"""The page to play with, in a real browser: it does what the model does, in every cell, with every failure."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem import SyncedMemory
from syncedmem.model import (
    EDITIONS,
    Call,
    Fact,
    IllegalCallError,
    Input,
    Mode,
    SyncedHead,
    inputs,
    matrix,
    space,
    tour,
    using_mode,
)
from syncedmem.model.editions import dispatch
from syncedmem.model.exploration import Entry, explore
from syncedmem.model.machine import refusal_error

if TYPE_CHECKING:
    from browser import Explorer, Shown

    from syncedmem.model import Configuration

SIZE = 16


def words_of(edition: str) -> dict[Configuration, list[str]]:
    """A word to the state that speaks for each configuration in the matrix."""
    found = explore(dispatch(edition), inputs(edition, null=True, mode=False), Mode.GPU)
    words: dict[Any, list[str]] = {found.start: []}
    for state, row in found.steps.items():
        for entry, step in row.items():
            words.setdefault(step.after, [*words[state], str(entry)])
    chosen: dict[Configuration, list[str]] = {}
    for state in found.steps:
        chosen.setdefault(state.configuration, words[state])
    return chosen


def flags_of(edition: str, facts: Fact) -> dict[str, bool]:
    return {str(flag.name).lower(): flag in facts for flag in Fact if flag in EDITIONS[edition].flags}


def refused_with(entry: Entry, asked: Input, head: SyncedHead) -> str:
    assert entry.refusal is not None
    assert asked.call is not None
    return str(refusal_error(entry.refusal, asked.call.value, head, None))


# --- the machine


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_cell_does_what_the_model_says(explorer: Explorer, edition: str) -> None:
    """Each is walked to by the address, and then made by pressing its button: 153 cells in Caffe's edition."""
    words, taken = words_of(edition), 0
    for before, row in matrix(edition).items():
        for asked, entry in row.items():
            explorer.go(words[before], edition=edition, size=SIZE)
            assert explorer.shown().configuration == str(before)
            explorer.call(str(asked))
            shown = explorer.shown()

            assert shown.configuration == str(entry.after)
            assert shown.actions == [[action.value, "done", SIZE] for action in entry.actions]
            assert shown.flags == flags_of(edition, entry.facts)
            assert shown.lit == [entry.after.head.name]
            assert bool(shown.refusal) == (entry.refusal is not None)
            if entry.refusal is not None:
                assert refused_with(entry, asked, before.head) in shown.refusal
            taken += 1
    assert taken == sum(map(len, matrix(edition).values()))


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_tour_takes_every_transition_as_the_model_does(explorer: Explorer, edition: str) -> None:
    """With the mode an input too: all 558 of Caffe's edition, with flags and mode after every step."""
    taken: set[object] = set()
    for word in tour(edition):
        explorer.go(map(str, word), edition=edition, size=4, at=0)
        state = space(edition).start
        for entry in word:
            explorer.run("document.getElementById('forward').click()")
            taken.add((state, entry))
            state = space(edition).steps[state][entry].after
            shown = explorer.shown()
            assert (shown.configuration, shown.mode) == (str(state.configuration), state.mode.name)
            assert shown.flags == flags_of(edition, state.facts)
    assert len(taken) == space(edition).transitions


def test_a_walk_has_the_bytes_of_a_real_memory(explorer: Explorer) -> None:
    """The same random calls on the page and on the runtime: head, flags, bytes of fresh sides and live blocks."""
    chosen = random.Random(5)  # noqa: S311 -- a walk, not a secret
    for _ in range(6):
        explorer.go(size=SIZE)
        with using_mode(Mode.GPU), SyncedMemory(SIZE, device="simulated") as memory:
            for number in range(1, 20):
                entry = chosen.choice(inputs(mode=False))
                explorer.call(str(entry))
                assert bool(explorer.shown().refusal) == (not done(memory, entry, number))
                shown = explorer.shown()
                assert shown.configuration[0] == "UCGS"[memory.head.value]
                assert shown.flags == {name: getattr(memory, name) for name in shown.flags}
                assert shown.live == memory.own_cpu_data + memory.own_gpu_data
                compare_bytes(shown, memory)


def done(memory: SyncedMemory, entry: Input, number: int) -> bool:
    """Make a call, and write into it as the page says that the caller does; False where it is refused."""
    value, device = np.full(SIZE, number, dtype=np.uint8), memory.device
    assert device is not None
    try:
        if entry.call is Call.SET_CPU_DATA:
            memory.set_cpu_data(value)
        elif entry.call is Call.SET_GPU_DATA:
            array = device.empty(SIZE)
            array.set(value)
            memory.set_gpu_data(array)
        elif entry.call is Call.ASYNC_GPU_PUSH:
            memory.async_gpu_push(stream=device.stream())
        elif entry.call is not None:
            view = getattr(memory, entry.call.value)()
            if entry.call is Call.MUTABLE_CPU_DATA:
                view[:] = value
            elif entry.call is Call.MUTABLE_GPU_DATA:
                view.set(value)
    except IllegalCallError:
        return False
    return True


def compare_bytes(shown: Shown, memory: SyncedMemory) -> None:
    """Only sides that the memory counts as fresh, so that looking moves nothing."""
    if memory.head in (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED):
        assert shown.bytes["cpu"] == bytes(memory.cpu_data()).hex()
    if memory.head in (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED):
        assert shown.bytes["gpu"] == bytes(memory.gpu_data().get()).hex()


def test_every_action_can_fail_and_nothing_has_changed(explorer: Explorer) -> None:
    """In every configuration, of every call: the strong guarantee is to be seen, and the next call works."""
    words, points = words_of("caffe"), 0
    explorer.press("#failing")
    for before, row in matrix().items():
        for asked, entry in row.items():
            for k, action in enumerate(entry.actions, 1):
                explorer.go(words[before], size=SIZE)
                was = explorer.shown()
                button = f'[data-input="{asked}"] [data-fail="{k}"]'
                explorer.run("document.querySelector(arguments[0]).click()", button)
                shown = explorer.shown()
                assert shown.unchanged == "true"
                assert (shown.configuration, shown.flags, shown.bytes) == (was.configuration, was.flags, was.bytes)
                assert (shown.ledger, shown.live, shown.fresh) == (was.ledger, was.live, was.fresh)
                assert shown.actions[k - 1][:2] == [action.value, "failed"]
                points += 1
    explorer.call("cpu_data")
    assert not explorer.shown().refusal
    assert points == sum(len(entry.actions) for row in matrix().values() for entry in row.values())


def test_a_release_that_fails_half_way_can_be_made_again(explorer: Explorer) -> None:
    """What is freed cannot be unfreed; the other block is still ours, and another release frees it."""
    explorer.go(["cpu_data", "gpu_data", "release!1"], size=SIZE)
    assert (explorer.shown().unchanged, explorer.shown().live) == ("true", 2)
    explorer.go(["cpu_data", "gpu_data", "release!2"], size=SIZE)
    half = explorer.shown()
    assert (half.configuration, half.unchanged, half.live) == ("released", "false", 1)
    explorer.go(["cpu_data", "gpu_data", "release!2", "release!1"], size=SIZE)
    assert explorer.shown().live == 1
    explorer.call("release")
    assert explorer.shown().live == 0
    explorer.call("cpu_data")
    assert "released" in explorer.shown().refusal


def test_zero_bytes_walk_the_same_heads_and_allocate_nothing(explorer: Explorer) -> None:
    explorer.go(["cpu_data", "gpu_data", "set_cpu_data", "mutable_gpu_data", "release"], size=0, at=4)

    assert explorer.shown().configuration == "G:eo"
    assert explorer.shown().live == 0
    explorer.press("#forward")
    assert explorer.shown().configuration == "released"


# --- going back, addresses


def test_undo_goes_back_and_step_goes_on(explorer: Explorer) -> None:
    seen = [explorer.shown()]
    for call in ("mutable_cpu_data", "gpu_data", "set_gpu_data", "cpu_data"):
        explorer.call(call)
        seen.append(explorer.shown())
    for earlier in reversed(seen[:-1]):
        explorer.press("#undo")
        assert explorer.shown() == earlier
    assert not explorer.find("#undo").is_enabled()
    for later in seen[1:]:
        explorer.press("#forward")
        assert explorer.shown() == later
    explorer.press("#reset")
    assert explorer.shown() == seen[0]


def test_an_address_brings_back_what_was_there(explorer: Explorer) -> None:
    for call in ("set_mode(CPU)", "cpu_data", "set_cpu_data(NULL)", "mutable_gpu_data", "release"):
        explorer.call(call)
    explorer.press("#undo")
    shown, address = explorer.shown(), explorer.wait_for_address("at=4")
    explorer.driver.get("about:blank")
    explorer.driver.get(address)

    assert explorer.shown() == shown
    assert explorer.wait_for_address("at=4") == address
    explorer.press("#forward")
    assert explorer.shown().configuration == "released"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("edition=nobody", "there is no edition nobody"),
        ("calls=fly", "has no call fly"),
        ("size=many", "many is no number"),
        ("mode=TPU", "there is no mode TPU"),
        ("edition=early&calls=async_gpu_push", "early has no call async_gpu_push"),
        ("calls=cpu_data!x", "x is no number"),
    ],
)
def test_an_address_that_cannot_be_followed_says_why(explorer: Explorer, wrong: str, said: str) -> None:
    explorer.driver.get("about:blank")
    explorer.driver.get(f"{explorer.address}#{wrong}")

    assert said in explorer.text("banner")
    assert explorer.shown().configuration == "U:--"


def test_a_random_walk_goes_where_calls_are_not_refused(explorer: Explorer) -> None:
    explorer.press("#walk")  # without motion it is walked at once
    refused = explorer.run("return document.querySelectorAll('#steps .refused').length")

    assert refused == 0
    assert explorer.text("totals").startswith("24 of 24")
