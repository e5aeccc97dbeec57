"""Machines of others, in their own words: what must work for any machine is tried on these."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncedmem.model.declaration import Action, Call, Machine, Row, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncedmem.spec.memory.policy import Policy

__all__ = [
    "DOOR",
    "EXAMPLES",
    "KEYWORDS",
    "MACHINES",
    "MSI",
    "MSI_OF_TWO",
    "ODD",
    "PETSC",
    "POLICIES",
    "TCP",
    "THIRD",
    "changed",
    "example",
    "machine_with",
]

DOOR = Machine(
    "door",
    [
        Row("open", "SHUT", "OPEN", unless="locked"),
        Row("open", "SHUT", when="locked", refused="no_key"),
        Row("close", ["OPEN", "SHUT"], "SHUT", do=["creak", "ring"]),
    ],
)
"""Nothing means anything; nobody changes whether it is locked; who opens an open door is told nothing."""


def example(file: str) -> dict[str, Any]:
    """The names that an example of a machine defines."""
    return runpy.run_path(str(Path(__file__).parents[2] / "examples" / "machines" / f"{file}.py"))


_MSI = example("msi")
TCP: Machine = example("tcp")["TCP"]
PETSC: Machine = example("petsc")["PETSC"]
MSI: Machine = _MSI["MSI"]
MSI_OF_TWO: Machine = _MSI["msi_of"]("ab")
THIRD: Machine = example("third_side")["THIRD_SIDE"]
MACHINES = (DOOR, TCP, PETSC, MSI)
EXAMPLES: tuple[Machine, ...] = (
    *(example(name.lower())[name] for name in ("DLIB", "KOKKOS", "MFEM", "NOT_ZEROED", "WRITE_ONLY")),
    *(TCP, PETSC, MSI, THIRD),
)
"""All of them."""
POLICIES: dict[Machine, Policy] = {
    PETSC: example("petsc")["POLICY"],
    MSI: _MSI["POLICY"],
    MSI_OF_TWO: _MSI["policy_of"](MSI_OF_TWO),
    THIRD: example("third_side")["POLICY"],
}
"""What these memories decide, for an oracle."""


def machine_with(base: Machine, rows: Iterable[Row], *actions: Action, name: str = "wrong") -> Machine:
    """Another machine with the words of this one; some of its actions may be others."""
    words: dict[str, Any] = {
        kind: [*getattr(base, kind).values()] for kind in ("heads", "calls", "facts", "refusals", "settings")
    }
    changed = {**base.actions, **{action.name: action for action in actions}}
    return Machine(name, rows, sides=base.sides, actions=changed.values(), **words)


def changed(base: Machine, call: str, head: str, **parts: Any) -> Machine:
    """A machine with other parts of the rows of a call in a head, except its refusals; a part may be computed."""
    rows: list[Row] = []
    for row in base.rows:
        if row.call != call or head not in row.source or row.refusal:
            rows.append(row)
            continue
        rest = [item for item in row.source if item != head]
        said: dict[str, Any] = {"do": row.actions, "when": row.conditions, "unless": row.unless, "dest": row.dest}
        found: dict[str, Any] = said | {name: part(row) if callable(part) else part for name, part in parts.items()}
        rows += [Row(row.call, rest, **said)] if rest else []
        rows.append(Row(row.call, head, **found))
    return machine_with(base, rows)


_ODD_HEADS = [
    "start here",
    'say "x"',
    "<script>alert(1)</script>",
    "ἄλφα 内存",
    r"\input{a}_b^c & 50% #1 $x$ ~",
    "A --> B : [*] end; %% {x}",
    "**bold** __under__ //it// + more",
    "state",
    "end",
]
ODD = Machine(
    "odd",
    [
        Row(f"to {after}", head, after, do=f"do {after}")
        for head, after in zip(_ODD_HEADS, _ODD_HEADS[1:] + _ODD_HEADS[:1], strict=True)
    ],
    title='Odd <b>"names"</b>',
)
"""Its names have every letter that means something to some format."""

KEYWORDS = Machine(
    "if",
    [
        Row("int", "self", "end", do=["none", "set"], unless=["argument", "IF"]),
        Row("int", "end", "Open", do=["+", "none"], when="argument"),
        Row("int", "end", "self", unless="argument", do="set"),
        Row("open", "Open", "OPEN", cite='"p. 3" \\ */'),
        Row("open", "OPEN", "a  b"),
        Row("a", "a  b", "b_c"),
        Row("a_b", "b_c", "c", do="clear"),
        Row("a_b", "c", "self", unless="true"),
        Row("rows", "self", refused="no key"),
        Row("skip", ["self", "end"], "self", when="true"),
    ],
    title="*/ int main(void) { return 1; } /*",
    calls=[Call("int", takes="argument"), "open", "a", "a_b", "rows", "skip"],
    actions=[
        "none",
        "+",
        Action("set", sets=("IF",), by_setting=(("true", "enum", "a-b"),)),
        Action("clear", clears=("IF",)),
    ],
    facts=["IF", "true"],
    settings=[Setting("enum", ("a-b", "a_b", "static"))],
)
"""Its words are those of languages, and of what is written in them; some are alike in capitals."""
