"""How to install what an optional feature needs: the names of the libraries, which are valid on every index.

An index may have no package called syncedmem, so a message that names an extra of it would not help.
The extras of ``pyproject.toml`` have the same names; a test compares both.  The module is not about the machine.  It is
in the model because ``errors`` say what to install, and every room raises those.
"""

from __future__ import annotations

import platform
import shlex
import sys
from typing import Final

__all__ = ["LIBRARIES", "install", "is_absent", "why"]

LIBRARIES: Final[dict[str, tuple[str, ...]]] = {
    "cli": ("hypothesis", "rich", "typer"),
    "kit": ("hypothesis",),
    "opencl": ("mako", "pyopencl", "pocl-binary-distribution"),
    "proto": ("protobuf",),
    "cuda12": ("cupy-cuda12x[ctk]",),
    "cuda13": ("cupy-cuda13x[ctk]",),
    "exports": ("jinja2", "cairosvg"),
    "rmm": ("rmm-cu12",),
    "cuda-core": ("cuda-core",),
    "learn": ("aalpy",),
    "cluster": ("distributed",),
}
"""The libraries of each extra."""

_ONLY_ON = {"pocl-binary-distribution": ("linux", "x86_64")}
"""Libraries that exist for one kind of machine only."""


_IMPORTED_AS = {"protobuf": "google"}
"""The modules of packages whose modules have other names."""


def why(error: Exception) -> str:
    """Why a library could not be imported, in one line: what it raised meanwhile, which may be anything.

    Of a longer message it is the first paragraph, because what follows is advice, which `install` gives.
    """
    name = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
    return name + " ".join(str(error).strip().partition("\n\n")[0].split())


def is_absent(package: str, error: Exception) -> bool:
    """Whether a package could not be imported because it is not installed; then `install` says all that is to say."""
    module = _IMPORTED_AS.get(package, package)
    return isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == module


def install(extra: str) -> str:
    """The command that installs the libraries of an extra on this kind of machine.

    Parameters
    ----------
    extra : str
        A key of `LIBRARIES`.

    Examples
    --------
    >>> install("cuda12")
    "pip install 'cupy-cuda12x[ctk]'"
    """
    here = (sys.platform, platform.machine())
    return shlex.join(("pip", "install", *(name for name in LIBRARIES[extra] if _ONLY_ON.get(name, here) == here)))
