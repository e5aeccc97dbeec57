"""Stops a build from a tree without its links; the rest is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
BROKEN = [room for room in ("model", "runtime", "spec") if not (HERE / "src" / "syncedmem" / room).is_dir()]

if BROKEN:
    if (HERE / ".git").exists():
        advice = "git config core.symlinks true; git checkout -- src/syncedmem"
    else:  # an archive of the repository, unpacked by something that makes no links
        advice = f"ln -sf {' '.join(f'../../{room}' for room in BROKEN)} src/syncedmem/"
    raise SystemExit(
        f"syncedmem: src/syncedmem/{{{','.join(BROKEN)}}} should be links to directories, but they are text files or "
        f"missing. In the directory of setup.py, run: {advice}"
    )

setup()
