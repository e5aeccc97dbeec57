"""Stops a build from a checkout whose links are text files; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
BROKEN = [room for room in ("model", "runtime", "spec") if not (HERE / "src" / "syncedmem" / room).is_dir()]

if BROKEN:
    raise SystemExit(
        f"syncedmem: src/syncedmem/{{{','.join(BROKEN)}}} should be links to directories, but this checkout has "
        "none (git made text files of them, or they are missing). "
        "Run: git config core.symlinks true; git checkout -- src/syncedmem"
    )

setup()
