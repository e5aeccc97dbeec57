"""The package holds what the checkout holds, and a checkout without links says what to do."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import syncedmem

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "syncedmem"
ROOMS = ("model", "runtime", "spec")


def packages_below(source: Path) -> set[str]:
    """The packages that the directories below ``source`` make up: those with Python files in them."""
    return {
        ".".join(Path(directory).relative_to(source).parts)
        for directory, _, files in os.walk(source, followlinks=True)
        if any(name.endswith(".py") for name in files)
    }


def has_entry(changelog: str, version: str) -> bool:
    return re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE) is not None


def run_setup(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run ``setup.py`` as every build does first."""
    command = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", str(checkout)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout as small as one can be, still without anything where the links belong."""
    package = tmp_path / "src" / "syncedmem"
    package.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", package)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    folders = (*(ROOT / room for room in ROOMS), PACKAGE / "explorer")
    for package in (found for folder in folders for found in folder.rglob("__init__.py")):
        copy = tmp_path / package.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        copy.touch()
    return tmp_path


def test_links_are_relative() -> None:
    assert {room: (PACKAGE / room).readlink() for room in ROOMS} == {room: Path("../..", room) for room in ROOMS}


def test_checkout_with_links_builds(checkout: Path) -> None:
    for room in ROOMS:
        (checkout / "src" / "syncedmem" / room).symlink_to(f"../../{room}")
    done = run_setup(checkout)
    assert done.returncode == 0, done.stderr
    assert (checkout / "syncedmem.egg-info").is_dir()


@pytest.mark.parametrize("broken", [("spec",), ROOMS])
def test_checkout_without_links_says_what_to_do(checkout: Path, broken: tuple[str, ...]) -> None:
    for room in ROOMS:
        path = checkout / "src" / "syncedmem" / room
        if room in broken:
            path.write_text(f"../../{room}", encoding="utf-8")  # what git leaves where it cannot make links
        else:
            path.symlink_to(f"../../{room}")
    done = run_setup(checkout)
    assert done.returncode == 1
    assert done.stdout == ""
    (message,) = done.stderr.splitlines()
    assert f"src/syncedmem/{{{','.join(broken)}}}" in message
    assert "git config core.symlinks true; git checkout -- src/syncedmem" in message


def test_packages_are_those_in_the_source() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = pyproject["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(packages_below(PACKAGE.parent))


def test_a_forgotten_subpackage_is_seen(tmp_path: Path) -> None:
    (tmp_path / "room" / "new").mkdir(parents=True)
    (tmp_path / "room" / "new" / "module.py").touch()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "room").symlink_to("../room")
    assert "package.room.new" in packages_below(tmp_path)


def test_version_is_the_installed_one_and_has_an_entry_in_the_changelog() -> None:
    assert syncedmem.__version__ == version("syncedmem")
    assert has_entry((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), syncedmem.__version__)


@pytest.mark.parametrize("changelog", ["", "0.1.0", "## [0.1.01]", "## [0.10]", "## [Unreleased]"])
def test_a_version_without_an_entry_is_seen(changelog: str) -> None:
    assert not has_entry(changelog, "0.1.0")


def test_the_stand_in_for_cuda_is_in_no_package() -> None:
    """It is a tool of the tests: the package neither holds it nor knows of it."""
    modules = [Path(folder, name) for folder, _, names in os.walk(PACKAGE, followlinks=True) for name in names]
    sources = {path: path.read_text(encoding="utf-8") for path in modules if path.suffix == ".py"}

    assert PACKAGE / "runtime" / "cuda.py" in sources
    assert [] == [path for path in modules if "hostcuda" in path.name]
    assert [] == [path for path, source in sources.items() if "hostcuda" in source.lower()]
