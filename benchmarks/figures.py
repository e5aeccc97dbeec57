"""The frame of a benchmark: the options for its output, a table of the figures, and a file with them."""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["options_of", "publish"]


def options_of(doc: str | None) -> argparse.ArgumentParser:
    """A parser for a benchmark, with the options that all of them have; `doc` is the docstring of its module."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser


def publish(
    rows: list[dict[str, Any]],
    show: Callable[[dict[str, Any]], str],
    path: Path | None,
    note: str = "",
    more: dict[str, str] | None = None,
) -> None:
    """Print the rows, and the machine with `more` about it; write them to a file, if one is given."""
    about = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()} | (more or {})
    print(f"Python {about['python']}, NumPy {about['numpy']}, {about['machine']}{note}")
    print("\n".join(map(show, rows)))
    if path is not None:
        path.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n", encoding="utf-8")
