"""Modules of Python that a user names, and what Python may import besides: nothing runs that was not named.

A folder that was downloaded may have a file ``transitions.py``, or ``cupy.py``.  So the folder of a target is the last
place where Python looks, it is one only from when the target is imported, and processes start without it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

__all__ = ["SAFE_PATH", "module_at", "safe_starts"]

SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable by which Python leaves the present folder out of its path."""


def module_at(place: str) -> ModuleType:
    """The module of ``module`` or ``file.py``.  A file is imported once, whatever other module has its name.

    It may import what is in its folder.  A module may be in the present folder, unless one of its name is installed.
    """
    if not place.endswith(".py"):
        _look_here_for(place.partition(".")[0])
        return importlib.import_module(place)
    path = Path(place).resolve()
    _look_in(path.parent)
    name = path.stem if path.stem not in sys.modules else f"{path.stem} of {path.parent}"
    for known in (sys.modules.get(path.stem), sys.modules.get(name)):
        if known is not None and getattr(known, "__file__", None) == str(path):
            return known
    description: Any = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(description)
    try:
        description.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _look_here_for(name: str) -> None:
    """Let Python look for a module in the present folder, if it is there and nowhere else."""
    here = Path.cwd()
    if name not in sys.modules and not importlib.util.find_spec(name) and PathFinder.find_spec(name, [str(here)]):
        _look_in(here)


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@contextmanager
def safe_starts() -> Generator[None]:
    """Have processes of Python that start meanwhile leave the present folder out of their path."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE_PATH]
        if before is not None:
            os.environ[SAFE_PATH] = before
