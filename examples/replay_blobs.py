# type: ignore  # types everywhere would double a program that is here to be read
"""Replay test vectors of blobs on a port with the C ABI of syncedmem_port.h, and judge everything that they say.

syncedmem vectors --out build/vectors
python examples/replay_blobs.py ./libport.so build/vectors/caffe/blob-cells.jsonl

It is used as replay.py, which runs the vectors of memories.  A port that has no blobs is not judged.  A copy within one
side and a free are no actions of a vector; what was allocated has to be freed when the last blob is gone.
"""

import ctypes
import struct
import sys
from ctypes import POINTER, c_int64, c_void_p, memmove, string_at
from itertools import chain, permutations
from math import isclose, prod

from abi_of_blobs import CALLS, COPY_DIFF, RESHAPE, SEQUENCE, TYPES, Asked, Blobs, Result, State, launch
from lent import DEVICE, Lent, Port
from replay import ACTIONS, HEADS, Different, expect, replay

STATUS = ("an answer", "a refusal", "a failure")


class Judge(Lent):
    """The blobs of a vector, and what is lent to them: the size is that of each action of a call."""

    def __init__(self, port, table, vector):
        super().__init__(port, 0, {})
        self.table, self.mode, self.format, self.blobs = table, 1, TYPES[vector["type"]], {}
        self.sizes = [prod(shape) * struct.calcsize(self.format) for shape in vector["shapes"]]
        for n, shape in enumerate(vector["shapes"]):
            self.blobs[n] = c_void_p()
            made = table.create(self.lent, launch, [*TYPES].index(vector["type"]), self.blobs[n])
            expect(0, made or self.ask({"call": "reshape", "argument": shape}, n)[0], "a blob with its shape: ")

    def play(self, step):
        n = step.get("blob", 0)
        if step["call"] == "set_mode":
            self.mode = int(step["argument"] == "GPU")
        elif step["call"] == "release":
            self.table.destroy(self.blobs.pop(n))
            expect(0, 0 if self.blobs else sum(it.live for it in self.blocks), "blocks left: ")
        else:
            self.call(step, n)
        expect(True, all(it.guarded() for it in self.blocks), "nothing written beside a block: ")

    def ask(self, step, n):
        size, argument, other, numbers, factor, options = self.sizes[n], step.get("argument"), None, [], 0.0, 0
        if isinstance(argument, dict):
            other = self.blobs[argument["blob"]]
            options = COPY_DIFF * argument.get("copy_diff", False) + RESHAPE * argument.get("reshape", False)
        elif isinstance(argument, list):
            numbers, options = argument, SEQUENCE
        elif argument is not None:
            factor = argument
        asked = Asked(CALLS.index(step["call"]), self.mode, options, len(numbers), (c_int64 * len(numbers))(*numbers),
                      factor, other, None, size, DEVICE * ("gpu" in step["call"]))  # fmt: skip
        result = Result()
        self.done, self.trouble, self.size = [], [], size
        return self.table.call(self.blobs[n], asked, result), result

    def call(self, step, n):
        status, result = self.ask(step, n)
        seen = STATUS[status] if status < len(STATUS) else "an unknown status"
        if (seen == "a refusal") != bool(step["refusal"]) or status > 1:
            expect(step["refusal"] or "an answer", seen)
        if self.port.level < ACTIONS:
            self.compare(step)
            return
        if "value" in step and not isclose(result.number, step["value"], rel_tol=1e-6):
            expect(step["value"], result.number)
        if "shows" in step:
            self.numbers(step["shows"], result.view, "the view")
            content = struct.pack(f"{len(step.get('write', []))}{self.format}", *step.get("write", []))
            memmove(result.view, content, len(content))
        self.compare(step)
        orders = [[*chain.from_iterable(order)] for order in permutations(step["actions"])]
        done = [it for it in self.done if not it.startswith(("free", "copy within"))]
        expect(done if done in orders else orders[0], done)
        expect([], self.trouble)

    def numbers(self, wanted, at, what):
        """Compare the numbers of a side."""
        size = len(wanted) * struct.calcsize(self.format)
        expect(True, self.find(at, size) is not None, f"{what} is memory: ")
        expect(wanted, [*struct.unpack(f"{len(wanted)}{self.format}", string_at(at, size))], f"{what} ")

    def compare(self, step):
        for n, told in enumerate(step["blobs"]):
            seen = State()
            self.table.state(self.blobs[n], seen)
            expect(told["shape"], [*seen.shape[: seen.axes]], f"blob {n} of the shape ")
            for part, it in (("data", seen.data), ("diff", seen.diff)):
                head = HEADS[it.head] if it.head < len(HEADS) else it.head
                expect(told[part]["head"], head, f"the {part} of blob {n} at ")
                for side in ("cpu", "gpu") if self.port.level >= ACTIONS else ():
                    if told[part][side] is not None:
                        self.numbers(told[part][side], getattr(it, side), f"the {side} side of the {part} of blob {n}")


def judge(port, table, vector):
    """What is wrong with a port, or None."""
    number, wrong, it = 0, None, None
    try:
        expect(vector["edition"], port.edition.decode(), "a port of the edition ")
        it = Judge(port, table, vector)
        for number, step in enumerate(vector["steps"]):
            it.play(step)
    except Different as error:
        wrong = f"step {number} {vector['steps'][number]['call']}: {error}"
    for blob in it.blobs.values() if it else ():
        table.destroy(blob)
    return wrong


def replay_blobs(port, table, lines):
    """How many vectors failed, and how many there were."""
    return replay(port, lines, lambda port, vector: judge(port, table, vector))


if __name__ == "__main__":
    library = ctypes.CDLL(sys.argv[1])
    library.syncedmem_port.restype = POINTER(Port)
    if not hasattr(library, "syncedmem_blobs"):
        count = sum(len([*open(name)]) for name in sys.argv[2:])
        print(f"no blobs, {count} vectors left out")
        sys.exit(not count)
    library.syncedmem_blobs.restype = POINTER(Blobs)
    port, table = library.syncedmem_port().contents, library.syncedmem_blobs().contents
    results = [replay_blobs(port, table, open(name)) for name in sys.argv[2:]]
    sys.exit(any(failed or not count for failed, count in results) or not results)
