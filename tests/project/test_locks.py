"""Locks are taken by ``with``, or inside the ``try`` that releases them: an interrupt comes right after any call."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELD_OVER_A_FORK = "Locks._take"
"""The one place that only notes a lock, before it is taken: what comes after the fork releases it."""


def unguarded(source: str) -> list[str]:
    """Each function that takes a lock elsewhere."""
    found = list[str]()

    def visit(node: ast.AST, where: str, guarded: bool) -> None:
        name = f"{where}.{node.name}".strip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else where
        if isinstance(node, ast.Try):
            releases = any(_is_call(part, "release") for final in node.finalbody for part in ast.walk(final))
            for statement in node.body:
                visit(statement, name, guarded or releases)
            for other in (*node.handlers, *node.orelse, *node.finalbody):
                visit(other, name, guarded)
            return
        if _is_call(node, "acquire") and not guarded:
            found.append(name)
        for part in ast.iter_child_nodes(node):
            visit(part, name, guarded)

    visit(ast.parse(source), "", guarded=False)
    return found


def _is_call(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def test_no_interrupt_comes_between_a_lock_and_its_release() -> None:
    files = [path for room in ("model", "runtime", "spec", "src") for path in (ROOT / room).rglob("*.py")]
    found = [(path.name, name) for path in files for name in unguarded(path.read_text(encoding="utf-8"))]
    assert [("forking.py", HELD_OVER_A_FORK)] == found


@pytest.mark.parametrize(
    ("body", "bad"),
    [
        ("    with lock:\n        pass", False),
        ("    try:\n        lock.acquire()\n    finally:\n        lock.release()", False),
        ("    lock.acquire()\n    try:\n        pass\n    finally:\n        lock.release()", True),
        ("    if lock.acquire(False):\n        lock.release()", True),
    ],
)
def test_what_is_found(body: str, bad: bool) -> None:
    assert ["take"] * bad == unguarded(f"def take(lock):\n{body}\n")
