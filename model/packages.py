"""How to install what an optional feature needs: by the names of the libraries, which work wherever the user is.

No index may be assumed to have a package called syncedmem, so to advise an extra of it helps nobody.
The extras of ``pyproject.toml`` have the same names; a test compares both.  It is here, though it is not about the
machine, because ``errors`` say what to install, and every room raises those.
"""

from __future__ import annotations

import platform
import shlex
import sys
from typing import Final

__all__ = ["LIBRARIES", "install"]

LIBRARIES: Final[dict[str, tuple[str, ...]]] = {
    "cli": ("hypothesis", "rich", "typer"),
    "kit": ("hypothesis",),
    "opencl": ("mako", "pyopencl", "pocl-binary-distribution"),
    "proto": ("protobuf",),
    "cuda12": ("cupy-cuda12x[ctk]",),
    "cuda13": ("cupy-cuda13x[ctk]",),
    "exports": ("jinja2",),
    "pictures": ("cairosvg",),
    "rmm": ("rmm-cu12",),
    "numba": ("numba-cuda", "cuda-bindings"),
    "cuda-core": ("cuda-core",),
    "proofs": ("z3-solver",),
    "warp": ("warp-lang",),
}
"""The libraries of each extra."""

_ONLY_ON = {"pocl-binary-distribution": ("linux", "x86_64")}
"""Libraries that are made for one kind of machine."""


def install(extra: str) -> str:
    """The command that installs what the extra stands for, on this kind of machine.

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
