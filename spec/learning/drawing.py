"""The drawing of a learned machine: heads and calls, as the declared machine is drawn, with marks where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model import EDITIONS, Action, Input, SyncedHead
from syncedmem.model.diagrams.diamond import painted
from syncedmem.model.diagrams.drawing import Detail, Drawing, Edge, Line, Node, Note, effect, kind_of, meanings_of
from syncedmem.model.exports.graphviz import dot_of
from syncedmem.model.exports.mermaid import mermaid_of

from ..engine.calls import ADOPTIONS, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .answers import Answer
    from .report import LearnReport

__all__ = ["drawings"]

_MARKS = ", ✓ as declared, ✗ not as declared"
_ACTIONS = {action.value: action for action in Action}


class _Taken(NamedTuple):
    """A transition of the learned machine between heads.

    Attributes
    ----------
    source, dest : str
        Names of heads; no dest if there is no memory afterwards.
    entry : Input
    answer : Answer
    wrong : bool
        Whether it is not as declared.
    """

    source: str
    dest: str
    entry: Input
    answer: Answer
    wrong: bool

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions that the model has names for."""
        names = [name.partition(",")[0] for name in self.answer.did]
        adopts = self.entry.call in ADOPTIONS and not self.answer.refused
        adopted = [f"adopt_{SIDES[self.entry.call]}"] if adopts and self.entry.call else []
        return tuple(_ACTIONS[name] for name in (*names, *adopted) if name in _ACTIONS)

    @property
    def what(self) -> str:
        """What it shares with others that are drawn together with it."""
        answer = self.answer
        way = answer.died or ("refused" if answer.refused else self.dest)
        return f"{self.entry}: {way}"


def drawings(report: LearnReport) -> dict[str, str]:
    """The learned machine as SVG, in Mermaid and in DOT, by the endings of file names."""
    taken = [*_taken(report)]
    drawn, covered = _drawing(report, taken)
    marked = drawn._replace(
        edges=tuple(edge._replace(lines=tuple(_marked(line, covered) for line in edge.lines)) for edge in drawn.edges),
        notes=tuple(it if set(it.identifiers) <= covered else it._replace(text=f"✗ {it.text}") for it in drawn.notes),
    )
    return {
        "svg": painted(drawn, Detail.HEADS, covered=covered, marks=_MARKS),
        "mmd": mermaid_of(marked),
        "dot": dot_of(marked, Detail.HEADS),
    }


def _marked(line: Line, covered: frozenset[str]) -> Line:
    return line if set(line.identifiers) <= covered else line._replace(call=f"✗ {line.call}")


def _taken(report: LearnReport) -> Iterator[_Taken]:
    """The transitions of the learned machine; a change of mode moves no head."""
    machine, wrong = report.learned.machine, report.comparison.wrong
    heads: dict[int, str] = {0: EDITIONS[report.edition].initial.name}
    heads |= {state: head.name for state, head in report.comparison.heads.items()} if not report.sight.head else {}
    waiting = [0]
    for state in waiting:
        for entry, (answer, after) in machine.steps[state].items():
            ends = entry.ends or bool(answer.died)
            if after not in heads and not ends:
                heads[after] = answer.head or heads[state]
            if after not in waiting and not ends:
                waiting.append(after)
            if entry.call:
                yield _Taken(heads[state], "" if ends else heads[after], entry, answer, (state, entry) in wrong)


def _drawing(report: LearnReport, taken: list[_Taken]) -> tuple[Drawing, frozenset[str]]:
    """The drawing, and the identifiers of what is as declared."""
    initial = EDITIONS[report.edition].initial.name
    known = [head for head in EDITIONS[report.edition].heads if any(head.name in (it.source, it.dest) for it in taken)]
    groups: dict[tuple[str, str], dict[str, list[_Taken]]] = {}
    noted: dict[str, list[_Taken]] = {}
    for it in taken:
        # An unknown head has no place, and neither has a loop at the first head.
        placed = {it.source, it.dest} <= set(SyncedHead.__members__) and not it.source == it.dest == initial
        if it.answer.refused or not placed:
            noted.setdefault(it.what, []).append(it)
        else:
            groups.setdefault((it.source, it.dest), {}).setdefault(str(it.entry), []).append(it)
    order = [head.name for head in SyncedHead]
    edges = tuple(
        Edge(source, dest, tuple(_line(call, those) for call, those in calls.items()))
        for (source, dest), calls in sorted(groups.items(), key=lambda it: [order.index(name) for name in it[0]])
    )
    notes = tuple(_note(those, known) for those in noted.values())
    covered = {_identifier(it) for it in taken} - {_identifier(it) for it in taken if it.wrong}
    title = f"Learned: {report.name}, beside the edition {report.edition}"
    nodes = tuple(Node(head.name, head) for head in known)
    return Drawing(title, nodes, edges, notes, meanings_of(report.edition)), frozenset(covered)


def _identifier(it: _Taken) -> str:
    return f"{it.what} @ {it.source}"


def _identifiers(those: Iterable[_Taken]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_identifier, those)))


def _line(call: str, those: list[_Taken]) -> Line:
    done = effect(those)
    return Line(call, (done,) if done else (), kind_of(those), _identifiers(those))


def _note(those: list[_Taken], known: list[SyncedHead]) -> Note:
    """A refusal, the end of a memory, the end of the port, or a call that cannot be drawn as an arrow."""
    first = those[0]
    heads = tuple(head for head in known if any(it.source == head.name for it in those))
    others = ", ".join(head.name for head in known if head not in heads)
    where = f"every head but {others}" if len(heads) > len(known) // 2 and others else "every head"
    where = where if len(heads) > len(known) // 2 else ", ".join(head.name for head in heads)
    done = effect(those)
    if first.answer.died:
        result = first.answer.died
    elif first.answer.refused:
        result = "refused"
    elif first.entry.ends:
        result = f"{done or 'nothing'}, then the end"
    else:
        result = f"{done or 'nothing'}, the head is {first.dest}"
    final = first.entry.ends and not first.answer.refused and not first.answer.died
    return Note(str(first.entry), f"{first.entry} in {where}: {result}", heads, final, _identifiers(those))
