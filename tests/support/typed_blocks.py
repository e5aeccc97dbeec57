"""Checks the types of Python blocks in pages, as users' programs: ``python tests/support/typed_blocks.py PAGE...``.

Each block becomes a module, which mypy and pyright check in strict mode.  One more module is wrong on purpose: if a
checker does not report it, the checker has checked nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["blocks", "judged", "main"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "typed"
WRONG = "wrong_on_purpose"
SEEDED = "from syncedmem import SyncedMemory\n\nSyncedMemory(4).gpu_dataa()\n"
PYRIGHT = {"typeCheckingMode": "strict", "extraPaths": ["../../src"], "venvPath": "../..", "venv": ".venv"}


def blocks(page: Path) -> dict[str, str]:
    """Return the blocks of a page as modules. Names contain the first line; line numbers are those of the page."""
    text = page.read_text(encoding="utf-8")
    stem = "_".join(page.resolve().relative_to(ROOT).with_suffix("").parts).lower()
    found: dict[str, str] = {}
    for it in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, it.start(1)) + 1
        found[f"{stem}_{line}"] = "\n" * (line - 1) + it[1]
    return found


def judged(checker: str, output: str, error: str) -> list[str]:
    """Return the errors that a checker reports, found by an expression; it has to report the wrong module."""
    complaints = [(it[1], it[0]) for it in re.finditer(error, output, re.MULTILINE)]
    if WRONG not in {module for module, _ in complaints}:
        return [f"{checker} does not complain of what is wrong on purpose:\n{output}"]
    return [f"{checker}: {line.strip()}" for module, line in complaints if module != WRONG]


def _run(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main(pages: Sequence[str], run: Callable[..., str] = _run) -> int:
    """Print every error that is reported; return 1 if there is any."""
    modules = {name: block for page in pages for name, block in blocks(Path(page)).items()}
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name, block in {**modules, WRONG: SEEDED}.items():
        (FOLDER / f"{name}.py").write_text(block, encoding="utf-8")
    (FOLDER / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    complaints = [
        *judged("mypy", run("mypy", "--strict", "."), r"^(?:\./)?(\w+)\.py:\d+: error: .*$"),
        *judged("pyright", run("pyright"), r"^.*?(\w+)\.py:\d+:\d+ - error: .*$"),
    ]
    sys.stdout.writelines(f"{line}\n" for line in complaints)
    if not complaints:
        sys.stdout.write(f"mypy and pyright accept {len(modules)} blocks of {', '.join(pages)}\n")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
