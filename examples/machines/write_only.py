"""A Caffe whose accessors may be told not to copy first, as NVIDIA's fork has it.

NVIDIA/caffe, include/caffe/syncedmem.hpp: mutable_cpu_data(copy_from_gpu), mutable_gpu_data(copy_from_cpu).  With false
nothing is copied, and the head moves as if it had been; these are calls of their own here.  A new side is not zeroed.
"""

from syncedmem.model import Call, Machine, Row
from syncedmem.model.caffe import CAFFE

_ROWS = [
    Row(
        row.call.replace("mutable_", "overwrite_"), row.source, row.dest, do=_do, when=row.conditions, unless=row.unless
    )
    for row in CAFFE.rows
    if row.call.startswith("mutable_")
    for _do in [[it for it in row.actions if CAFFE.actions[it].does == "allocate"]]
]

WRITE_ONLY = Machine(
    "write_only",
    [*CAFFE.rows, *_ROWS],
    title="Caffe with access that only writes",
    sides=CAFFE.sides,
    heads=CAFFE.heads.values(),
    calls=[
        *CAFFE.calls.values(),
        Call("overwrite_cpu_data", "overwrite", "cpu"),
        Call("overwrite_gpu_data", "overwrite", "gpu"),
    ],
    facts=CAFFE.facts.values(),
    actions=CAFFE.actions.values(),
    refusals=CAFFE.refusals.values(),
    settings=CAFFE.settings.values(),
)
