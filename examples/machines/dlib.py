"""dlib's gpu_data: two flags, both true for a new memory, and access that only writes.

dlib/cuda/gpu_data.h and gpu_data.cpp.  Both sides are allocated by set_size, and nothing is zeroed.  Overloads have one
name, so the ones that are const are called ``const_host`` and ``const_device`` here.
"""

from syncedmem.model import Action, Call, Machine, Row

_ROWS = []
for here, held, other, copy in (
    ("host", "HOST", "DEVICE", "copy_to_host"),
    ("device", "DEVICE", "HOST", "copy_to_device"),
):
    _ROWS += [
        Row(f"const_{here}", ("BOTH", held), cite=f"gpu_data.h: {here}() const"),
        Row(f"const_{here}", other, "BOTH", do=copy),
        Row(here, ("BOTH", held), held, cite=f"gpu_data.h: {here}()"),
        Row(here, other, held, do=copy),
        Row(f"{here}_write_only", ("BOTH", held, other), held, cite=f"gpu_data.h: {here}_write_only()"),
    ]
_ROWS += [
    Row("async_copy_to_device", ("BOTH", "DEVICE"), cite="gpu_data.cpp: async_copy_to_device()"),
    Row("async_copy_to_device", "HOST", "BOTH", do="copy_to_device_on_its_stream"),
]

DLIB = Machine(
    "dlib",
    _ROWS,
    title="dlib's gpu_data",
    sides=("host", "device"),
    heads={"BOTH": ("host", "device"), "HOST": "host", "DEVICE": "device"},
    calls=[
        Call("const_host", "read", "host"),
        Call("host", "write", "host"),
        Call("host_write_only", "overwrite", "host"),
        Call("const_device", "read", "device"),
        Call("device", "write", "device"),
        Call("device_write_only", "overwrite", "device"),
        Call("async_copy_to_device", "push", "device", "host"),
    ],
    actions=[
        Action("copy_to_host", "copy", "host", "device"),
        Action("copy_to_device", "copy", "device", "host"),
        Action("copy_to_device_on_its_stream", "copy", "device", "host", queued=True),
    ],
)
