"""Ports that are wrong in one way each: ``python wrong_port.py WAY`` speaks the protocol, and then does that.

The memory is the one of plain_port.py.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import plain_port

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = dict[str, Any]


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def crash(_: Answer) -> None:
    sys.stderr.write("segment missing\n")
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(_: Answer) -> None:
    time.sleep(600)


def twice(answer: Answer) -> None:
    """Answer twice, as a process and its fork would."""
    plain_port.say(answer)


def fork(_: Answer) -> None:
    """Both processes go on and answer."""
    os.fork()


def endless(_: Answer) -> None:
    while True:
        say("1" * (1 << 16))


def changed(**fields: object) -> Callable[[Answer], None]:
    return lambda answer: answer.update(fields)


def lacking(name: str) -> Callable[[Answer], None]:
    return lambda answer: answer.pop(name, None) and None


def unfailing(answer: Answer) -> None:
    """Say that actions succeeded which were told to fail."""
    for action in answer["actions"]:
        action["failed"] = False


def freeing(side: str = "cpu", **fields: object) -> Callable[[Answer], None]:
    """Also free something."""
    return lambda answer: answer["actions"].append({"action": f"free_{side}", **fields})


def leaking(answer: Answer) -> None:
    """Free nothing."""
    answer["actions"].clear()


WAYS: dict[str, dict[str, Callable[[Answer], None]]] = {
    "hello": {
        "version": changed(version=2),
        "refuses": changed(refused="no device\nwas found"),
        "level": changed(level="L9"),
        "early hang": hang,
        "early": changed(edition="early"),
        "cpu_only": changed(edition="cpu_only"),
        **dict.fromkeys(("defers", "rude"), changed(level="L4", defers=True)),
        **dict.fromkeys(("streams", "other stream", "waits elsewhere"), changed(level="L4", defers=True, streams=True)),
        "dies": lambda _: os.abort(),
        "small": changed(largest=4096),
    },
    "gpu_data": {
        "abort": lambda _: os.abort(),
        "crash": crash,
        "exit": lambda _: os._exit(7),
        "hang": hang,
        "garbage": lambda _: say("copied 5 bytes\n"),
        "brackets": lambda _: say("[" * 100_000 + "\n"),
        "debris": lambda _: say("copied 5 bytes "),
        "twice": twice,
        "endless": endless,
        "fork": fork,
        "number": lambda _: say("5\n"),
        "id": changed(id=99),
        "text id": changed(id="x"),
        "head": changed(head="AT_CPU"),
        "no head": lacking("head"),
        "no actions": lacking("actions"),
        "no flag": lacking("own_gpu_data"),
        "action": changed(actions=["fly"]),
        "bytes": changed(cpu="XY"),
        "view": changed(view=None),
        "wrong view": changed(view="0102030405"),
        "free": freeing(block=None),
        "needless copy": lambda answer: answer["actions"].append("copy_cpu"),
        "unfailing": unfailing,
    },
    "set_cpu_data": {
        "frees buffer": freeing(buffer="host1"),
        "frees other buffer": freeing(buffer="host9"),
        "frees adopted": freeing(),
        "adopts": lambda answer: answer["actions"].append("adopt_cpu"),
        "null": lacking("refused"),
    },
    "async_gpu_push": {"push": changed(head="HEAD_AT_CPU"), "hangs in a push": hang},
    "release": {
        "frees block": freeing(block=99),
        "frees again": freeing(),
        "frees on device": freeing("gpu"),
        "pageable": lambda answer: answer["actions"][0].update(pinned=False),
        "leaks": leaking,
        "exits on release": lambda _: os._exit(0),
        "rude": lambda answer: answer.update(actions=[action for action in answer["actions"] if action != "wait"]),
    },
    "drop": {"drops nothing": leaking},
}
"""What a port of each way does when it answers a request."""


LATER = {"early": ("set_gpu_data", "async_gpu_push"), "cpu_only": ("gpu_data", "mutable_gpu_data", "set_gpu_data")}
"""The calls that a port of another edition refuses."""


DEFERRING = ("defers", "rude", "streams", "other stream", "waits elsewhere")


class Deferring:
    """Pushes that happen only when somebody waits: until then the device side has other bytes.

    Parameters
    ----------
    way : str
        ``"streams"``: its actions say on which stream they are.  ``"other stream"``: it is another one.  ``"waits
        elsewhere"``: only waits are on another one.
    """

    def __init__(self, way: str) -> None:
        self._way = way
        self._queued: dict[int, bytes] = {}
        self._streams: dict[int, int] = {}

    def answer(self, op: str, **fields: Any) -> Answer:
        """Every call of a memory waits for its push first, and says so."""
        memory: int = fields.get("memory", 0)
        waited = op in ("cpu_data", "gpu_data", "release") or "mutable" in op or op.startswith("set")
        waited = waited and self._land(memory)
        if op == "synchronize":
            for number in [*self._queued]:
                self._land(number)
        answer = plain_port.answer(op, **fields)
        if waited:
            answer["actions"].insert(0, self._on(memory, "wait"))
        if op == "async_gpu_push" and "refused" not in answer:
            self._streams[memory] = fields["stream"]
            answer["actions"][-1] = self._on(memory, answer["actions"][-1])
            data, size = (plain_port.memories[memory][name] for name in ("gpu", "size"))
            self._queued[memory] = bytes(data[:size])
            data[:size] = b"\xdd" * size
        return answer

    def _on(self, memory: int, action: Any) -> Any:
        """An action with its stream."""
        if self._way in ("defers", "rude"):
            return action
        elsewhere = self._way == "other stream" or (self._way == "waits elsewhere" and action == "wait")
        told = {"action": action} if isinstance(action, str) else action
        return {**told, "stream": 0 if elsewhere else self._streams[memory]}

    def _land(self, memory: int) -> bool:
        content = self._queued.pop(memory, None)
        if content is None:
            return False
        plain_port.memories[memory]["gpu"][: len(content)] = content
        return True


def answered(way: str, request: Answer) -> Answer:
    """The answer of a port of this edition."""
    if way == "cpu_only" and (request["op"] in LATER[way] or request["op"] == "async_gpu_push"):
        return {**plain_port.memories[request["memory"]], "actions": [], "refused": "there is no device"}
    if way in LATER and request.get("mode") == "GPU":
        request["mode"] = "CPU"  # without a device, and in the first edition, nothing is page-locked
    return plain_port.answer(**request)


def main(way: str) -> None:
    calls, deferring = 0, Deferring(way)
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("id")
        answer = deferring.answer(**request) if way in DEFERRING else answered(way, request)
        answer["id"] = number
        calls += request["op"] == "gpu_data"
        if change := WAYS.get(request["op"], {}).get(way):
            change(answer)
        if way == "old" and calls > 12:
            os.abort()
        plain_port.say(answer)


if __name__ == "__main__":
    main(sys.argv[1])
