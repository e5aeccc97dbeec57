"""What was measured: the options that say where it goes, a table of it, and a file."""

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
    """The parser of a benchmark, which begins with what all of them have; `doc` is that of its module."""
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
    """Print the rows and what they were measured on, with `more` about it; and write them to a file, if given."""
    about = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()} | (more or {})
    print(f"Python {about['python']}, NumPy {about['numpy']}, {about['machine']}{note}")
    print("\n".join(map(show, rows)))
    if path is not None:
        path.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n", encoding="utf-8")
