"""The drawing of a learned machine: heads and calls, as the declared machine is drawn, with marks where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model.caffe import EDITIONS
from syncedmem.model.diagrams.diamond import painted
from syncedmem.model.diagrams.drawing import Detail, Drawing, Edge, Line, Node, Note, effect, kind_of
from syncedmem.model.exports.graphviz import dot_of
from syncedmem.model.exports.mermaid import mermaid_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from syncedmem.model import Input
    from syncedmem.model.declaration import Machine

    from .answers import Answer
    from .report import LearnReport

__all__ = ["drawings"]

_MARKS = ", ✓ as declared, ✗ not as declared"


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
    actions : tuple of str
        The actions that the machine has names for.
    """

    source: str
    dest: str
    entry: Input
    answer: Answer
    wrong: bool
    actions: tuple[str, ...]

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
    machine, wrong, declared = report.learned.machine, report.comparison.wrong, EDITIONS[report.edition]
    heads: dict[int, str] = {0: declared.initial.name}
    heads |= report.comparison.heads if not report.sight.head else {}
    waiting = [0]
    for state in waiting:
        for entry, (answer, after) in machine.steps[state].items():
            ends = entry.ends or bool(answer.died)
            if after not in heads and not ends:
                heads[after] = answer.head or heads[state]
            if after not in waiting and not ends:
                waiting.append(after)
            if entry.call:
                dest, actions = "" if ends else heads[after], _actions(declared, entry, answer)
                yield _Taken(heads[state], dest, entry, answer, (state, entry) in wrong, actions)


def _actions(machine: Machine, entry: Input, answer: Answer) -> tuple[str, ...]:
    """The actions of an answer, and its adoption, which no allocator sees."""
    names = [name.partition(",")[0] for name in answer.did]
    adopts = entry.does == "adopt" and not answer.refused
    adopted = [f"adopt_{entry.side}"] if adopts else []
    return tuple(name for name in (*names, *adopted) if name in machine.actions)


def _drawing(report: LearnReport, taken: list[_Taken]) -> tuple[Drawing, frozenset[str]]:
    """The drawing, and the identifiers of what is as declared."""
    machine = EDITIONS[report.edition]
    known = [head for head in machine.heads if any(head in (it.source, it.dest) for it in taken)]
    groups: dict[tuple[str, str], dict[str, list[_Taken]]] = {}
    noted: dict[str, list[_Taken]] = {}
    for it in taken:
        # An unknown head has no place, and neither has a loop at the first head.
        placed = {it.source, it.dest} <= set(machine.heads) and not it.source == it.dest == machine.initial.name
        if it.answer.refused or not placed:
            noted.setdefault(it.what, []).append(it)
        else:
            groups.setdefault((it.source, it.dest), {}).setdefault(str(it.entry), []).append(it)
    order = list(machine.heads)
    edges = tuple(
        Edge(source, dest, tuple(_line(machine, call, those) for call, those in calls.items()))
        for (source, dest), calls in sorted(groups.items(), key=lambda it: [order.index(name) for name in it[0]])
    )
    notes = tuple(_note(machine, those, known) for those in noted.values())
    covered = {_identifier(it) for it in taken} - {_identifier(it) for it in taken if it.wrong}
    title = f"Learned: {report.name}, beside the edition {report.edition}"
    return Drawing(machine, title, tuple(Node(head, head) for head in known), edges, notes), frozenset(covered)


def _identifier(it: _Taken) -> str:
    return f"{it.what} @ {it.source}"


def _identifiers(those: Iterable[_Taken]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_identifier, those)))


def _line(machine: Machine, call: str, those: list[_Taken]) -> Line:
    done = effect(machine, those)
    return Line(call, (done,) if done else (), kind_of(machine, those), _identifiers(those))


def _note(machine: Machine, those: list[_Taken], known: list[str]) -> Note:
    """A refusal, the end of a memory, the end of the port, or a call that cannot be drawn as an arrow."""
    first = those[0]
    heads = tuple(head for head in known if any(it.source == head for it in those))
    others = ", ".join(head for head in known if head not in heads)
    where = f"every head but {others}" if len(heads) > len(known) // 2 and others else "every head"
    where = where if len(heads) > len(known) // 2 else ", ".join(heads)
    done = effect(machine, those)
    if first.answer.died:
        result = first.answer.died
    elif first.answer.refused:
        result = "refused"
    elif first.entry.ends:
        result = f"{done or 'nothing'}, then the end"
    else:
        result = f"{done or 'nothing'}, the head is {first.dest}"
    final = first.entry.ends and not first.answer.refused and not first.answer.died
    return Note(f"{first.entry} in {where}: {result}", heads, final, _identifiers(those))
