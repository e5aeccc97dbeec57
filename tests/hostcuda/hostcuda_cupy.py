"""Makes CuPy use hostcuda instead of CUDA: call `install` before CuPy is imported.

CuPy's wheel is linked to CUDA's runtime statically, so no library can replace the runtime.  Therefore one of its
extension modules was built again with hostcuda, and a finder of modules returns this one.  The wheel itself is not
changed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER = Path(__file__).parent
BINDING = "cupy_backends.cuda.api.runtime"


class HostCUDAFinder:
    """Finds CuPy's binding of the CUDA runtime in the folder of this file. It finds no other module."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name == "cupy":
            _prepare()
        if name != BINDING:
            return None
        return importlib.util.spec_from_file_location(name, FOLDER / f"runtime{sysconfig.get_config_var('EXT_SUFFIX')}")


def _prepare() -> None:
    """Load the libraries, so that CuPy finds them by their names, and give CuPy a separate folder for kernels.

    CUB, one of CuPy's accelerators, needs parts of the language that hostcuda does not have.
    """
    for library in ("libcuda.so.1", "libnvrtc.so.12"):
        ctypes.CDLL(str(FOLDER / library), ctypes.RTLD_GLOBAL)
    os.environ["CUPY_ACCELERATORS"] = ""
    os.environ["CUPY_CACHE_DIR"] = str(FOLDER / "kernels")


def install() -> None:
    """Make CuPy find hostcuda when it is imported."""
    sys.meta_path.insert(0, HostCUDAFinder)
