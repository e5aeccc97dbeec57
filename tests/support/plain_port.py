"""``examples/ports/json/port.py``, whose actions can also fail on request and are then undone: its level is L3."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "ports" / "json"
HELLO = {"version": 1, "name": "plain_port.py", "level": "L3", "offers": ["drop"]}

sys.path.append(str(EXAMPLES))
port: Any = importlib.import_module("port")
right_call, memories, buffers = port.call, port.memories, port.buffers


class FailingActions(list[Any]):
    """The actions of a call, of which the one with a number fails."""

    left = 0

    def append(self, action: str) -> None:
        """Take an action."""
        self.left -= 1
        super().append({"action": action, "failed": self.left == 0})
        if self.left == 0:
            raise MemoryError(f"{action} was told to fail")


def call(memory: dict[str, Any], op: str, side: str, *arguments: Any) -> str | None:
    """Make a call; if an action fails, undo those before it."""
    before = dict(memory)
    memory["actions"] = actions = FailingActions()
    actions.left = FailingActions.left
    try:
        refused: str | None = right_call(memory, op, side, *arguments)
    except MemoryError as error:
        refused = str(error)
        if before[side] is None and memory[side] is not None:
            actions.append(f"free_{side}")
            memory.update({**before, "actions": actions})
    return refused


def answer(op: str, fail: int = 0, **fields: Any) -> dict[str, Any]:
    """The answer to a request."""
    if op == "hello":
        return HELLO
    if op == "own_buffer":
        buffers[fields["buffer"]] = memories[fields["memory"]][fields["side"]]
        return {}
    FailingActions.left = fail
    if op == "drop":
        op, fields["mode"] = "release", "CPU"
    answered: dict[str, Any] = port.answer(op, **fields)
    if "actions" in answered:
        answered["actions"] = [*answered["actions"]]
    return {name: value for name, value in answered.items() if name != "refused" or value is not None}


port.call = call


def say(answer: dict[str, Any]) -> None:
    """Write an answer."""
    sys.stdout.write(json.dumps(answer, default=memoryview.hex) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("id")
        say({"id": number, **answer(**request)})
