"""Modules of Python that a user names: by an import name, or by the path of a file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["module_at"]


def module_at(place: str) -> ModuleType:
    """The module of ``module`` or ``file.py``.  A file is imported once, whatever other module has its name.

    It may import what is in its folder, and a module may be in the present folder, as with ``python -m``.
    """
    path = Path(place).resolve()
    is_file = place.endswith(".py")
    folder = str(path.parent) if is_file else ""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if not is_file:
        return importlib.import_module(place)
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
