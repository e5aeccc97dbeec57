"""No test asserts only inside loops that may be empty; `some` of tests/support/loops.py says that a loop is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from loops import some

TESTS = sorted(Path(__file__).parents[1].rglob("test_*.py"))
THROUGH = {"enumerate", "items", "keys", "list", "product", "reversed", "sorted", "tuple", "values"}
"""Calls that give something if they get something."""


def is_certain(found: ast.expr, names: set[str]) -> bool:
    """Whether an iterable has items: a literal, a constant, a known name, or `some` of anything."""
    match found:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            known = any(not isinstance(it, ast.Starred) or is_certain(it.value, names) for it in parts)
        case ast.Name(id=name):
            known = name in names or name[0].isupper()
        case ast.BinOp(left=left, right=right):
            known = is_certain(left, names) or is_certain(right, names)
        case ast.Call(func=ast.Name(id="zip"), args=given):  # with strict=True, for which ruff asks
            known = any(is_certain(it, names) for it in given)
        case ast.Call(func=ast.Name(id=name), args=given):
            known = name in {"range", "some"} or (name in THROUGH and all(is_certain(it, names) for it in given))
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=given):
            known = name in THROUGH and all(is_certain(it, names) for it in given or [value])
        case _:
            known = isinstance(found, ast.Dict | ast.Constant | ast.IfExp)
    return known


def asserts(body: list[ast.stmt], names: set[str]) -> bool:
    """Whether something is certainly checked; any call whose result is not used may check something."""
    for step in body:
        match step:
            case ast.With(items=items):
                sure = "raises" in ast.unparse(items[0].context_expr) or asserts(step.body, names)
            case ast.For(iter=iterable):
                sure = is_certain(iterable, names) and asserts(step.body, names)
            case ast.If():
                sure = asserts(step.body, names) and asserts(step.orelse, names)
            case _:
                bare = isinstance(step, ast.Expr) and isinstance(step.value, ast.Call)
                sure = bare or isinstance(step, ast.Assert | ast.Try | ast.Match)
        if sure:
            return True
    return False


def hollow(text: str) -> list[str]:
    """The tests of a module that may assert nothing."""
    tests = [it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.FunctionDef) and it.name.startswith("test_")]
    return [it.name for it in tests if not asserts(it.body, known(it))]


def known(test: ast.FunctionDef) -> set[str]:
    """The arguments of a test, and what it calls a literal."""
    names = {argument.arg for argument in test.args.args}
    for step in ast.walk(test):
        if isinstance(step, ast.Assign | ast.AnnAssign) and step.value and is_certain(step.value, names):
            names.add(ast.unparse(step.targets[0] if isinstance(step, ast.Assign) else step.target))
    return names


@pytest.mark.parametrize("path", some(TESTS), ids=[path.stem for path in TESTS])
def test_every_test_asserts_something(path: Path) -> None:
    assert [] == hollow(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("loop", ["found()", "found().items()", "[*found()]", "enumerate(found())"])
def test_a_loop_that_may_be_empty_is_seen(loop: str) -> None:
    planted = f"def test_it():\n    number = 1\n    for it in {loop}:\n        assert it\n"

    assert ["test_it"] == hollow(planted)
    assert [] == hollow(planted.replace(loop, f"some({loop})"))
