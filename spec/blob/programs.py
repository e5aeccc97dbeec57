"""Blobs that a program has: steps become requests, and answers become what is seen."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from syncedmem.model.interface import BLOB_CALLS

from ..engine.subject import Subject
from ..record.ledger import Ledger
from ..record.observation import Observation
from ..subjects.programs import actions_told, check_failure
from .elements import decoded, itemsize
from .oracle import ACCESSORS, ADOPTIONS, NORMS, SCALES, content_of
from .seen import BlobSeen, BlobsSeen, MemorySeen
from .steps import PARTS, Lent, Other

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from syncedmem.model import Mode

    from ..engine.actions import Allocated
    from ..engine.subject import RemoteProgram
    from ..engine.violation import Violation
    from .steps import BlobStep

__all__ = ["ProgramBlobs"]

_WIDEST = 1 << 63
_EXTENT = "int32"
_STATE = ("shape", "count", "capacity", "num_axes")
"""What is asked of a blob by a request for its state."""
_VALUED = (
    *NORMS, "data_at", "diff_at", "shape_string", "canonical_axis_index", "count_axes", "legacy_shape", "offset",
    "num", "channels", "height", "width",
)  # fmt: skip
"""The calls that return a number or a text."""


class _Unasked(Exception):
    """What a request cannot say, so that it counts as refused."""


class ProgramBlobs:
    """The blobs of a port, and the buffers of their caller."""

    def __init__(self, port: RemoteProgram, *, has_device: bool) -> None:
        self._program: RemoteProgram = port
        self._has_device = has_device
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[int, int] = {}
        self._dtype = ""
        self._ledger = Ledger(0, defers=False)

    def begin(self) -> None:
        """Let a new case begin."""
        self._forget()
        self._program.mark()

    def program(self) -> tuple[str, ...]:
        """The requests of this case."""
        return self._program.requests()

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation, with the requests that led to it."""
        return self._program.violation(requirement, message)

    def collected(self) -> Mapping[Any, Allocated] | None:
        """What is allocated; in a program there is nothing to collect."""
        return self._ledger.live if self._program.level >= "L2" else None

    # --- steps

    def perform(self, step: BlobStep, mode: Mode, look: Collection[int] = ()) -> BlobsSeen:
        """Do a step in a mode, and look at some blobs."""
        seen, answer = BlobsSeen(), dict[str, Any]()
        if step.call == "drop":
            for number in self._numbers.values():
                answer = self._program.ask("drop_blob", blob=number, mode=mode.name)
                seen.called = self._acted(answer, step, seen.called.wrong)
            return seen
        if step.call in _STATE:
            state = self._state(step.blob)
            seen.called, seen.value = self._acted({}, step), self._attribute(step.call, state)
            return seen
        try:
            op, fields = self._request(step, mode)
        except _Unasked as why:
            seen.called = self._acted({"refused": str(why)}, step)
        else:
            answer = self._program.ask(op, blob=self._numbers[step.blob], **fields)
            seen.called = self._acted(answer, step)
            if not seen.called.refused:
                answer = self._returned(step, self._whole(answer), seen)
            elif step.call == "new":
                return seen
        self._look(look, {step.blob: answer}, seen)
        return seen

    def _request(self, step: BlobStep, mode: Mode) -> tuple[str, dict[str, Any]]:
        if step.call == "new":
            self._dtype = self._dtype or step.dtype
            shape = _integers(step.arguments) if step.arguments else None
            self._numbers[step.blob] = self._program.next_id()
            return "new_blob", {"mode": mode.name, "type": step.dtype, "shape": shape}
        failing = {"fail": step.fail} if step.fail and self._program.level >= "L3" else {}
        fields = {**self._fields(step), **dict(step.options)}
        return "blob_call", {"mode": mode.name, "call": step.call, **fields, **failing}

    def _fields(self, step: BlobStep) -> dict[str, Any]:
        """The fields of a request that have the arguments of a call."""
        call, arguments = step.call, step.arguments
        if call in ADOPTIONS:
            return {"buffer": None if arguments[0] is None else self._buffer(step, arguments[0])}
        if call in SCALES:
            return {"factor": arguments[0] if isfinite(arguments[0]) else str(arguments[0])}
        if call in ("reshape_like", "share_data", "share_diff", "copy_from"):
            other, *flags = arguments
            if not isinstance(other, Other):
                raise _Unasked("a request has only blobs")
            names = ("copy_diff", "reshape") if call == "copy_from" else ()
            return {
                "other": self._numbers[other.blob],
                **dict.fromkeys(names, False),
                **dict(zip(names, flags, strict=False)),
            }
        if call == "count_axes":
            return {"numbers": [*arguments] or [0]}
        if call not in ("reshape", "canonical_axis_index", "legacy_shape", "offset", "data_at", "diff_at"):
            if arguments or call not in BLOB_CALLS:
                raise _Unasked("no request asks this")
            return {}
        return {"numbers": _integers(arguments), "sequence": not isinstance(arguments[0], int)}

    def _buffer(self, step: BlobStep, given: Any) -> str:
        """The port's name of a buffer of the caller, which is made there."""
        if not isinstance(given, Lent) or given.form not in ("", "bytearray", "device"):
            raise _Unasked("a request has only buffers that can be written, of the blob's own type")
        side, content = "gpu" if given.form == "device" else "cpu", bytes(given.size)
        if given.form == "":
            side, content = ADOPTIONS[step.call][1], content_of(step, self._dtype)
        if side == "gpu" and not self._has_device:  # an object that stands for memory on a device
            side, content = "cpu", bytes(len(content))
        self._program.buffers += 1
        name = f"{Subject.keyword(side)}{self._program.buffers}"
        self._program.ask("buffer", buffer=name, side=side, bytes=content.hex())
        return name

    # --- what was seen

    def _acted(self, answer: dict[str, Any], step: BlobStep, wrong: tuple[tuple[str, str], ...] = ()) -> Observation:
        """What was done to blocks, and whether the call was refused."""
        refused = answer.get("refused") or ""
        if self._program.level < "L2":
            return Observation(refused=refused, blown=False)
        actions = tuple(actions_told(self._program.protocol, answer)) if "actions" in answer else ()
        if step.fail and self._program.level >= "L3":
            check_failure(self._program, actions, step.fail)
        for word in answer.get("actions", ()):
            self._check_action(word)
        return Observation(
            refused=refused,
            actions=actions,
            wrong=(*wrong, *self._ledger.take(actions)),
            live=self._ledger.live,
            blown=any(action.failed for action in actions),
        )

    def _check_action(self, word: Any) -> None:
        """Refuse an action without its size, or without its block."""
        action: dict[str, Any] = {"action": word} if isinstance(word, str) else word
        does, needs = self._program.protocol.actions[action["action"]].does, list[str]()
        if action.get("failed"):
            return
        if does in ("allocate", "zero", "copy"):
            needs.append("size")
        if does == "allocate" or (does == "free" and "buffer" not in action):
            needs.append("block")
        if missing := [need for need in needs if need not in action]:
            raise self._wrong(f"{action} is an action of a blob without {missing[0]!r}")

    def _returned(self, step: BlobStep, answer: dict[str, Any], seen: BlobsSeen) -> dict[str, Any]:
        """See what a call returned, and write into its view; the answer that shows the blob then."""
        value, shown = answer.get("value"), answer.get("view")
        if step.call in _VALUED and "value" not in answer:
            raise self._wrong("the last answer has no 'value'")
        seen.value = float(value) if isinstance(value, str) and step.call != "shape_string" else value
        if self._program.level < "L1":
            return answer
        if step.call == "gpu_shape":
            held = bytes.fromhex(shown or "")
            seen.value = decoded(held, _EXTENT) if len(held) % itemsize(_EXTENT) == 0 else "no 32-bit integers"
        if step.call not in ACCESSORS or (shown is None and step.elements):
            return answer
        part, side, writes = ACCESSORS[step.call]
        seen.called = seen.called._replace(view=bytes.fromhex(shown or ""))
        if not (writes and step.elements):
            return answer
        number, content = self._numbers[step.blob], content_of(step, self._dtype).hex()
        return self._whole(self._program.ask("write_blob", blob=number, part=part, side=side, bytes=content))

    def _look(self, look: Iterable[int], known: Mapping[int, dict[str, Any]], seen: BlobsSeen) -> None:
        """See all blobs; the last answer has one of them."""
        for n in look:
            answer = known.get(n, {})
            state = answer if "shape" in answer and "count" in answer else self._state(n)
            names: list[Any] = []
            for part in PARTS:
                number = state.get(part)
                # A memory that is not there yet counts as one of no bytes, which nobody shares.
                names.append((n, part) if number is None else number)
                there = {name: state.get(f"{part}_{name}") for name in ("cpu", "gpu")}
                held = {side: bytes.fromhex(digits) for side, digits in there.items() if digits is not None}
                head, size = state.get(f"{part}_head", "UNINITIALIZED"), state.get(f"{part}_size", 0)
                seen.memories[names[-1]] = MemorySeen(head, size, held)
            seen.blobs[n] = BlobSeen(tuple(state["shape"]), state["count"], state.get("capacity"), *names)

    def _state(self, n: int) -> dict[str, Any]:
        return self._whole(self._program.ask("blob_state", blob=self._numbers[n]))

    @staticmethod
    def _attribute(name: str, state: dict[str, Any]) -> Any:
        if name == "num_axes":
            return len(state["shape"])
        return tuple(state["shape"]) if name == "shape" else state.get(name)

    def _whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer that says what the blob is."""
        if missing := [name for name in ("shape", "count") if name not in answer]:
            raise self._wrong(f"the last answer about a blob has no {missing[0]!r}")
        return answer

    def _wrong(self, message: str) -> Violation:
        return self._program.violation("P02-one-answer", message)


def _integers(arguments: tuple[Any, ...]) -> list[int]:
    """The numbers of a call, which are its arguments, or in its only argument."""
    listed: Any = arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments
    numbers: Iterable[Any] = getattr(listed, "dim", listed)
    if not isinstance(numbers, list | tuple):
        raise _Unasked("a request has only lists of numbers")
    if not all(type(number) is int and abs(number) < _WIDEST for number in numbers):
        raise _Unasked("a request has only integers of 64 bits")
    return [*numbers]
