"""PETSc's offload mask: which of a vector's arrays are valid, with access that only writes.

PetscOffloadMask, include/petscdevicetypes.h; VecGetArrayRead, VecGetArray and VecGetArrayWrite,
src/vec/vec/interface/rvector.c; their twins for CUDA, src/vec/vec/impls/seq/cupm.  An array is allocated when it is
needed; whether it is zeroed then is left out here.
"""

from syncedmem.model import Action, Call, Fact, Machine, Row
from syncedmem.spec import Policy

_ROWS = []
for get, new, copy, array, here, there in (
    ("VecGetArray", "malloc", "VecCUDACopyFromGPU", "array", "CPU", "GPU"),
    ("VecCUDAGetArray", "cudaMalloc", "VecCUDACopyToGPU", "GPUarray", "GPU", "CPU"),
):
    for call, both in ((f"{get}Read", "BOTH"), (get, here)):
        _ROWS += [
            Row(call, "UNALLOCATED", here, do=new),
            Row(call, here, here),
            Row(call, "BOTH", both),
            Row(call, there, both, do=(new, copy), unless=array),
            Row(call, there, both, do=copy, when=array),
        ]
    _ROWS += [
        Row(f"{get}Write", ("UNALLOCATED", there), here, do=new, unless=array),
        Row(f"{get}Write", there, here, when=array),
        Row(f"{get}Write", (here, "BOTH"), here),
    ]

PETSC = Machine(
    "petsc",
    _ROWS,
    title="PETSc's offload mask",
    sides=("host", "device"),
    heads={"UNALLOCATED": (), "CPU": "host", "GPU": "device", "BOTH": ("host", "device")},
    calls=[
        Call("VecGetArrayRead", "read", "host"),
        Call("VecGetArray", "write", "host"),
        Call("VecGetArrayWrite", "overwrite", "host"),
        Call("VecCUDAGetArrayRead", "read", "device"),
        Call("VecCUDAGetArray", "write", "device"),
        Call("VecCUDAGetArrayWrite", "overwrite", "device"),
    ],
    facts=[Fact("array", "pointer", "host"), Fact("GPUarray", "pointer", "device")],
    actions=[
        Action("malloc", "allocate", "host", sets=("array",)),
        Action("cudaMalloc", "allocate", "device", sets=("GPUarray",)),
        Action("VecCUDACopyToGPU", "copy", "device", "host"),
        Action("VecCUDACopyFromGPU", "copy", "host", "device"),
    ],
)

POLICY = Policy(PETSC.sides, lazy=frozenset(PETSC.sides))
