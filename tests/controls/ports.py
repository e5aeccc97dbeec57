"""Right ports, each with a freedom of its own: ``python ports.py NAME`` speaks the protocol; with ``twin`` it is wrong.

The memory is the one of plain_port.py, in the folder ``support``; in the profile safe, the one of safe_port.py there.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

if __name__ == "__main__":
    sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "support")]
import plain_port
from safe_port import FailedError, Memory, SafePort

from controls.registry import PORTS, control

__all__ = ["PORTS"]

Answer = dict[str, Any]


def plain(answer: Answer) -> str:
    """An answer as its line."""
    return json.dumps(answer, default=lambda held: bytes(held).hex()) + "\n"


@dataclass
class Port:
    """What is other than in plain_port.py: parts of its first answer, answers, how they are written, and its end."""

    hello: Answer = field(default_factory=dict[str, Any])
    answer: Callable[..., Answer] = plain_port.answer
    line: Callable[[Answer], str] = plain
    ends: Callable[[], None] = lambda: None

    def serve(self, *, twin: bool) -> None:
        """Answer every request; a twin says hello as it should, or nobody would judge it."""
        for text in sys.stdin:
            request = json.loads(text)
            number = request.pop("id")
            answer = {"id": number, **self.answer(**request)}
            says_hello = request["op"] == "hello"
            line = plain if says_hello and twin else self.line
            sys.stdout.write(line(answer | (self.hello if says_hello else {})))
            sys.stdout.flush()
        self.ends()


# --- pushes


class Queue:
    """Copies that happen when somebody waits; until then the device side has the bytes that it had."""

    def __init__(self) -> None:
        self.copies: dict[int, bytes] = {}

    def push(self, memory: int, old: bytes | None) -> None:
        """Take back the copy of a push, and keep it for later."""
        gpu, size = (plain_port.memories[memory][name] for name in ("gpu", "size"))
        self.copies[memory] = bytes(gpu[:size])
        gpu[:size] = b"\xdd" * size if old is None else old

    def wait(self, memory: int | None = None) -> bool:
        """Let the copies of a memory happen, or all; whether there was one."""
        waiting = [number for number in self.copies if memory in (None, number)]
        for number in waiting:
            content = self.copies.pop(number)
            plain_port.memories[number]["gpu"][: len(content)] = content
        return bool(waiting)


def deferring(*waits: str, says: bool = False) -> Callable[..., Answer]:
    """Answers of a port that pushes when somebody waits; which requests wait for the push of their memory."""
    queue = Queue()

    def answer(op: str, **fields: Any) -> Answer:
        number = fields.get("memory", 0)
        waited = op in waits and queue.wait(None if op == "synchronize" else number)
        before = plain_port.memories.get(number, {}).get("gpu")
        before = None if before is None else bytes(before)
        answered = plain_port.answer(op, **fields)
        if waited and says and "actions" in answered:
            answered["actions"].insert(0, "wait")
        if op == "async_gpu_push" and "refused" not in answered:
            queue.push(number, before if before is None else before[: answered["size"]])
        return answered

    return answer


_WAITING = ("gpu_data", "mutable_cpu_data", "mutable_gpu_data", "set_cpu_data", "set_gpu_data", "release", "drop")
_ASYNC = "CUDA Runtime API, cudaMemcpyAsync: the call may return before the copy is complete"


@control("port", _ASYNC, refuses="R10-same-bytes", level="L1")
def pushes_later_where_bytes_are_shown(twin: bool) -> Port:
    """A push happens when somebody waits; the twin's never does."""
    return Port(answer=deferring() if twin else deferring("synchronize", *_WAITING))


@control("port", _ASYNC, refuses="R10-same-bytes", level="L2")
def pushes_later_where_actions_are_shown(twin: bool) -> Port:
    """A push happens when the caller waits, as in Caffe; the twin only waits in its own calls."""
    return Port(answer=deferring(*(_WAITING[1:] if twin else ["synchronize"])))


@control("port", _ASYNC, refuses="R21-push", level="L4")
def pushes_later_and_says_so(twin: bool) -> Port:
    """A push happens when somebody waits, and its waits are among its actions; the twin waits in the push itself."""
    waits = deferring("synchronize", "cpu_data", *_WAITING, says=True)

    def answer(op: str, **fields: Any) -> Answer:
        answered = waits(op, **fields)
        if twin and op == "async_gpu_push" and "refused" not in answered:
            waits("synchronize")
            answered["actions"].append("wait")
        return answered

    return Port({"level": "L4", "defers": True}, answer)


# --- lines


_JSON = "RFC 8259, section 2: insignificant white space is allowed around any of the structural characters"


@control("port", _JSON, refuses="P02-one-answer", level="L1")
def writes_blanks(twin: bool) -> Port:
    """It writes blanks and tabs where JSON allows them; the twin breaks its lines there."""
    form: dict[str, Any] = {"separators": (" ,\t", " : "), "indent": 1 if twin else None}
    return Port(line=lambda answer: f" \t{json.dumps(answer, default=memoryview.hex, **form)} \n")


@control("port", "a program on Windows ends its lines so", refuses="P02-one-answer", level="L1")
def ends_lines_with_crlf(twin: bool) -> Port:
    """Its lines end with CR and LF; the twin writes a CR within a text."""
    return Port(line=lambda answer: plain(answer)[:-1] + ("\r" if not twin else ' "\r') + "\n")


@control("port", "RFC 8259, section 7: any character may be escaped", refuses="P02-one-answer", level="L1")
def escapes_characters(twin: bool) -> Port:
    """It escapes the letters of its texts; the twin in a way that JSON does not know."""

    def line(answer: Answer) -> str:
        return plain(answer).replace('"HEAD_AT_', '"\\x48EAD_AT_' if twin else '"\\u0048EAD_AT_')

    return Port(line=line)


@control("port", "RFC 8259, section 4: an object is an unordered collection", refuses="P02-one-answer", level="L1")
def orders_keys_otherwise(twin: bool) -> Port:
    """Its keys come in another order at each answer; the twin has one of them twice."""

    def line(answer: Answer) -> str:
        keys = sorted(answer, key=lambda key: hash((answer["id"], key)))
        text = plain({key: answer[key] for key in keys})
        return text.replace("{", '{"head": "SYNCED", ', 1) if twin and "head" in answer else text

    return Port(line=line)


@control("port", "docs/port-protocol.md: other keys are not looked at", refuses="P02-one-answer", level="L1")
def says_more(twin: bool) -> Port:
    """Its answers have keys of their own; of the twin one is a flag, misspelt."""

    def line(answer: Answer) -> str:
        more = {"nanoseconds": 5, "thread": {"name": "main"}}
        flags = {"own_gpu_dat" if twin and key == "own_gpu_data" else key: value for key, value in answer.items()}
        return plain({**flags, **more})

    return Port(line=line)


@control("port", "docs/port-protocol.md: null, or no field", refuses="R22-push-refused", level="L1")
def leaves_out_null(twin: bool) -> Port:
    """It leaves out what is null; the twin also leaves out why it refused."""

    def line(answer: Answer) -> str:
        return plain(
            {key: value for key, value in answer.items() if value is not None and not (twin and key == "refused")}
        )

    return Port(line=line)


@control("port", "docs/port-protocol.md: standard error is free", refuses="P02-one-answer", level="L1")
def logs_a_lot(twin: bool) -> Port:
    """It writes kilobytes to standard error with each answer; the twin to standard output."""

    def line(answer: Answer) -> str:
        log = "copied\n" * 100
        sys.stderr.write(log)
        return log + plain(answer) if twin else plain(answer)

    return Port(line=line)


# --- time


@control("port", "nothing says how fast a port is", refuses="P01-answers", level="L0")
def answers_slowly(twin: bool) -> Port:
    """Every four hundredth answer takes a fifth of a second; one of the twin does not come."""

    def line(answer: Answer) -> str:
        if answer["id"] % 400 == 0:
            time.sleep(600 if twin else 0.2)
        return plain(answer)

    return Port(line=line)


@control("port", "a runtime that shuts down takes its time", refuses="P01-answers", level="L0")
def ends_slowly(twin: bool) -> Port:
    """It ends a while after its input; the twin ends while it is asked."""

    def line(answer: Answer) -> str:
        if twin and answer["id"] > 30:
            sys.exit(0)
        return plain(answer)

    return Port(line=line, ends=lambda: time.sleep(0.5))


# --- what it has and shows


@control("port", "docs/port-protocol.md, levels", refuses="R12-read-keeps", level="L0")
def shows_heads_alone(twin: bool) -> Port:
    """It has heads and refusals, and no bytes; the head of the twin is the side that was read."""

    def answer(op: str, **fields: Any) -> Answer:
        answered = plain_port.answer(op, **fields)
        if twin and op == "gpu_data" and answered.get("head") == "SYNCED":
            answered["head"] = "HEAD_AT_GPU"
        return {key: value for key, value in answered.items() if key not in ("cpu", "gpu", "view", "actions", "bytes")}

    return Port({"level": "L0"}, answer)


@control("port", "syncedmem.hpp:28: size_t", refuses="R31-size-constant", level="L1")
def has_a_largest_size(twin: bool) -> Port:
    """It says that its memories have at most 4,096 bytes; the twin does not, and takes the rest of a division."""

    def answer(op: str, **fields: Any) -> Answer:
        if op == "new" and twin:
            fields["size"] %= 4096
        return plain_port.answer(op, **fields)

    return Port({} if twin else {"largest": 4096}, answer)


@control("port", "an allocator may give more than was asked for (C11, 7.22.3)", refuses="R10-same-bytes", level="L1")
def allocates_more(twin: bool) -> Port:
    """Its blocks are longer than its memories; the twin copies the whole block, over what lies behind the buffer."""

    def answer(op: str, **fields: Any) -> Answer:
        answered = plain_port.answer(op, **fields)
        if twin and op == "mutable_cpu_data" and answered["size"]:
            answered["view"] = answered["view"].hex() + "00"
        return answered

    return Port(answer=answer)


# --- a release that fails


_ONE_EXCEPTION = "docs/errors.md, the one exception: the first free that was done has released the memory"


@control("port", _ONE_EXCEPTION, refuses="P02-one-answer", level="L4", profile="safe", suites=("failures",))
def shows_nothing_once_it_has_freed(twin: bool) -> Port:
    """After a release that has freed one side and failed, it shows no state; the twin after any release that failed."""

    class Hides(SafePort):
        def shown(self, memory: Memory) -> Answer:
            return {} if memory.released or not memory.head else super().shown(memory)

        def release(self, memory: Memory) -> None:
            head = memory.head
            memory.head = "" if twin else head
            super().release(memory)
            memory.head = head

    return Port(answer=Hides().answer)


@control("port", _ONE_EXCEPTION, refuses="R10-same-bytes", level="L4", profile="safe", suites=("failures",))
def refuses_once_it_has_freed(twin: bool) -> Port:
    """After a release that has freed one side and failed, it refuses all but a release; the twin after any failure."""

    class Refuses(SafePort):
        def release(self, memory: Memory) -> None:
            try:
                super().release(memory)
            except FailedError:
                memory.released = memory.released or twin
                raise

    return Port(answer=Refuses().answer)


# --- waiting for pushes


_SYNCHRONIZE = "CUDA Runtime API: cudaDeviceSynchronize, cudaStreamSynchronize"


@control("port", _SYNCHRONIZE, refuses="R42-in-flight-not-freed", level="L4", profile="safe", suites=("streams",))
def waits_for_all_streams(twin: bool) -> Port:
    """It waits for the pushes of every memory, and then for none of them again; the twin not for its own."""

    class Waits(SafePort):
        def settle(self, memory: Memory) -> None:
            if memory.stream is None:
                return
            for stream in [*self.queued]:
                if not (twin and stream == memory.stream):
                    self.wait(stream)
            for other in (memory, *self.memories.values()):  # one that is dropped is not there any more
                other.stream = None

    return Port(answer=Waits().answer)


@control("port", _SYNCHRONIZE, refuses="R42-in-flight-not-freed", level="L4", profile="safe", suites=("streams",))
def waits_once_for_a_stream(twin: bool) -> Port:
    """A wait settles every memory whose push is on the stream; the twin's settles those on other streams too."""

    class Waits(SafePort):
        def wait(self, stream: int) -> None:
            super().wait(stream)
            for memory in self.memories.values():
                if twin or memory.stream == stream:
                    memory.stream = None

    return Port(answer=Waits().answer)


@control("port", _SYNCHRONIZE, refuses="R42-in-flight-not-freed", level="L4", profile="safe", suites=("streams",))
def has_one_push_in_flight(twin: bool) -> Port:
    """It waits for the push before, whichever memory made it, so there is at most one; the twin forgets that one."""

    class One(SafePort):
        def push(self, memory: Memory, mode: str, stream: int) -> None:
            for other in list(self.memories.values()) if memory.head == "HEAD_AT_CPU" else ():
                if twin:
                    other.stream = None
                self.settle(other)
            super().push(memory, mode, stream)

    return Port(answer=One().answer)


@control("port", _SYNCHRONIZE, refuses="R42-in-flight-not-freed", level="L4", profile="safe", suites=("streams",))
def pushes_at_once(twin: bool) -> Port:
    """Its pushes have happened when it answers, so it waits for none; the twin says that they happen later."""

    class AtOnce(SafePort):
        def settle(self, memory: Memory) -> None:
            for stream in [*self.queued]:
                self.land(stream)
            memory.stream = None

        def push(self, memory: Memory, mode: str, stream: int) -> None:
            super().push(memory, mode, stream)
            self.settle(memory)

        def _on_hello(self, **_: Any) -> Answer:
            return {**super()._on_hello(), "defers": twin}

    return Port(answer=AtOnce().answer)


if __name__ == "__main__":
    is_twin = sys.argv[2:] == ["twin"]
    PORTS[sys.argv[1]].make(twin=is_twin).serve(twin=is_twin)
