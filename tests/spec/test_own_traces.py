"""Recorded runs of a machine with names of its own: what agrees is followed, what does not is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.model import FileFormatError, Rule, declare, head_machine, space
from syncedmem.spec.vectors.traces import Stop, check_trace

if TYPE_CHECKING:
    from pathlib import Path

BOX = declare(
    "box",
    "A box with a lid",
    heads="EMPTY FULL",
    calls="fill drain lock burn",
    facts="locked",
    actions={"pour": "", "turn": "+locked"},
    ends="burn",
    rows=[
        Rule("fill", "EMPTY", "FULL", "pour", when="!locked"),
        Rule("fill", "FULL", "FULL", when="!locked"),
        Rule("fill", "EMPTY FULL", refusal="is_locked", when="locked"),
        Rule("drain", "EMPTY FULL", "EMPTY", "pour"),
        Rule("lock", "EMPTY", "EMPTY", "turn"),
        Rule("lock", "FULL", "FULL", "turn"),
        Rule("burn", "EMPTY FULL", refusal="is_locked", when="locked"),
        Rule("burn", "EMPTY FULL", when="!locked"),
    ],
)


def checked(folder: Path, *lines: Any) -> Stop | int:
    file = folder / "run.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return check_trace(file, BOX)


def test_the_machine_follows_every_transition_of_its_own(tmp_path: Path) -> None:
    """Each cell of each state, after the shortest way to that state."""
    machine, found = head_machine(BOX), space(BOX)
    ways: dict[object, list[dict[str, object]]] = {found.start: []}
    for state in ways_in_order(ways):
        for entry, step in found.steps[state].items():
            line: dict[str, object] = {
                "call": str(entry),
                "actions": [it.value for it in step.actions],
                "refusal": step.refusal and step.refusal.value,
                "head": step.after.head.name,
                "flags": {"locked": bool(step.after.facts)},
            }
            assert checked(tmp_path, *ways[state], line) == len(ways[state]) + 1
            wrong = {**line, "flags": {"locked": not step.after.facts}}
            assert isinstance(checked(tmp_path, *ways[state], wrong), Stop)
            ways.setdefault(step.after, [*ways[state], line])
    assert len(ways) == len(found.steps) == 4
    assert {call.value for call in machine.calls} == {"fill", "drain", "lock", "burn"}


def ways_in_order(ways: dict[object, list[dict[str, object]]]) -> Any:
    """The states, those that are found on the way too."""
    done: set[object] = set()
    while waiting := [state for state in ways if state not in done]:
        done.add(waiting[0])
        yield waiting[0]


def test_what_was_not_recorded_may_be_anything(tmp_path: Path) -> None:
    assert checked(tmp_path, {"actions": ["pour"]}, {"actions": ["turn"]}, {"call": "fill", "refused": True}) == 3
    assert checked(tmp_path, {"edition": "box"}, {"call": "burn"}, {"memory": 1, "call": "fill"}) == 3
    assert checked(tmp_path, {"call": "burn"}, {"edition": "box"}, {"call": "fill"}) == 3
    assert checked(tmp_path, {"steps": [{"call": "lock"}, {"call": "burn", "refusal": "is_locked"}]}) == 1


WRONG: list[tuple[list[dict[str, object]], str]] = [
    (
        [{"call": "fill", "actions": []}],
        "line 1: seen fill, actions [], expected fill: pour, then FULL",
    ),
    (
        [{"call": "lock"}, {"call": "fill", "head": "FULL"}],
        "line 2: seen fill, head FULL, expected fill: the refusal is_locked, then EMPTY",
    ),
    (
        [{"call": "fill", "refused": True}],
        "line 1: seen fill, refused True, expected fill: pour, then FULL",
    ),
    (
        [{"call": "lock"}, {"call": "burn", "refused": False}],
        "line 2: seen burn, refused False, expected burn: the refusal is_locked, then EMPTY",
    ),
    (
        [{"actions": ["turn", "turn"]}],
        (
            "line 1: seen actions alone, actions ['turn', 'turn'], expected fill: pour, then FULL; or "
            "drain: pour, then EMPTY; or lock: turn, then EMPTY; or burn: no action, then the end"
        ),
    ),
    ([{"call": "burn"}, {"call": "fill"}], "line 2: seen fill, expected nothing"),
]


@pytest.mark.parametrize(("lines", "said"), WRONG)
def test_a_line_that_the_machine_does_not_do_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    assert str(checked(tmp_path, *lines)) == said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"call": "open"}, "unknown call 'open'; there are fill, drain, lock, burn"),
        ({"call": "fill", "actions": ["spill"]}, "unknown action 'spill'; there are pour, turn"),
        ({"call": "fill", "head": "HALF"}, "unknown head 'HALF'; there are EMPTY, FULL"),
        ({"call": "fill", "refusal": "is_full"}, "unknown refusal 'is_full'; there are is_locked"),
        ({"call": "fill", "flags": {"wet": True}}, "unknown flag 'wet'; there are locked"),
        ({"call": "fill", "bytes": {}}, "unknown key 'bytes'; there are call, memory, refusal"),
        ({"edition": "caffe"}, "it is a run of 'caffe', not of box"),
        ({"call": "fill", "actions": 3}, "it is no recorded run: TypeError"),
        ({"call": "fill", "memory": []}, "it is no recorded run: TypeError"),
    ],
)
def test_what_the_machine_does_not_have_is_refused(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(FileFormatError) as refused:
        checked(tmp_path, line)
    assert message in str(refused.value)
