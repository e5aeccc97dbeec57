"""The package `syncedmem.interop`: each library has the same two functions, and is imported at its first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

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
    program = "import sys; from syncedmem import interop; print({'rmm', 'cupy', 'numba', 'warp'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "set()\n" == done.stdout


@pytest.mark.parametrize(
    ("name", "library", "hint"),
    [
        ("rmm", "rmm.mr", r"^RMM is needed here: pip install rmm-cu12 "),
        ("cuda_core", "cuda.core", r"^cuda.core is needed here: pip install cuda-core "),
        ("numba", "numba.cuda", r"^Numba for CUDA is needed here: pip install numba-cuda cuda-bindings "),
        ("warp", "warp", r"^Warp is needed here: pip install warp-lang "),
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
