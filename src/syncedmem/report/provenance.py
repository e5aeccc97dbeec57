"""Where a report comes from: when, on which machine, with which versions, and how to make it again.

It names the host and its processor, and no user: see also `syncedmem.report.document.homeless`.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from platform import machine, node, python_version
from platform import platform as system
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import syncedmem
from syncedmem.model.packages import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Provenance", "commit", "libraries", "processor"]

_ROOT = Path(syncedmem.__file__).parents[2]
_CPU = Path("/proc/cpuinfo")
_PATIENCE = 10
"""In seconds, for git."""


@cache
def libraries() -> Mapping[str, str]:
    """The versions of the libraries that are needed, and of the optional ones that are installed."""
    optional = {it.partition("[")[0] for names in LIBRARIES.values() for it in names}
    found: dict[str, str] = {}
    for name in ("numpy", "scipy", "transitions", *sorted(optional)):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return MappingProxyType(found)


def processor(info: Path = _CPU) -> str:
    """The name of the processor, as the system gives it, and how many there are."""
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else machine()}, {os.cpu_count()} logical processors"


@cache
def commit(root: Path = _ROOT) -> str:
    """The commit of a checkout, and whether files differ from it; empty if it is no checkout."""
    if not (root / ".git").exists():
        return ""
    found = _git(root, "rev-parse", "--short=12", "HEAD")
    return found and found + (" with changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def _git(root: Path, *words: str) -> str:
    """What git says; empty if there is none, or it refuses."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE)  # noqa: S603 -- our own words
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@dataclass(frozen=True)
class Provenance:
    """Where a report comes from.

    Attributes
    ----------
    seeds : tuple of int
        With the same seeds and settings, the same is tested.
    settings : dict of str to str
        What else the run was told.
    again : str
        The command that makes the run again.
    seconds : float
        How long the run took.
    date : str
        In UTC.
    host, processor, platform, python : str
    libraries : dict of str to str
        Versions.
    commit : str
        Of the checkout; empty if the package was installed.
    syncedmem : str
        The version of this package.
    """

    seeds: tuple[int, ...]
    settings: dict[str, str]
    again: str
    seconds: float
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    host: str = field(default_factory=node)
    processor: str = field(default_factory=processor)
    platform: str = field(default_factory=system)
    python: str = field(default_factory=python_version)
    libraries: Mapping[str, str] = field(default_factory=libraries)
    commit: str = field(default_factory=commit)
    syncedmem: str = syncedmem.__version__

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        plain = {"libraries": dict(self.libraries), "seeds": list(self.seeds), "seconds": round(self.seconds, 2)}
        return {**vars(self), **plain}
