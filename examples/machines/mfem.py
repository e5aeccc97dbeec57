"""MFEM's ``Memory<T>``: two valid bits, and access with an intent.

general/mem_manager.hpp and mem_manager.cpp: Mem::VALID_HOST, Mem::VALID_DEVICE; MemoryManager::Read_, ReadWrite_ and
Write_.  The host array is there from the beginning, and counts as valid; the device's is allocated when somebody asks
for it.  Nothing is zeroed.  ``make deep PART=mfem`` compares the heads with MFEM itself.
"""

from syncedmem.model import Action, Call, Fact, Machine, Row

_HOST, _DEVICE, _BOTH = "VALID_HOST", "VALID_DEVICE", "VALID_BOTH"

_ROWS = [
    Row("HostRead", (_HOST, _BOTH)),
    Row("HostRead", _DEVICE, _BOTH, do="MemcpyDtoH"),
    Row("HostReadWrite", (_HOST, _BOTH), _HOST),
    Row("HostReadWrite", _DEVICE, _HOST, do="MemcpyDtoH"),
    Row("HostWrite", (_HOST, _DEVICE, _BOTH), _HOST),
    Row("Write", _HOST, _DEVICE, do="Alloc", unless="d_ptr"),
    Row("Write", _HOST, _DEVICE, when="d_ptr"),
    Row("Write", (_DEVICE, _BOTH), _DEVICE),
]
for call, dest in (("Read", _BOTH), ("ReadWrite", _DEVICE)):
    _ROWS += [
        Row(call, _HOST, dest, do=("Alloc", "MemcpyHtoD"), unless="d_ptr"),
        Row(call, _HOST, dest, do="MemcpyHtoD", when="d_ptr"),
        Row(call, _BOTH, dest),
        Row(call, _DEVICE),
    ]

MFEM = Machine(
    "mfem",
    _ROWS,
    title="MFEM's valid bits",
    sides=("host", "device"),
    heads={_HOST: "host", _DEVICE: "device", _BOTH: ("host", "device")},
    calls=[
        Call("HostRead", "read", "host"),
        Call("HostReadWrite", "write", "host"),
        Call("HostWrite", "overwrite", "host"),
        Call("Read", "read", "device"),
        Call("ReadWrite", "write", "device"),
        Call("Write", "overwrite", "device"),
    ],
    facts=[Fact("d_ptr", "pointer", "device")],
    actions=[
        Action("Alloc", "allocate", "device", sets=("d_ptr",)),
        Action("MemcpyHtoD", "copy", "device", "host"),
        Action("MemcpyDtoH", "copy", "host", "device"),
    ],
)
