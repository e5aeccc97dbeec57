"""The machine as a C header: enums, the table, and two functions that look up and step.  C99, and C++ too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..editions import head_machine
from ..head import Action, Call, Fact, Refusal, SyncedHead
from ..machine import DATA, Row
from .document import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["c_header"]

_TAIL = """\
/* The row that answers a call, or NULL where this edition has no such call or head. */
static inline const smd_row *smd_find(smd_call call, smd_head head, unsigned facts, int has_data) {
  const unsigned found = facts | (has_data ? (unsigned)SMD_HAS_DATA : 0u);
  for (size_t i = 0; i < SMD_ROWS; ++i) {
    const smd_row *row = &smd_table[i];
    if (row->call == call && row->head == head && (found & row->required) == row->required &&
        (found & row->excluded) == 0u)
      return row;
  }
  return NULL;
}

/* The facts after a row, if all its actions succeeded; the head afterwards is row->dest. */
static inline unsigned smd_facts_after(const smd_row *row, unsigned facts, smd_mode mode) {
  return (facts & row->kept[mode]) | row->sets[mode];
}

#endif
"""


def c_header(edition: str = "caffe") -> str:
    """The machine of an edition as a header without dependencies.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    rows = head_machine(edition).rows
    longest = max(len(row.actions) for row in rows)
    lines = [
        f"/* The head machine of SyncedMemory, edition {edition}, format {VERSION}. Made by syncedmem diagram. */",
        "#ifndef SYNCEDMEM_MACHINE_H",
        "#define SYNCEDMEM_MACHINE_H",
        "#include <stddef.h>",
        "",
        *_enum("head", ((head.name, head.value) for head in SyncedHead)),
        *_enum("call", enumerated(Call)),
        *_enum("action", enumerated(Action)),
        "/* SMD_REFUSED_NONE: the call is answered. */",
        *_enum("refusal", [("REFUSED_NONE", 0), *((f"REFUSED_{name}", n + 1) for name, n in enumerated(Refusal))]),
        *_enum("mode", (("MODE_CPU", 0), ("MODE_GPU", 1))),
        "/* What is true of a memory besides its head, and of a call. */",
        *_enum("fact", [*((fact.name or "", fact.value) for fact in Fact), ("HAS_DATA", DATA)]),
        "typedef struct {",
        "  const char *id, *cite;",
        "  smd_call call;",
        "  smd_head head, dest; /* the same where the head stays as it is */",
        "  unsigned required, excluded; /* masks over the facts and SMD_HAS_DATA */",
        "  smd_refusal refusal;",
        f"  unsigned actions_count; smd_action actions[{longest}]; /* in order */",
        "  unsigned kept[2], sets[2]; /* masks over the facts, by mode */",
        "} smd_row;",
        "",
        f"#define SMD_ROWS {len(rows)}",
        "static const smd_row smd_table[SMD_ROWS] = {",
        *(f"  {_row(row, longest)}," for row in rows),
        "};",
        "",
    ]
    return "\n".join(lines) + "\n" + _TAIL


def enumerated(names: type[Call | Action | Refusal]) -> list[tuple[str, int]]:
    """The members of an enumeration of names, numbered from zero."""
    return [(member.name, number) for number, member in enumerate(names)]


def _enum(name: str, members: Iterable[tuple[str, int]]) -> list[str]:
    body = [f"  SMD_{member} = {value}" for member, value in members]
    return ["typedef enum {", ",\n".join(body), f"}} smd_{name};", ""]


def _row(row: Row, width: int) -> str:
    # A row without actions gets the first one as a filler, because C++ converts no zero into an enum.
    filler = next(iter(Action))
    actions = ", ".join(f"SMD_{action.name}" for action in (*row.actions, *[filler] * (width - len(row.actions))))
    refusal = f"SMD_REFUSED_{row.refusal.name if row.refusal else 'NONE'}"
    return (
        f'{{"{row.identifier}", "{row.declared.cite}", SMD_{row.declared.call.name}, '
        f"SMD_{row.head.name}, SMD_{row.dest.name}, "
        f"{row.required}u, {row.excluded}u, {refusal}, {len(row.actions)}u, {{{actions}}}, "
        f"{{{row.kept[0]}u, {row.kept[1]}u}}, {{{row.sets[0]}u, {row.sets[1]}u}}}}"
    )
