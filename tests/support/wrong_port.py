"""Ports that are wrong in one way each: ``python wrong_port.py WAY`` speaks the protocol, and then does that.

The memory is the one of examples/ports/json/port.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = Path(__file__).parents[2] / "examples" / "ports" / "json" / "port.py"

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
    say(json.dumps(answer) + "\n")


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


CALLS: dict[str, Callable[[Answer], None]] = {
    "abort": lambda _: os.abort(),
    "crash": crash,
    "exit": lambda _: os._exit(7),
    "hang": hang,
    "garbage": lambda _: say("copied 5 bytes\n"),
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
    "action": changed(actions=["fly"]),
    "bytes": changed(cpu="XY"),
    "view": changed(view=None),
    "wrong view": changed(view="0102030405"),
    "free": lambda answer: answer["actions"].append({"action": "free_cpu", "block": None}),
    "needless copy": lambda answer: answer["actions"].append("copy_cpu"),
    "unfailing": unfailing,
}
"""What a port does when it answers ``gpu_data``."""

HELLOS: dict[str, Callable[[Answer], None]] = {
    "version": changed(version=2),
    "refuses": changed(refused="no device\nwas found"),
    "level": changed(level="L9"),
    "early hang": hang,
}
"""What a port does when it says hello."""


def main(way: str) -> None:
    spec: Any = importlib.util.spec_from_file_location("port", PORT)
    port: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(port)
    calls = 0
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("id")
        answer = {"id": number, **port.answer(**request)}
        calls += request["op"] == "gpu_data"
        if request["op"] == "hello" and way in HELLOS:
            HELLOS[way](answer)
        if request["op"] == "gpu_data" and way in CALLS:
            CALLS[way](answer)
        if way == "old" and calls > 12:
            os.abort()
        say(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
