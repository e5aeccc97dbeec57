"""Prints which modules still use what the open model replaces; it goes with its last user."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from rich import print as show

ROOMS = ("model", "runtime", "spec", "src")
REPLACED = {
    "head": "caffe",
    "machine": "declaration and stepper",
    "compiled": "states",
    "soundness": "states",
    "dispatch": "states",
    "exploration": "states",
}
STAYS = {"SyncedHead"}


def main() -> None:
    """Print for each replaced module who imports its names, without those that are replaced themselves."""
    owners = {
        name: old for old in REPLACED for name in import_module(f"syncedmem.model.{old}").__all__ if name not in STAYS
    }
    users: dict[str, set[str]] = {old: set() for old in REPLACED}
    files = [path for room in ROOMS for path in sorted(Path(room).rglob("*.py"))]
    for path in files:
        if path.parent.name == "model" and path.stem in REPLACED:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                asked = {alias.name for alias in node.names}
                tail = node.module.rpartition(".")[2]
                found = {owners[name] for name in asked if name in owners and tail == "model"}
                if tail in REPLACED and asked - STAYS:
                    found.add(tail)
                for old in found:
                    users[old].add(str(path))
    for old, new in REPLACED.items():
        show(f"[bold]model.{old}[/] (now {new}): {len(users[old])}")
        for user in sorted(users[old]):
            show(f"  {user}")


if __name__ == "__main__":
    main()
