"""Fails unless every symbol has a type that all type checkers agree on: ``python tests/support/complete_types.py``.

pyright tells which symbols have none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["incomplete", "main"]


def incomplete(report: dict[str, Any]) -> list[str]:
    """A line for each symbol that is not complete, and what pyright says of it."""
    symbols = report["typeCompleteness"]["symbols"]
    lines: list[str] = []
    for symbol in symbols:
        errors = [it["message"].splitlines()[0] for it in symbol["diagnostics"] if it["severity"] == "error"]
        if not symbol["isTypeKnown"]:
            lines.append(f"{symbol['name']}: {'; '.join(errors)}")
    return lines


def _verified() -> str:
    """What pyright says of the package of this environment; it asks the first ``python`` on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    command = [sys.executable, "-m", "pyright", "--verifytypes", "syncedmem", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    return done.stdout


def main(verified: Callable[[], str] = _verified) -> int:
    """Print what is not complete; 1 if there is anything."""
    report = json.loads(verified())
    names = {it["name"] for it in report["typeCompleteness"]["symbols"]}
    if "syncedmem.runtime.blobs.blob.Blob" not in names:
        sys.stdout.write("pyright has not found the package\n")
        return 1
    lines = incomplete(report)
    known = len(names) - len(lines)
    sys.stdout.writelines(f"{line}\n" for line in (*lines, f"{known} symbols have types; {len(lines)} have not"))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
