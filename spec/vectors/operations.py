"""Steps of vectors as data, and back: an operation says what is done, and what must be seen.

Only here the words of a vector and the fields of the record meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from syncedmem.model import EDITIONS, InvalidArgumentError, caffe

from ..engine.actions import Action
from ..engine.call_log import action_of
from ..memory.policy import POLICIES, Reason
from ..record.observation import Observation
from ..record.steps import OWN, Buffer, Step
from ..record.world import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from syncedmem.model.declaration import Call, Machine, Refusal

    from ..record.steps import Case
    from ..record.world import World

__all__ = [
    "LOOK",
    "OWN_BUFFER",
    "REFUSALS",
    "WRITE_BUFFER",
    "Operation",
    "due_of",
    "expected",
    "operation",
    "refusals",
    "setting_of",
    "step_of",
]

Operation = dict[str, Any]
"""A step as data; its keys are in docs/vectors.md."""

WRITE_BUFFER, LOOK = "write_buffer", "look"
"""The operations that are neither calls of a memory nor changes of a setting; `LOOK` only compares it."""
OWN_BUFFER = "own_buffer"
"""The refusal of a memory's own pointer, which Caffe frees and then keeps; no machine knows pointers."""

_WHY = {
    caffe.NULL_DATA: "the argument of `set_*_data` was NULL",
    caffe.NO_GPU: "a call for the device in a build without one, with any argument",
}


def _why(refusal: Refusal) -> str:
    if not refusal.needs:
        return _WHY[refusal]
    calls = dict.fromkeys(f"`{row.call}`" for row in caffe.EVERYTHING.rows if row.refusal == refusal.name)
    return f"{' or '.join(calls)} at a head other than {refusal.needs}"


REFUSALS: dict[str | None, str] = {
    None: "the call is not refused; if it has `fail`, it reports that failure",
    **{refusal.name: _why(refusal) for refusal in caffe.REFUSALS},
    OWN_BUFFER: "the argument of `set_*_data` was the memory's own pointer, which the caller does not own",
}
"""The values of `refusal` in a step with their meanings; the page and the schema are made from this list."""


def refusals(machine: Machine) -> Mapping[str | None, str]:
    """The values of `refusal` in a step of a machine with their meanings; what it does not name has a word of ours."""
    if machine in (caffe.EVERYTHING, *EDITIONS.values()):
        return REFUSALS
    ours = dict.fromkeys(get_args(Reason), "the policy refuses the call, and does not say what the machine calls it")
    own = {refusal.name: refusal.text or "the machine refuses the call" for refusal in machine.refusals.values()}
    return {None: REFUSALS[None], **ours, **own}


# --- written


def operation(machine: Machine, step: Step) -> Operation:
    """What is done in a step."""
    if step.does == "set":
        return {"call": f"set_{step.name}", "argument": step.value}
    done: Operation = {"call": {"look": LOOK, "write": WRITE_BUFFER}.get(step.does, step.name)}
    if step.memory:
        done["memory"] = step.memory
    if step.does == "write" and step.argument is not None:
        done["argument"] = {"buffer": int(step.argument.name), "bytes": step.write}
        return done
    if step.does == "call" and machine.calls[step.name].does == "adopt":
        done["argument"] = None if step.argument is None else _argument(step.argument)
    return done | ({} if step.write is None else {"write": step.write}) | ({"fail": step.fail} if step.fail else {})


def _argument(buffer: Buffer) -> dict[str, Any]:
    if buffer.name == OWN:
        return {"own": True, **({"offset": buffer.offset} if buffer.offset else {})}
    return {"buffer": int(buffer.name), **({} if buffer.content is None else {"bytes": buffer.content})}


def expected(world: World, steps: Case) -> Iterator[Operation]:
    """The operations of steps in a world, each with what must be seen."""
    for step in steps:
        found = world.after(step)
        done = operation(world.machine, step)
        if found is None:
            raise InvalidArgumentError("a step of a vector", done["call"], "one that means something where it is made")
        due, after = found
        yield done if step.does == "set" else {**done, **_seen(world, step, due, after)}
        world = after


def _seen(world: World, step: Step, due: Observation, after: World) -> Operation:
    """What must be seen after a step; of a memory of zero bytes the actions are not said."""
    machine, seen = world.machine, dict[str, Any]()
    call = machine.calls.get(step.name) if step.does == "call" else None
    if call is not None:
        why = "" if due.refused in ("", FAILED) else world.why(step)
        seen["refusal"] = (OWN_BUFFER if why == "own" else why) or None
        did = world.expected(step)
        if due.size and due.refused != FAILED and did is not None:
            did_steps = () if due.refused else did.steps
            seen["actions"] = [action_of(machine, step.operation, step.side, step.source) for step in did_steps]
        if call.ends:
            return seen
        if due.view is not None:
            seen["shows"] = due.view
    oracle = after.memory(step.memory).oracle
    flags = {flag.name: oracle.holds(flag) for flag in machine.flags}
    return {
        **seen,
        "head": due.head,
        "flags": {name: value for name, value in flags.items() if value is not None},
        "bytes": {side: copy.content if copy.fresh else None for side, copy in oracle.copies.items()},
    }


# --- read


def step_of(machine: Machine, done: Operation) -> Step:
    """The step that an operation is."""
    name, number = done["call"], done.get("memory", 0)
    argument: Any = done.get("argument")
    setting = setting_of(machine, name)
    if setting:
        return Step("set", name=setting, value=str(argument))
    if name == LOOK:
        return Step("look", number)
    side = machine.calls[name].side if name in machine.calls else ""
    lent = _buffer(cast("Any", argument), side) if isinstance(argument, dict) else None
    if name == WRITE_BUFFER:
        return Step("write", number, argument=lent, write=lent and lent.content)
    return Step("call", number, name, lent, done.get("write"), done.get("fail", 0))


def setting_of(machine: Machine, word: str) -> str:
    """The setting that an operation changes; empty if it changes none."""
    return next((name for name in machine.settings if word == f"set_{name}"), "")


def _buffer(argument: dict[str, Any], side: str) -> Buffer:
    if argument.get("own"):
        return Buffer(OWN, side, offset=argument.get("offset", 0))
    return Buffer(str(argument["buffer"]), side, argument.get("bytes"))


def due_of(machine: Machine, done: Operation, size: int, lent: Mapping[str, Buffer]) -> Observation:
    """What an operation says must be seen of a memory of this size, which has adopted these buffers."""
    call = machine.calls.get(done["call"])
    fresh = {side: number for side, number in done.get("bytes", {}).items() if number is not None}
    flags = done.get("flags", {})
    refused = None if call is None else FAILED if "fail" in done else _reason(machine, call, done)
    owned = {fact.side: flags.get(fact.name) for fact in machine.facts.values() if fact.means == "owned"}
    return Observation(
        refused=refused,
        actions=tuple(_actions(machine, done["actions"], size, flags)) if "actions" in done else None,
        view=done.get("shows"),
        viewed=True if call is not None and call.shows and not refused else None,
        head=done.get("head"),
        size=size,
        flags=flags,
        sides=fresh if size else {},
        buffers={buffer.name: fresh[side] for side, buffer in lent.items() if side in fresh},
        live={} if call is not None and call.ends and not refused else None,
        owners={side: "memory" for side, value in owned.items() if value},
        lent=lent,
    )


def _reason(machine: Machine, call: Call, done: Operation) -> str:
    """Why a call must be refused, by our word for it; empty if it must not."""
    word = done.get("refusal")
    if not word:
        return ""
    if word == OWN_BUFFER:
        return "own"
    policy = POLICIES[machine.name] if machine in EDITIONS.values() else None
    ours = {theirs: reason for reason, theirs in policy.refusals.items()} if policy else {}
    usual = "null" if call.does == "adopt" and done.get("argument") is None else "push"
    return ours.get(word, word if word in get_args(Reason) else usual)


def _actions(machine: Machine, words: Iterable[str], size: int, flags: Mapping[str, bool]) -> Iterator[Action]:
    """The actions that these words name; what is allocated is page-locked if the flag about it says so."""
    pinned = {fact.side: flags.get(fact.name) for fact in machine.facts.values() if fact.means == "pinned"}
    for action in map(machine.actions.__getitem__, words):
        if action.does in ("allocate", "zero", "copy", "free"):
            kind = pinned.get(action.side) if action.does == "allocate" else None
            yield Action("push" if action.queued else action.does, action.side, action.source, size, kind)
