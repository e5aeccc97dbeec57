"""Memories with a private third side, which only the host converts: the machine of examples/machines/third_side.py."""

import json
import sys

FRESH = {
    "UNINITIALIZED": [],
    "HEAD_AT_CPU": ["cpu"],
    "HEAD_AT_GPU": ["gpu"],
    "HEAD_AT_PRV": ["prv"],
    "SYNCED": ["cpu", "gpu"],
    "SYNCED_PRV": ["cpu", "prv"],
}


class Memory:
    def __init__(self, size):
        self.size, self.head, self.actions, self.fail, self.partial = size, "UNINITIALIZED", [], 0, False
        self.sides = dict.fromkeys(("cpu", "gpu", "prv"))

    def act(self, action, target=None, content=b""):
        """Do one action, or half of it if the kit wants it to fail."""
        self.fail -= 1
        failed = self.fail == 0
        self.actions.append({"action": action, "failed": failed})
        if failed:
            content = content[: self.partial * len(content) // 2]
        if target is not None:
            target[: len(content)] = content
        if failed:
            raise MemoryError(f"{action} was told to fail")

    def bring(self, side):
        """Make a side fresh, by way of the host; if an action fails, nothing has changed."""
        sides, new = dict(self.sides), []
        source = "cpu" if "cpu" in FRESH[self.head] else "".join(FRESH[self.head])
        way = [side] if "cpu" in (source, side) or not source else ["cpu", side]
        try:
            for stop in way:
                if sides[stop] is None:
                    self.act(f"allocate_{stop}")
                    new.append(stop)
                    sides[stop] = bytearray(self.size)
                content = sides[source] if source else bytes(self.size)
                self.act(f"{source}_to_{stop}" if source else f"zero_{stop}", sides[stop], content)
                source = stop
        except MemoryError:
            for stop in reversed(new):
                self.act(f"free_{stop}")
            raise
        self.sides = sides
        fresh = {*FRESH[self.head], *way}
        # What no head can say is forgotten.
        heads = [head for head, sides in FRESH.items() if side in sides and fresh.issuperset(sides)]
        self.head = max(heads, key=lambda head: len(FRESH[head]))

    def call(self, op, fail, partial):
        self.actions, self.fail, self.partial = [], fail, partial
        side = op.removeprefix("mutable_").removesuffix("_data")
        if side not in FRESH[self.head]:
            self.bring(side)
        if op.startswith("mutable"):
            self.head = f"HEAD_AT_{side.upper()}"
        return {"view": self.sides[side].hex()}

    def state(self):
        sides = {side: None if it is None else it.hex() for side, it in self.sides.items()}
        return {"head": self.head, "size": self.size, "actions": self.actions, **sides}


memories = {}


def answer(op, memory=None, side="", bytes="", size=0, **how):
    if op == "hello":
        return {"version": 1, "name": "third_side.py", "level": "L3", "edition": "third_side", "offers": ["drop"]}
    if op == "new":
        memories[memory] = Memory(size)
    it, result = memories.get(memory), {}
    if op == "write_view":
        it.sides[side][: len(bytes) // 2] = bytearray.fromhex(bytes)
    elif op == "drop":
        it.actions = [f"free_{side}" for side in it.sides if it.sides[side] is not None]
    elif op.endswith("_data"):
        try:
            result = it.call(op, how.get("fail", 0), how.get("partial", False))
        except MemoryError as error:
            result = {"refused": str(error)}
    return {} if it is None else {**it.state(), **result}


for request in map(json.loads, sys.stdin):
    print(json.dumps({"id": request.pop("id"), **answer(**request)}), flush=True)
