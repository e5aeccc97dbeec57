"""The explorer says why each action was done, and why others were not; each reason is true in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from state_words import words_of

from syncedmem.model import EDITIONS, Action, Call, Configuration, Input, SyncedHead, head_machine, matrix
from syncedmem.model.exploration import Side
from syncedmem.model.vocabulary import Host, place_of

if TYPE_CHECKING:
    from browser import Explorer, Reason, Shown

    from syncedmem.model.exploration import Entry

FRESH_ALONE = ("write", "zero", "argument")
"""The kinds of reasons that say what was done last to the side that a copy comes from."""


def pointer(before: Configuration, place: Host | None) -> Side:
    return before.cpu if place is Host.CPU else before.gpu


def is_true(reason: Reason, before: Configuration, asked: Input, after: Configuration) -> bool:
    """Return whether a reason is true of the memory before the call, in the words of the model."""
    about = reason.done or reason.left
    place = place_of(Action(about)) if about else asked.call and place_of(asked.call)
    if reason.kind in FRESH_ALONE:
        return place is not None and before.head is place.other.head
    if reason.kind == "stale":
        return place is not None and place.other.is_fresh(before.head) and not place.other.is_fresh(after.head)
    return {
        "no memory": pointer(before, place) is Side.NULL,
        "nothing there": pointer(before, place) is Side.NULL,
        "there already": pointer(before, place) is not Side.NULL,
        "ours": pointer(before, place) is Side.OWNED,
        "not ours": pointer(before, place) is Side.EXTERNAL,
        "no data": before.head is SyncedHead.UNINITIALIZED,
        "handed in": asked.call is not None and asked.call.takes_data,
        "fresh": place is not None and place.is_fresh(before.head),
        "owns nothing": Side.OWNED not in (before.cpu, before.gpu),
    }[reason.kind]


def others(edition: str, call: Call, head: SyncedHead) -> set[str]:
    """Return the actions of all rows of a call in a head: what it would do with other guards."""
    rows = [row for row in head_machine(edition).declaration.rows if row.call is call and head in row.source]
    return {action.value for row in rows for action in row.actions}


def mistakes(edition: str, before: Configuration, asked: Input, entry: Entry, shown: Shown) -> list[object]:
    """Return what is wrong with the reasons of a step: false ones, and actions without a reason."""
    found: list[object] = [it for it in shown.reasons if not is_true(it, before, asked, entry.after)]
    actions = [action.value for action in entry.actions]
    if actions != [it.done for it in shown.reasons if it.done]:
        found.append(f"not explained: {actions}")
    assert asked.call is not None
    left = others(edition, asked.call, before.head) - set(actions) if entry.refusal is None else set[str]()
    if left != {it.left for it in shown.reasons if it.left}:
        found.append(f"left out, and not explained: {left}")
    if not shown.reasons and entry.refusal is None:
        found.append("no reason")
    return found


@pytest.mark.no_cover
@pytest.mark.parametrize("edition", EDITIONS)
def test_every_reason_in_every_cell_is_true(explorer: Explorer, edition: str) -> None:
    """What is done, what is left out by a guard, and what becomes stale: in all cells of the matrix, and at the end."""
    from browser import Program, address, button

    ways = words_of(edition)
    cells = [(before, asked, entry) for before, row in matrix(edition).items() for asked, entry in row.items()]
    programs = [Program(address(ways[before], edition=edition), [button(str(asked))]) for before, asked, _ in cells]
    seen = explorer.play(programs)

    assert len(seen) >= 24
    for (before, asked, entry), (_, shown) in zip(cells, seen, strict=True):
        assert [] == mistakes(edition, before, asked, entry, shown)
        assert all(", because " in it.text and it.text.endswith(".") for it in shown.reasons)


def test_a_false_reason_and_a_missing_one_are_found(explorer: Explorer) -> None:
    """The page is right about C:o-; of other memories the same reasons are false, or reasons are missing."""
    explorer.go(["cpu_data", "set_cpu_data"])
    shown = explorer.shown()
    owned, external = (Configuration(SyncedHead.HEAD_AT_CPU, side, Side.NULL) for side in (Side.OWNED, Side.EXTERNAL))
    asked = Input(Call.SET_CPU_DATA)

    assert [] == mistakes("caffe", owned, asked, matrix()[owned][asked], shown)
    assert mistakes("caffe", external, asked, matrix()[external][asked], shown)
    assert mistakes("caffe", owned, asked, matrix()[owned][asked], shown._replace(reasons=[]))
    assert ["no reason"] == mistakes(
        "caffe", owned, Input(Call.CPU_DATA), matrix()[owned][Input(Call.CPU_DATA)], shown._replace(reasons=[])
    )


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("mutable_gpu_data cpu_data", "Copied to the host, because the device wrote last (step 1)."),
        ("gpu_data cpu_data", "Copied to the host, because the device was zeroed last (step 1)."),
        ("cpu_data set_gpu_data cpu_data", "because memory on the device was handed in last (step 2)."),
        ("cpu_data gpu_data mutable_cpu_data gpu_data", "Copied to the device, because the host wrote last (step 3)."),
        ("mutable_cpu_data async_gpu_push", "Copied to the device (queued), because the host wrote last (step 1)."),
        ("cpu_data gpu_data mutable_cpu_data gpu_data", "Not allocated on the device, because the device has memory"),
        ("set_cpu_data set_cpu_data", "Not freed on the host, because that memory is the caller's."),
        ("cpu_data gpu_data mutable_gpu_data", "The host is stale from now on, because the caller may write on the de"),
        ("cpu_data gpu_data set_gpu_data", "The host is stale from now on, because the device has other memory now."),
        ("cpu_data cpu_data", "Nothing to do, because the host is fresh."),
        ("release", "Nothing to free, because the memory owns nothing."),
        ("cpu_data release", "Not freed on the device, because the device has no memory."),
        ("set_mode(CPU)", "Nothing happens yet, because only allocate_cpu reads the mode."),
        ("cpu_data gpu_data release!2 release", "Freed on the device, because that memory is ours."),
    ],
)
def test_a_step_says_because(explorer: Explorer, calls: str, said: str) -> None:
    explorer.go(calls.split(" "))

    assert said in " ".join(it.text for it in explorer.shown().reasons)


@pytest.mark.parametrize("calls", ["async_gpu_push", "cpu_data!1"])
def test_a_refusal_and_a_failure_have_words_of_their_own(explorer: Explorer, calls: str) -> None:
    explorer.go([calls])

    assert [] == explorer.shown().reasons
