# type: ignore  # types everywhere would double a program that is here to be read
"""The C ABI of ports (syncedmem_port.h), and what is lent to a port: memory between guards.

Each action is logged, and fails if it is the one that has to.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_void_p

KINDS = ("pageable host memory", "page-locked host memory", "device memory")
DEVICE, GUARD = 2, b"\xa5" * 16
ALLOCATORS = {
    "allocate": (c_uint32, c_size_t, POINTER(c_void_p)), "deallocate": (c_uint32, c_void_p),
    "zero": (c_void_p, c_size_t), "copy": (c_void_p, c_void_p, c_size_t),
    "copy_async": (c_void_p, c_void_p, c_size_t, c_void_p), "synchronize": (c_void_p,),
    "get_device": (POINTER(c_int32),), "set_device": (c_int32,),
}  # fmt: skip


class Allocators(Structure):
    _fields_ = [("context", c_void_p), *((n, CFUNCTYPE(c_int, c_void_p, *it)) for n, it in ALLOCATORS.items())]


class Asked(Structure):
    _fields_ = [("call", c_uint32), ("mode", c_uint32), ("data", c_void_p), ("data_size", c_size_t),
                ("data_kind", c_uint32), ("stream", c_void_p)]  # fmt: skip


class Result(Structure):
    _fields_ = [("view", c_void_p), ("refusal", c_uint32), ("message", c_char_p)]


class State(Structure):
    _fields_ = [("head", c_uint32), ("flags", c_uint32), ("known_flags", c_uint32), ("size", c_size_t)]


class Port(Structure):
    _fields_ = [("version", c_uint32), ("level", c_uint32), ("sides", c_uint32), ("name", c_char_p),
                ("edition", c_char_p), ("own", c_void_p),
                ("create", CFUNCTYPE(c_int, POINTER(Allocators), c_size_t, POINTER(c_void_p))),
                ("call", CFUNCTYPE(c_int, c_void_p, POINTER(Asked), POINTER(Result))),
                ("state", CFUNCTYPE(None, c_void_p, POINTER(State))),
                ("destroy", CFUNCTYPE(None, c_void_p))]  # fmt: skip


def content(number, size):
    return bytes((7 * number + k) % 251 if number else 0 for k in range(size))


class Block:
    """Bytes between guards, which nobody may write."""

    def __init__(self, size, kind):
        self.memory = ctypes.create_string_buffer(GUARD + b"\xcd" * size + GUARD)
        self.at, self.size, self.kind, self.live = ctypes.addressof(self.memory) + len(GUARD), size, kind, True

    def has(self, at, size):
        return self.live and at is not None and self.at <= at <= at + size <= self.at + self.size

    def guarded(self):
        return {self.memory.raw[:16], self.memory.raw[self.size + 16 : self.size + 32]} == {GUARD}

    def write(self, number):
        ctypes.memmove(self.at, content(number, self.size), self.size)


class Lent:
    """What is lent to a port for memory of a size; each action is logged, and fails if it is the one that has to."""

    def __init__(self, port, size, buffers):
        self.port, self.size, self.buffers, self.blocks, self.done, self.trouble = port, size, buffers, [], [], []
        self.fails, self.queued, self.adopted, self.view, self.made = 0, [], {}, {}, 0
        lent = (kind(getattr(self, name)) for name, kind in Allocators._fields_[1:])
        self.lent = Allocators(None, *lent)

    def act(self, action, size, *there):
        self.fails -= 1
        if self.fails == 0 or not all(there):
            self.trouble += [] if all(there) else [f"{action} where no memory is"]
            return 1
        self.done.append(action if size == self.size else f"{action} of {size} bytes")
        return 0

    def find(self, at, size=0):
        return next((it for it in [*self.blocks, *self.buffers.values()] if it.has(at, size)), None)

    def allocate(self, _, kind, size, at):
        if self.act("allocate_gpu" if kind == DEVICE else "allocate_cpu", size):
            return 1
        self.blocks.append(Block(size, kind))
        self.made, at[0] = self.made if kind == DEVICE else kind, self.blocks[-1].at
        return 0

    def deallocate(self, _, kind, at):
        it = next((it for it in self.blocks if it.live and it.at == at), None)
        if it is not None and it.kind != kind:
            self.trouble.append(f"{KINDS[it.kind]} freed as {KINDS[kind % 3]}")
        if self.act("free_gpu" if kind == DEVICE else "free_cpu", it and it.size, it and it.kind == kind):
            return 1
        it.live = False
        return 0

    def zero(self, _, at, size):
        it = self.find(at, size)
        failed = self.act("zero_gpu" if it and it.kind == DEVICE else "zero_cpu", size, it)
        return failed or (ctypes.memset(at, 0, size) and 0)

    def move(self, to, source, size, up):
        into, out = self.find(to, size), self.find(source, size)
        sides = [it and it.kind == DEVICE for it in (into, out)]
        name = "copy within a side" if sides[0] == sides[1] else up if sides[0] else "copy_to_cpu"
        return self.act(name, size, into, out)

    def copy(self, _, to, source, size):
        return self.move(to, source, size, "copy_to_gpu") or (ctypes.memmove(to, source, size) and 0)

    def copy_async(self, _, to, source, size, stream):
        return self.move(to, source, size, "copy_to_gpu_async") or self.queued.append((to, source, size)) or 0

    def synchronize(self, _=None, stream=None):
        while self.queued:
            ctypes.memmove(*self.queued.pop(0))
        return 0

    def get_device(self, _, device):
        device[0] = 0
        return 0

    def set_device(self, _, device):
        return int(device != 0)
