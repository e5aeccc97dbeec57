"""Prints which modules still import those that the open model replaces; they go with their last importer."""

from __future__ import annotations

import grimp
from rich import print as show

REPLACED = {
    "head": "caffe",
    "machine": "declaration and stepper",
    "compiled": "states",
    "soundness": "states",
    "dispatch": "states",
    "exploration": "states",
    "vocabulary": "the words themselves",
}


def main() -> None:
    """Print for each replaced module its importers, without those that are replaced themselves."""
    graph = grimp.build_graph("syncedmem")
    names = {f"syncedmem.model.{old}" for old in REPLACED}
    for old, new in REPLACED.items():
        importers = graph.find_modules_that_directly_import(f"syncedmem.model.{old}") - names
        show(f"[bold]model.{old}[/] (now {new}): {len(importers)}")
        for importer in sorted(importers):
            show(f"  {importer.removeprefix('syncedmem.')}")


if __name__ == "__main__":
    main()
