# type: ignore  # types everywhere would double a program that is here to be read
"""Replay test vectors on a port with the C ABI of syncedmem_port.h, and judge everything that they say.

syncedmem vectors --out build/vectors
python examples/replay.py ./libport.so build/vectors/caffe/tour.jsonl

docs/vectors.md defines the format.  A difference is one line: id, step, call, expected, seen.  What the port's level
does not show is not judged.  The standard library is enough.
"""

import ctypes
import json
import sys
from ctypes import POINTER, c_void_p, memmove, string_at

from lent import DEVICE, KINDS, Asked, Block, Lent, Port, Result, State, content

HEADS = ("UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED")
CALLS = ("cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data", "set_cpu_data", "set_gpu_data",
         "async_gpu_push", "release")  # fmt: skip
WHY = (None, "null_data", "not_head_at_cpu", "no_gpu")
FLAGS = {"own_cpu_data": 4, "own_gpu_data": 8, "cpu_malloc_use_cuda": 16}
ACTIONS, FAILURES = 2, 3


class Different(Exception):
    """What was expected, and what was seen."""


def expect(expected, seen, what=""):
    if expected != seen:
        raise Different(f"expected {what}{expected}, seen {seen}")


class Memory(Lent):
    """A memory of the port, and its judge."""

    def __init__(self, port, size, buffers):
        super().__init__(port, size, buffers)
        self.at = c_void_p()
        port.create(self.lent, size, self.at)

    def play(self, step, mode):
        call, argument, side = step["call"], step.get("argument"), "gpu" if "gpu" in step["call"] else "cpu"
        buffer = argument and self.buffers.get(argument.get("buffer"))
        if argument and "buffer" in argument and buffer is None:
            buffer = self.buffers[argument["buffer"]] = Block(self.size, DEVICE * (side == "gpu"))
        if buffer and "bytes" in argument:
            buffer.write(argument["bytes"])
        if call in CALLS:
            self.call(step, call, mode, side, buffer)
        self.compare(step)
        intact = all(it.guarded() for it in [*self.blocks, *self.buffers.values()])
        expect(True, intact, "nothing written beside a block: ")

    def call(self, step, call, mode, side, buffer):
        data = None if step.get("argument") is None else buffer.at if buffer else self.view[side]
        asked, result = Asked(CALLS.index(call), mode, data, self.size, DEVICE * (side == "gpu"), None), Result()
        self.done, self.trouble, self.fails = [], [], step.get("fail", 0)
        status = self.port.call(self.at, asked, result)
        self.fails = 0
        self.synchronize()
        wanted = "a failure" if "fail" in step else step["refusal"] or "an answer"
        seen = ("an answer", WHY[result.refusal] if result.refusal < len(WHY) else None, "a failure")[status]
        if not (status and seen is None and step["refusal"]) and not (status and "fail" in step):
            expect(wanted, seen)
        if status == 0:
            self.view[side] = result.view
            self.adopted |= {side: buffer} if buffer else {}
        if self.port.level < ACTIONS:
            return
        expect([], self.trouble)
        if "shows" in step and self.size:
            expect(True, self.find(result.view, self.size) is not None, "a view of its memory: ")
            expect(content(step["shows"], self.size).hex(), string_at(result.view, self.size).hex(), "the view ")
            if "write" in step:
                memmove(result.view, content(step["write"], self.size), self.size)
        if "actions" in step:
            expect([it for it in step["actions"] if not it.startswith("adopt")], self.done)
            if "allocate_cpu" in self.done and "cpu_malloc_use_cuda" in step.get("flags", {}):
                expect(KINDS[step["flags"]["cpu_malloc_use_cuda"]], KINDS[self.made])
        if call == "release":
            expect(0, sum(it.live for it in self.blocks), "blocks left: ")

    def compare(self, step):
        seen = State()
        self.port.state(self.at, seen)
        if "head" in step:
            expect(step["head"], HEADS[seen.head] if seen.head < len(HEADS) else seen.head)
        for flag, wanted in step.get("flags", {}).items():
            if seen.known_flags & FLAGS[flag]:
                expect(wanted, bool(seen.flags & FLAGS[flag]), f"{flag} ")
        for side, number in step.get("bytes", {}).items() if self.port.level >= ACTIONS else ():
            own = [it for it in self.blocks if it.live and (it.kind == DEVICE) == (side == "gpu")]
            for it in () if number is None else [self.adopted[side]] if side in self.adopted else own:
                expect(content(number, self.size).hex(), string_at(it.at, self.size).hex(), f"the {side} side ")


def judge(port, vector):
    """What is wrong with a port, or None; a vector that its level does not show is not run."""
    if vector["edition"] != port.edition.decode():
        return f"expected a port of the edition {vector['edition']}, seen {port.edition.decode()}"
    if port.level < FAILURES and any("fail" in step for step in vector["steps"]):
        return None
    buffers, mode, number, wrong = {}, 1, 0, None
    memories = [Memory(port, size, buffers) for size in vector["sizes"]]
    try:
        for number, step in enumerate(vector["steps"]):
            if step["call"] == "set_mode":
                mode = int(step["argument"] == "GPU")
            else:
                memories[step.get("memory", 0)].play(step, mode)
    except Different as error:
        wrong = f"step {number} {vector['steps'][number]['call']}: {error}"
    for it in memories:
        port.destroy(it.at)
    return wrong


def replay(port, lines, judge=judge):
    """How many vectors failed, and how many there were."""
    found = [(vector, judge(port, vector)) for vector in map(json.loads, lines)]
    failed = [print(vector["id"], wrong) for vector, wrong in found if wrong]
    print(f"{len(found)} vectors, {len(failed)} failed")
    return len(failed), len(found)


if __name__ == "__main__":
    library = ctypes.CDLL(sys.argv[1])
    library.syncedmem_port.restype = POINTER(Port)
    results = [replay(library.syncedmem_port().contents, open(name)) for name in sys.argv[2:]]
    sys.exit(any(failed or not count for failed, count in results) or not results)
