"""The state diagram as plain text."""

from __future__ import annotations

from machines import DOOR

from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.formats import export


def test_a_diagram_of_text_spelt_out() -> None:
    trace = trace_of("open close", edition=DOOR)
    assert """door

SHUT (at first)
  close           creak + ring
  open   -> OPEN  [!locked]

OPEN
  close  -> SHUT  creak + ring

open [locked] in every head but OPEN: refused, no_key
[guard]: only if it holds, [!guard]: only if it does not

1. open [!locked]: SHUT → OPEN, nothing
2. close: OPEN → SHUT, creak + ring
""" == export("text", edition=DOOR, trace=trace)
