"""dlib's gpu_data: two flags, both true for a new memory, and access that only writes.

dlib/cuda/gpu_data.h and gpu_data.cpp.  Both sides are allocated by set_size, and nothing is zeroed.  Overloads have one
name, so the ones that are const are called ``const_host`` and ``const_device`` here.
"""

from syncedmem.model import Action, Call, Machine, Row

_ROWS = []
for here, held, other, copy in (
    ("host", "HOST_CURRENT", "DEVICE_CURRENT", "copy_to_host"),
    ("device", "DEVICE_CURRENT", "HOST_CURRENT", "copy_to_device"),
):
    _ROWS += [
        Row(f"const_{here}", ("BOTH_CURRENT", held), cite=f"gpu_data.h: {here}() const"),
        Row(f"const_{here}", other, "BOTH_CURRENT", do=copy),
        Row(here, ("BOTH_CURRENT", held), held, cite=f"gpu_data.h: {here}()"),
        Row(here, other, held, do=copy),
        Row(f"{here}_write_only", ("BOTH_CURRENT", held, other), held, cite=f"gpu_data.h: {here}_write_only()"),
    ]
_ROWS += [
    Row("async_copy_to_device", ("BOTH_CURRENT", "DEVICE_CURRENT"), cite="gpu_data.cpp: async_copy_to_device()"),
    Row("async_copy_to_device", "HOST_CURRENT", "BOTH_CURRENT", do="copy_to_device_on_its_stream"),
]

DLIB = Machine(
    "dlib",
    _ROWS,
    title="dlib's gpu_data",
    sides=("data_host", "data_device"),
    heads={"BOTH_CURRENT": ("data_host", "data_device"), "HOST_CURRENT": "data_host", "DEVICE_CURRENT": "data_device"},
    calls=[
        Call("const_host", "read", "data_host"),
        Call("host", "write", "data_host"),
        Call("host_write_only", "overwrite", "data_host"),
        Call("const_device", "read", "data_device"),
        Call("device", "write", "data_device"),
        Call("device_write_only", "overwrite", "data_device"),
        Call("async_copy_to_device", "push", "data_device", "data_host"),
    ],
    actions=[
        Action("copy_to_host", "copy", "data_host", "data_device"),
        Action("copy_to_device", "copy", "data_device", "data_host"),
        Action("copy_to_device_on_its_stream", "copy", "data_device", "data_host", queued=True),
    ],
)
