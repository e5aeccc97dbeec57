"""A mirrored memory in plain Python that speaks the protocol of ports; its device is memory of the host too."""

import json
import sys

OTHER, HEAD = {"cpu": "gpu", "gpu": "cpu"}, {"cpu": "HEAD_AT_CPU", "gpu": "HEAD_AT_GPU"}
HELLO = {"version": 1, "name": "port.py", "level": "L2"}
NEW = {"head": "UNINITIALIZED", "own_cpu_data": False, "own_gpu_data": False, "cpu_malloc_use_cuda": False}
memories, buffers = {}, {}  # a memory is what it answers, with its two sides


def free(it, side):
    if it[f"own_{side}_data"]:
        it["actions"].append(f"free_{side}")
        it[f"own_{side}_data"] = False


def allocate(it, side, mode):
    if it[side] is None:
        it["actions"].append(f"allocate_{side}")
        it[side], it[f"own_{side}_data"] = memoryview(bytearray(it["size"])), True
        it["cpu_malloc_use_cuda"] = mode == "GPU" if side == "cpu" else it["cpu_malloc_use_cuda"]


def bring(it, side, mode, copy):
    """Make a side fresh."""
    first = it["head"] == "UNINITIALIZED"
    allocate(it, side, mode)
    it["actions"].append(f"zero_{side}" if first else copy)
    it[side][:] = bytes(it["size"]) if first else it[OTHER[side]]
    it["head"] = HEAD[side] if first else "SYNCED"


def call(it, op, side, mode, buffer):
    """Make a call; the reason if it is refused."""
    if buffer is None or (op == "async_gpu_push" and it["head"] != "HEAD_AT_CPU"):
        return f"{op} of {buffer} at {it['head']}"
    if op == "release":
        free(it, "cpu")
        free(it, "gpu")
    elif op.startswith("set"):
        free(it, side)
        it[side], it["head"] = memoryview(buffers[buffer])[: it["size"]], HEAD[side]
    elif it["head"] not in (HEAD[side], "SYNCED"):
        bring(it, side, mode, "copy_to_gpu_async" if op == "async_gpu_push" else f"copy_to_{side}")
    it["head"] = HEAD[side] if "mutable" in op else it["head"]
    return None


def answer(op, memory=None, side="", mode="", buffer="", bytes="", size=0, **_):
    content, side = bytearray.fromhex(bytes), side or ("gpu" if "gpu" in op else "cpu")
    if memory is None:  # it is about the port, or a buffer of the caller
        buffers.setdefault(buffer, content)[: len(content)] = content
        return {"hello": HELLO, "read_buffer": {"bytes": memoryview(buffers[buffer])}}.get(op, {})
    it = memories.setdefault(memory, {**NEW, "size": size, "cpu": None, "gpu": None})
    if op == "write_view":
        it[side][: len(content)] = content
    it["actions"] = []
    it["refused"] = call(it, op, side, mode, buffer) if mode else None
    return {**it, "view": it[side]}


def serve():
    for request in map(json.loads, sys.stdin):
        print(json.dumps({"id": request.pop("id"), **answer(**request)}, default=memoryview.hex), flush=True)


if __name__ == "__main__":
    serve()
