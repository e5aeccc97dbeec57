"""In a real browser, the page does what the model does: in every cell, and when actions fail."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from loops import some

from syncedmem import SyncedMemory
from syncedmem.model import (
    EDITIONS,
    IllegalCallError,
    Input,
    Mode,
    SyncedHead,
    caffe,
    matrix,
    space,
    tour,
    using_mode,
)
from syncedmem.model.refusals import error_of
from syncedmem.model.states import stepper

if TYPE_CHECKING:
    from browser import Explorer, Shown

    from syncedmem.model import Configuration
    from syncedmem.model.states import Entry

pytestmark = pytest.mark.deep

SIZE = 16


def words_of(edition: str) -> dict[Configuration, list[str]]:
    """Return, for each configuration, a sequence of calls to the state that stands for it in the matrix."""
    found = space(EDITIONS[edition], null=True, settings=False)
    words: dict[Any, list[str]] = {found.start: []}
    for state, row in found.steps.items():
        for entry, step in row.items():
            words.setdefault(step.after, [*words[state], str(entry)])
    return {configuration: words[state] for configuration, state in found.configurations.items()}


def flags_of(edition: str, facts: frozenset[str]) -> dict[str, bool]:
    return {flag.name: flag.name in facts for flag in EDITIONS[edition].flags}


def refused_with(entry: Entry, asked: Input, head: str) -> str:
    """Return the model's message, in which no data is called NULL, as on the button."""
    assert entry.refusal
    refusal = caffe.EVERYTHING.refusals[entry.refusal]
    return str(error_of(refusal, str(asked.call), SyncedHead[head], None)).replace("adopt None", "adopt NULL")


# --- the machine


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_cell_does_what_the_model_says(explorer: Explorer, edition: str) -> None:
    """An address leads to the configuration, and a button makes the call: 153 cells in Caffe's edition."""
    from browser import Program, address, button

    words = words_of(edition)
    cells = [
        (before, asked, entry) for before, row in matrix(EDITIONS[edition]).items() for asked, entry in row.items()
    ]
    programs = [
        Program(address(words[before], edition=edition, size=SIZE), [button(str(asked))]) for before, asked, _ in cells
    ]
    assert len(cells) >= 24
    for (before, asked, entry), (was, shown) in zip(cells, explorer.play(programs), strict=True):
        assert was.configuration == str(before)
        assert shown.configuration == str(entry.after)
        assert shown.actions == [[action, "done", SIZE] for action in entry.actions]
        assert shown.flags == flags_of(edition, entry.facts)
        assert shown.lit == [entry.after.head]
        assert shown.called == [str(asked)]
        (label,) = shown.labels
        assert label.split(" ")[0] in {str(asked), str(asked.call)}
        assert bool(shown.refusal) == (entry.refusal != "")
        if entry.refusal:
            assert refused_with(entry, asked, before.head) in shown.refusal


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_tour_takes_every_transition_as_the_model_does(explorer: Explorer, edition: str) -> None:
    """The mode is an input too: 558 transitions in Caffe's edition, with flags and mode compared after each step."""
    from browser import Program, address

    taken, words = set[object](), list(tour(EDITIONS[edition]))
    programs = [Program(address(map(str, it), edition=edition, size=4, at=0), ["#forward"] * len(it)) for it in words]
    for word, (_, *seen) in zip(words, explorer.play(programs), strict=True):
        state = space(EDITIONS[edition]).start
        for entry, shown in zip(word, seen, strict=True):
            taken.add((state, entry))
            state = space(EDITIONS[edition]).steps[state][entry].after
            assert (shown.configuration, shown.mode) == (
                str(space(EDITIONS[edition]).configuration(state)),
                *state.settings,
            )
            assert shown.flags == flags_of(edition, state.facts)
    assert len(taken) == space(EDITIONS[edition]).transitions


def test_a_walk_has_the_bytes_of_a_real_memory(explorer: Explorer) -> None:
    """The page and the runtime get the same random calls: head, flags, fresh bytes and live blocks are equal."""
    from browser import Program, address, button

    chosen = random.Random(5)  # noqa: S311 -- a walk, not a secret
    walks = [chosen.choices(stepper(caffe.CAFFE).inputs(null=False, settings=False), k=19) for _ in range(6)]
    programs = [Program(address(size=SIZE), [button(str(entry)) for entry in walk]) for walk in walks]
    for walk, (_, *seen) in zip(some(walks), explorer.play(programs), strict=True):
        with using_mode(Mode.GPU), SyncedMemory(SIZE, device="simulated") as memory:
            for number, (entry, shown) in enumerate(zip(some(walk), seen, strict=True), 1):
                assert bool(shown.refusal) == (not done(memory, entry, number))
                assert shown.configuration[0] == "UCGS"[memory.head.value]
                assert shown.flags == {name: getattr(memory, name) for name in shown.flags}
                assert shown.live == memory.own_cpu_data + memory.own_gpu_data
                compare_bytes(shown, memory)


def done(memory: SyncedMemory, entry: Input, number: int) -> bool:
    """Make a call, and write the bytes that the page shows as the caller's; return False if the call is refused."""
    value, device = np.full(SIZE, number, dtype=np.uint8), memory.device
    assert device is not None
    try:
        if entry.call == caffe.SET_CPU_DATA:
            memory.set_cpu_data(value)
        elif entry.call == caffe.SET_GPU_DATA:
            array = device.empty(SIZE)
            array.set(value)
            memory.set_gpu_data(array)
        elif entry.call == caffe.ASYNC_GPU_PUSH:
            memory.async_gpu_push(stream=device.stream())
        elif entry.call is not None:
            view = getattr(memory, entry.call.name)()
            if entry.call == caffe.MUTABLE_CPU_DATA:
                view[:] = value
            elif entry.call == caffe.MUTABLE_GPU_DATA:
                view.set(value)
    except IllegalCallError:
        return False
    return True


def compare_bytes(shown: Shown, memory: SyncedMemory) -> None:
    """Compare only the sides that the memory counts as fresh, because reading them copies nothing."""
    if memory.head in (SyncedHead.HEAD_AT_CPU, SyncedHead.SYNCED):
        assert shown.bytes["cpu"] == bytes(memory.cpu_data()).hex()
    if memory.head in (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED):
        assert shown.bytes["gpu"] == bytes(memory.gpu_data().get()).hex()


def test_every_action_can_fail_and_nothing_has_changed(explorer: Explorer) -> None:
    """Every action of every cell fails once. The page shows the strong guarantee, and the next call works."""
    from browser import Program, address

    words = words_of("caffe")
    points = [
        (before, asked, k, action)
        for before, row in matrix(caffe.CAFFE).items()
        for asked, entry in row.items()
        for k, action in enumerate(entry.actions, 1)
    ]
    explorer.press("#failing")
    programs = [
        Program(address(words[before], size=SIZE), [f'[data-input="{asked}"] [data-fail="{k}"]'])
        for before, asked, k, _ in points
    ]
    for (_, asked, k, action), (was, shown) in zip(points, explorer.play(programs), strict=True):
        assert shown.unchanged == "true"
        assert (shown.configuration, shown.flags, shown.bytes) == (was.configuration, was.flags, was.bytes)
        assert (shown.blocks, shown.live, shown.fresh) == (was.blocks, was.live, was.fresh)
        assert shown.actions[k - 1][:2] == [action, "failed"]
        assert (shown.called, shown.labels) == ([str(asked)], [])
    explorer.call("cpu_data")
    assert not explorer.shown().refusal


def test_a_release_that_fails_half_way_can_be_made_again(explorer: Explorer) -> None:
    """The freed block stays freed. We still own the other block, and another release frees it."""
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


def test_zero_bytes_take_the_same_heads_and_allocate_nothing(explorer: Explorer) -> None:
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
    explorer.visit(address)

    assert explorer.shown() == shown
    assert explorer.wait_for_address("at=4") == address
    explorer.press("#forward")
    assert explorer.shown().configuration == "released"


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        ("edition=nobody&size=4", "edition=nobody: there is none of that name, so it is caffe", "caffe 4 GPU"),
        ("mode=TPU&size=4", "mode=TPU: there is none of that name, so it is GPU", "caffe 4 GPU"),
        ("size=many&mode=CPU", "size=many: it has to be a number from 0 to 64, so it is 16", "caffe 16 CPU"),
        ("size=-5&mode=CPU", "size=-5: it has to be a number from 0 to 64, so it is 16", "caffe 16 CPU"),
        ("size=65", "size=65: it has to be a number from 0 to 64, so it is 16", "caffe 16 GPU"),
        ("calls=bogus", "bogus: caffe has no such call, so it is left out", "caffe 16 GPU"),
        ("calls=gpu_data,fly,cpu_data", "fly: caffe has no such call", "caffe 16 GPU calls=gpu_data,cpu_data"),
        ("at=2&calls=fly,gpu_data,cpu_data", "fly: caffe has no", "caffe 16 GPU at=1&calls=gpu_data,cpu_data"),
        ("at=9&calls=cpu_data", "at=9: it has to be a number from 0 to 1, so it is 1", "caffe 16 GPU calls=cpu_data"),
        ("edition=early&calls=async_gpu_push", "async_gpu_push: early has no such call", "early 16 GPU"),
        ("calls=cpu_data!x", "cpu_data!x: behind ! has to be the number of", "caffe 16 GPU calls=cpu_data"),
        ("calls=cpu_data!1!2", "cpu_data!1!2: behind ! has to be", "caffe 16 GPU calls=cpu_data"),
        ("calls=cpu_data!9", "cpu_data!9: it has 2 actions, so none fails", "caffe 16 GPU calls=cpu_data"),
        (
            "calls=cpu_data,gpu_data,release!2,release!2",
            "release!2: it has 1 action, so number 1 fails",
            "caffe 16 GPU calls=cpu_data,gpu_data,release!2,release!1",
        ),
        ("colour=red&size=4", "colour: there is no such thing to say; there are edition, size,", "caffe 4 GPU"),
        ("size=4&size=0", "size: it is said twice, and the first counts", "caffe 4 GPU"),
        ("calls=%ff,cpu_data", "caffe has no such call", "caffe 16 GPU calls=cpu_data"),
    ],
)
def test_what_an_address_says_wrongly_is_said_and_the_rest_is_kept(
    explorer: Explorer, asked: str, said: str, kept: str
) -> None:
    edition, size, mode, *more = kept.split(" ")
    explorer.visit(f"{explorer.address}#{asked}")

    assert said in explorer.text("unclear")
    assert explorer.find("#unclear").is_displayed()
    assert explorer.run("return location.hash") == "&".join(
        [f"#edition={edition}", f"size={size}", f"mode={mode}", *more]
    )


def test_what_was_not_understood_is_forgotten_with_the_next_call(explorer: Explorer) -> None:
    explorer.visit(f"{explorer.address}#calls=fly")
    explorer.call("cpu_data")

    assert not explorer.find("#unclear").is_displayed()


def test_an_address_that_is_understood_says_nothing(explorer: Explorer) -> None:
    explorer.open(["cpu_data", "set_cpu_data(NULL)", "gpu_data!2"], edition="caffe", size=64, mode="CPU", at=1)

    assert explorer.text("unclear") == "Not understood:"
    assert not explorer.find("#unclear").is_displayed()


def test_a_random_walk_goes_where_calls_are_not_refused(explorer: Explorer) -> None:
    explorer.press("#walk")  # the browser asks for reduced motion, so the walk ends at once
    refused = explorer.run("return document.querySelectorAll('#steps .refused').length")

    assert refused == 0
    assert explorer.text("totals").startswith("24 of 24")
