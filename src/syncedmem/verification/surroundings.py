"""Where and when a report was made: the date, the host and its processor, the versions, and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import syncedmem
from syncedmem.model.packages import LIBRARIES

__all__ = ["commit", "processor", "surroundings"]

_ROOT = Path(syncedmem.__file__).resolve().parents[2]
_HANGS = 60
"""The limit for git, in seconds."""


def surroundings() -> dict[str, Any]:
    """The date in UTC, host, processor, platform, Python, the commit, and the libraries that are installed."""
    optional = {it.partition("[")[0] for names in LIBRARIES.values() for it in names}
    libraries: dict[str, str] = {}
    for name in ("numpy", "transitions", *sorted(optional)):
        try:
            libraries[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "processor": processor(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "commit": commit(),
        "libraries": libraries,
    }


def processor(info: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, as the system gives it, and how many there are."""
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} logical processors"


def commit(root: Path = _ROOT) -> str:
    """The commit of a checkout, and whether files differ from it; empty if the package was installed."""
    if not (root / ".git").exists():
        return ""
    name = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = name and _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{name} with changes" if changed else name


def _git(root: Path, *words: str) -> str:
    """What git says; empty if there is none, or it refuses."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_HANGS)  # noqa: S603 -- our own words
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
