"""The package `syncedmem.interop`: each library has the same two functions, and is imported at its first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from interop_fixtures import library
from subjects import devices

from syncedmem import interop
from syncedmem.model import NoDeviceError


@pytest.mark.parametrize("name", interop.__all__)
def test_every_module_has_the_same_two_functions(name: str) -> None:
    """All have the same scheme; for a library that is not installed, the error says how to install it."""
    try:
        module = getattr(interop, name)
    except NoDeviceError as error:
        pytest.skip(str(error))

    assert module is importlib.import_module(f"syncedmem.runtime.interop.{name}")
    assert callable(module.from_resource)
    assert callable(module.as_resource)


def test_the_package_and_the_room_list_the_same_modules() -> None:
    """`syncedmem.interop` and the room list the same modules, and the page has a row for each of them."""
    assert importlib.import_module("syncedmem.runtime.interop").__all__ == interop.__all__
    folder = Path(__file__).parents[3]
    assert set(interop.__all__) <= {path.stem for path in (folder / "runtime" / "interop").glob("*.py")}
    page = (folder / "docs" / "interop.md").read_text(encoding="utf-8")
    assert [] == [name for name in interop.__all__ if f"\n| `{name}` |" not in page]


def test_an_unknown_library_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'umf'"):
        _ = interop.umf  # type: ignore[attr-defined]


@pytest.mark.deep
def test_importing_the_package_imports_no_library() -> None:
    program = """
import sys
before = {*sys.modules}
from syncedmem import interop
print({'rmm', 'cupy', 'cuda'} & {*sys.modules} - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "set()\n" == done.stdout


@pytest.mark.parametrize(
    ("name", "library", "hint"),
    [
        ("rmm", "rmm.mr", r"^RMM is needed here: pip install rmm-cu12 "),
        ("cuda_core", "cuda.core", r"^cuda.core is needed here: pip install cuda-core "),
    ],
)
def test_a_library_that_is_missing_is_named(
    name: str, library: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"syncedmem.runtime.interop.{name}", raising=False)
    monkeypatch.delitem(vars(importlib.import_module("syncedmem.runtime.interop")), name, raising=False)

    with pytest.raises(NoDeviceError, match=hint):
        getattr(interop, name)


LAST: dict[str, str] = {
    "rmm": """
np.late = interop.rmm.mr.PoolMemoryResource(interop.rmm.as_resource(CPUDeviceAllocator()), initial_pool_size=1 << 20)
np.block = interop.rmm.from_resource(np.late, device=None).allocate(1000)
""",
    "pyopencl": "np.late = interop.pyopencl.as_resource(named_device('opencl'))(1000)",
    # Arrays may still be read then, and libraries may be gone: neither their memory nor ours is given back.
    "foreign and exported": """
class Noisy(CPUDeviceAllocator):
    def release(self, ptr):
        print("released")
memory = ctypes.create_string_buffer(1000)
foreign = ForeignHostAllocator(Source("a heap", lambda size: (ctypes.addressof(memory), lambda: print("given back"))))
block, exported = foreign.allocate(1000), Exporter(Noisy()).export(1000)
ctypes.pythonapi.Py_IncRef(ctypes.py_object((block, exported)))
""",
}


@pytest.mark.deep
@pytest.mark.parametrize("name", LAST)
def test_what_is_the_last_to_go_goes_quietly(name: str) -> None:
    """When Python exits, nothing is printed, nothing calls an object that is gone, and nothing crashes."""
    if name in interop.__all__:
        library(name)
    if name == "pyopencl" and not any(device.name.startswith("opencl") for device in devices()):
        pytest.skip("there is no OpenCL here")
    program = """
import ctypes, gc, numpy as np
from syncedmem import CPUDeviceAllocator, interop, named_device
from syncedmem.runtime.interop.exporter import Exporter
from syncedmem.runtime.interop.foreign import ForeignHostAllocator
from syncedmem.runtime.interop.source import Source
"""
    command = [sys.executable, "-c", program + LAST[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
