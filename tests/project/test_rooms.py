"""The imports that import-linter cannot see: imports by a name, and modules that an import loads."""

import ast
import importlib.util
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "cupy", "hypothesis", "pyopencl"}
RUNTIME, SPEC = "syncedmem.runtime", "syncedmem.spec"
ROOMS = {"model": (RUNTIME, SPEC), "runtime": (SPEC,), "spec": (RUNTIME,)}
"""Every room, with the rooms that it must not import."""


def imported(source: str, package: str) -> set[str]:
    """Return the absolute names that a module of ``package`` imports, by statement or by a literal name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found.update({base, *(f"{base}.{alias.name}" for alias in node.names)})
        elif isinstance(node, ast.Call):
            found.update(importlib.util.resolve_name(name, package) for name in _imported_by_name(node))
    return found


def _imported_by_name(call: ast.Call) -> Iterator[str]:
    """Yield the literal name in ``import_module("a")``, ``importlib.import_module("a")`` or ``__import__("a")``."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if function in ("import_module", "__import__") and call.args and isinstance(call.args[0], ast.Constant):
        yield str(call.args[0].value)


def reaches(names: set[str], target: str) -> bool:
    """Return whether one of the names is the target or is inside it."""
    return any(name == target or name.startswith(f"{target}.") for name in names)


def importers(target: str, modules: dict[str, str]) -> set[str]:
    """Return the modules that import a target; they are given as paths with their source."""
    return {path for path, source in modules.items() if reaches(imported(source, package_of(path)), target)}


def package_of(path: str) -> str:
    return ".".join(("syncedmem", *Path(path).parts[:-1]))


def modules_below(*rooms: str) -> dict[str, str]:
    """Return the source of all modules of some rooms, by path from the top folder."""
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert paths
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def loaded_by(statement: str) -> set[str]:
    """Return the names in ``sys.modules`` after a statement in a new interpreter."""
    command = [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def everything() -> dict[str, str]:
    package = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "src" / "syncedmem").glob("*.py")}
    return package | modules_below(*ROOMS)


def declared_owners() -> dict[str, set[str]]:
    """Return each optional library with the modules that may import it, as ``pyproject.toml`` declares."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = (it for it in contracts if it["id"] == "devices-are-optional")
    owners: dict[str, set[str]] = {library: set() for library in contract["forbidden_modules"]}
    for importer, library in (line.split(" -> ") for line in contract["ignore_imports"]):
        owners[library].add(importer.removeprefix("syncedmem.").replace(".", "/") + ".py")
    return owners


@pytest.mark.parametrize(("library", "owners"), declared_owners().items())
def test_each_optional_library_is_imported_by_its_own_module(library: str, owners: set[str]) -> None:
    assert importers(library, everything()) == owners


def test_nothing_needs_the_adapters_but_the_package() -> None:
    inside = {path for path in everything() if path.startswith("runtime/interop/")}
    assert importers("syncedmem.runtime.interop", everything()) - inside == {"interop.py"}


@pytest.mark.parametrize(("room", "forbidden"), [(room, name) for room, names in ROOMS.items() for name in names])
def test_rooms_keep_to_themselves(room: str, forbidden: str) -> None:
    assert not importers(forbidden, modules_below(room))


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_the_model_imports_no_heavy_library(library: str) -> None:
    assert not importers(library, modules_below("model"))


@pytest.mark.deep
def test_importing_the_model_loads_no_heavy_library() -> None:
    assert not HEAVY & loaded_by("import syncedmem.model")


@pytest.mark.deep
def test_templates_alone_load_their_engine() -> None:
    assert "jinja2" not in loaded_by("from syncedmem.model.exports.formats import export; export('xstate')")
    assert "jinja2" in loaded_by("from syncedmem.model.exports.formats import export; export('c')")


@pytest.mark.deep
def test_a_heavy_library_is_seen_when_loaded() -> None:
    assert HEAVY & loaded_by("import syncedmem.model, numpy") == {"numpy"}


RUNNING = (
    "from syncedmem import *; from syncedmem.spec import Subject, check_blobs, check_conformance; "
    "subject = Subject('mine', SyncedMemory, CPUDeviceAllocator(), SimulatedDeviceAllocator()); "
    "check_conformance(subject, steps=0, suites=['cells']).require(); "
    "check_blobs(Subject('mine', Blob, subject.host, subject.device), steps=0, suites=['tables']).require(); "
    "from syncedmem.spec.fuzz import fuzz; fuzz(CPUDeviceAllocator, steps=500).require()"
)


@pytest.mark.deep
@pytest.mark.parametrize("statement", ["import syncedmem.spec, syncedmem.spec.fuzz", RUNNING], ids=["imported", "run"])
def test_who_does_not_ask_for_seeded_bugs_loads_none(statement: str) -> None:
    loaded = loaded_by(statement)

    assert "syncedmem.spec.memory.kit" in loaded
    assert not {name for name in loaded if name.partition(".")[0] == "mutants"}


def test_the_package_imports_no_seeded_bugs() -> None:
    """It does not contain them, so it could not."""
    assert not importers("mutants", modules_below(*ROOMS, "src"))
    assert importers("mutants", {"spec/wrong.py": "from mutants.memory import MEMORY_BUGS"})


@pytest.mark.deep
def test_who_asks_for_seeded_bugs_of_one_kind_loads_those() -> None:
    loaded = loaded_by("import mutants.allocator")
    kinds = {name for name in loaded if name.startswith("mutants.") and name.count(".") == 1}

    assert {"mutants.allocator", "mutants.registry"} == kinds


@pytest.mark.parametrize(
    "source",
    [
        "import cupy",
        "import os, cupy.cuda as device",
        "from cupy import cuda",
        "def late():\n    from cupy.cuda import Stream",
        "if TYPE_CHECKING:\n    import cupy",
        "import importlib\ncupy = importlib.import_module('cupy')",
        "from importlib import import_module\nimport_module('cupy.cuda')",
        "__import__('cupy')",
    ],
)
def test_an_import_of_a_library_is_seen(source: str) -> None:
    assert importers("cupy", {"runtime/wrong.py": source}) == {"runtime/wrong.py"}


@pytest.mark.parametrize(
    "source",
    [
        "import cupyx_like",
        "from .cupy import CuPyAllocator",
        "NAME = 'cupy'",
        "print('import cupy')",
        "find_spec('cupy')",
        "import_module(name)",
        "(lambda: 0)()",
    ],
)
def test_what_is_no_import_is_not_seen(source: str) -> None:
    assert not importers("cupy", {"runtime/wrong.py": source})


@pytest.mark.parametrize(
    "source",
    [
        "import syncedmem.runtime",
        "import syncedmem.runtime.memory.synced_memory as memory",
        "from syncedmem import runtime",
        "from syncedmem.runtime import SyncedMemory",
        "from .. import runtime",
        "from ..runtime.memory import SyncedMemory",
        "import_module('syncedmem.runtime.memory.synced_memory')",
        "import_module('..runtime', __package__)",
    ],
)
def test_an_import_of_another_room_is_seen(source: str) -> None:
    assert importers("syncedmem.runtime", {"spec/wrong.py": source}) == {"spec/wrong.py"}


def test_an_import_from_a_deeper_package_is_resolved() -> None:
    source = "from ...runtime import SyncedMemory"
    assert importers("syncedmem.runtime", {"spec/kit/wrong.py": source}) == {"spec/kit/wrong.py"}
    assert not importers("syncedmem.runtime", {"spec/kit/wrong.py": "from ..runtime import harness"})
