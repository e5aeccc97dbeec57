"""A Caffe whose device side is not zeroed when it is first asked for, as in several of its descendants.

BVLC/caffe, src/caffe/syncedmem.cpp: to_gpu zeroes what it allocates in UNINITIALIZED.  mini-caffe, src/syncedmem.cpp,
zeroes neither side.
"""

from syncedmem.model import Machine, Row
from syncedmem.model.caffe import CAFFE

_ROWS = [
    Row(
        row.call,
        row.source,
        row.dest,
        do=[it for it in row.actions if it != "zero_gpu"],
        when=row.conditions,
        unless=row.unless,
        refused=row.refusal,
        cite=row.cite,
    )
    for row in CAFFE.rows
]

NOT_ZEROED = Machine(
    "not_zeroed",
    _ROWS,
    title="Caffe without zeros on the device",
    sides=CAFFE.sides,
    heads=CAFFE.heads.values(),
    calls=CAFFE.calls.values(),
    facts=CAFFE.facts.values(),
    actions=[it for it in CAFFE.actions.values() if it.name != "zero_gpu"],
    refusals=CAFFE.refusals.values(),
    settings=CAFFE.settings.values(),
)
