"""Makes the mutants of a file: copies that differ from it in one place.

Most operators are mutmut's.  The operators below are ours: mutmut removes no statement, no ``with`` and no result, and
negates no condition.  mutmut's own runner is not used, see ``mutation.py``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import islice, takewhile, zip_longest
from types import CodeType
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_assignment, operator_string

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Mutant", "mutants", "same"]

# What means nothing when the program runs, or what cannot fail a test.
_SKIPPED = (
    m.Annotation()
    | m.Import()
    | m.ImportFrom()
    | m.If(test=m.Name("TYPE_CHECKING"))
    | m.Assign(targets=[m.AssignTarget(m.Name("__all__") | m.Name("__slots__"))])
    | m.Call(func=m.Name("TypeVar") | m.Name("ParamSpec"))
    | m.FunctionDef(decorators=[m.Decorator(m.Name("overload"))])
    | m.FunctionDef(decorators=[m.Decorator(m.Name("abstractmethod"))])
)
_FALSE = m.Name("None") | m.Name("False") | m.SimpleString('""')  # None in its place means the same nearly always
_CAST = m.Call(func=m.Name("cast"))
_ASSIGNS_FALSE = m.Assign(value=_FALSE) | m.AnnAssign(value=_FALSE)
_KEEPS_ARGUMENTS = m.Call(func=m.Name("len") | m.Name("isinstance") | m.Name("cast"))  # with others they always raise
_SWAPPED_TO_OPPOSITE = m.Equal() | m.NotEqual() | m.Is() | m.IsNot() | m.In() | m.NotIn()
_SWAPPED = m.Comparison(comparisons=[m.ComparisonTarget(_SWAPPED_TO_OPPOSITE)])
_NEGATED_BY_MUTMUT = m.UnaryOperation(operator=m.Not()) | _SWAPPED


@dataclass(frozen=True)
class Mutant:
    """A copy of a file that differs in one place.

    Attributes
    ----------
    key : str
        The same for the same change to the same function, wherever that is in the file.
    lines : range
        The lines of the original that are changed.
    where : str
        The class and function that is changed; empty outside of them.
    was, now : str
        The lines that differ, without indentation.
    text : str
        The whole file.
    """

    key: str
    lines: range
    where: str
    was: str
    now: str
    text: str


def mutants(source: str, name: str = "<mutant>") -> list[Mutant]:
    """All mutants of a file that compile, and to something else."""
    original = compile(source, name, "exec")
    wrapper = MetadataWrapper(cst.parse_module(source))
    finder = _Finder()
    wrapper.visit(finder)
    module = wrapper.module
    parts = [module.code_for_node(it) for it in (*module.header, *module.body, *module.footer)]
    found: dict[str, Mutant] = {}
    units: dict[cst.CSTNode, str] = {}
    for change in finder.found:
        index = len(module.header) + module.body.index(change.statement)
        changed = change.statement.deep_replace(change.node, change.replacement)
        assert isinstance(changed, cst.CSTNode)
        text = "".join([*parts[:index], module.code_for_node(changed), *parts[index + 1 :]])
        if text not in found and not _means(text, name, original):
            first, was, now = _difference(source, text)
            lines = range(min(first, change.place.start.line), change.place.end.line + 1)
            unit = units.setdefault(change.unit, "") or module.code_for_node(change.unit).strip()
            units[change.unit] = unit
            key = hashlib.sha256("\0".join((unit, str(change.offset), was, now)).encode()).hexdigest()[:16]
            found[text] = Mutant(key, lines, change.where, was, now, text)
    return list(found.values())


def _means(text: str, name: str, original: CodeType) -> bool:
    """Whether a mutant does not compile, or means the same as the original."""
    try:
        return same(compile(text, name, "exec"), original)
    except SyntaxError:
        return True


def same(one: CodeType, other: CodeType) -> bool:
    """Whether two pieces of code do the same, wherever their lines are."""
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_exceptiontable")
    return all(getattr(one, it) == getattr(other, it) for it in parts) and all(
        same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else repr(a) == repr(b)
        for a, b in zip_longest(one.co_consts, other.co_consts)
    )


def _difference(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and the lines that differ."""
    a, b = old.splitlines(), new.splitlines()
    start = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))
    rest = zip(reversed(a[start:]), reversed(b[start:]), strict=False)
    end = len(list(takewhile(lambda pair: pair[0] == pair[1], rest)))
    was, now = (" ".join(line.strip() for line in lines[start : len(lines) - end]) for lines in (a, b))
    return start + 1, was, now


@dataclass(frozen=True)
class _Change:
    node: cst.CSTNode
    replacement: cst.CSTNode
    statement: cst.SimpleStatementLine | cst.BaseCompoundStatement  # of the module
    unit: cst.CSTNode  # the function, or the statement of the module
    offset: int
    where: str
    place: CodeRange


class _Finder(cst.CSTVisitor):
    """Finds every change that an operator makes."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Change] = []
        self._statement: cst.SimpleStatementLine | cst.BaseCompoundStatement | None = None
        self._scopes: list[cst.FunctionDef | cst.ClassDef] = []
        self._skipped: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if m.matches(node, _SKIPPED) or node in self._skipped:
            return False
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement) and self._statement is None:
            self._statement = node
        if isinstance(node, cst.Call) and m.matches(node, _CAST):
            self._skipped.append(node.args[0])
        for replacement in _replacements(node):
            self._note(node, replacement)
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._scopes.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self._scopes and self._scopes[-1] is original_node:
            self._scopes.pop()
        if self._statement is original_node:
            self._statement = None

    def _note(self, node: cst.CSTNode, replacement: cst.CSTNode) -> None:
        place = self.get_metadata(PositionProvider, node)
        assert self._statement is not None
        assert isinstance(place, CodeRange)
        functions = [it for it in self._scopes if isinstance(it, cst.FunctionDef)]
        unit = functions[-1] if functions else self._statement
        begin = self.get_metadata(PositionProvider, unit)
        assert isinstance(begin, CodeRange)
        where = ".".join(it.name.value for it in self._scopes)
        offset = place.start.line - begin.start.line
        self.found.append(_Change(node, replacement, self._statement, unit, offset, where, place))


def _replacements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What stands in place of a node in a mutant."""
    for kind, operator in mutation_operators:
        if operator is operator_arg_removal and m.matches(node, _KEEPS_ARGUMENTS):
            continue
        if operator is operator_assignment and m.matches(node, _ASSIGNS_FALSE):
            continue
        if isinstance(node, kind):
            # Of a text mutmut also makes one in capitals, and one without; these tell no more.
            yield from islice(operator(node), 1 if operator is operator_string else None)
    if isinstance(node, cst.Raise | cst.Del) or m.matches(node, m.Expr(m.Call() | m.Await() | m.Yield())):
        yield cst.Pass()
    if isinstance(node, cst.Return) and node.value is not None and not m.matches(node.value, _FALSE):
        yield node.with_changes(value=cst.Name("None"))
    if isinstance(node, cst.If | cst.While | cst.CompIf) and not m.matches(node.test, _NEGATED_BY_MUTMUT):
        inner = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), inner))
    if isinstance(node, cst.With):
        yield from _without(node)


def _without(node: cst.With) -> Iterator[cst.CSTNode]:
    """A ``with`` without one of its managers."""
    items: Sequence[cst.WithItem] = node.items
    for index, item in enumerate(items):
        if item.asname is None and len(items) > 1:
            rest = [*items[:index], *items[index + 1 :]]
            yield node.with_changes(items=[*rest[:-1], rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        elif item.asname is None:
            yield cst.If(test=cst.Name("True"), body=node.body)
