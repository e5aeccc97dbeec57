"""The package contains what the checkout contains, and a checkout without links says how to repair it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import pytest
from programs import program

import syncedmem

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "syncedmem"
ROOMS = ("model", "runtime", "spec")


def packages_below(source: Path) -> set[str]:
    """Return the packages below ``source``: the folders that contain Python files."""
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
    """Make a checkout that is as small as possible, without the links and without files in their place."""
    package = tmp_path / "src" / "syncedmem"
    package.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", package)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CITATION.cff", "src/README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    folders = (
        *(ROOT / room for room in ROOMS),
        *(path for path in PACKAGE.iterdir() if path.is_dir() and not path.is_symlink()),
    )
    for package in (found for folder in folders for found in folder.rglob("__init__.py")):
        copy = tmp_path / package.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    return tmp_path


def test_links_are_relative() -> None:
    assert {room: (PACKAGE / room).readlink() for room in ROOMS} == {room: Path("../..", room) for room in ROOMS}


@pytest.mark.deep
def test_checkout_with_links_builds(checkout: Path) -> None:
    make_links(checkout)
    done = run_setup(checkout)
    assert done.returncode == 0, done.stderr
    assert (checkout / "syncedmem.egg-info").is_dir()


def make_links(checkout: Path) -> None:
    for room in ROOMS:
        (checkout / "src" / "syncedmem" / room).symlink_to(f"../../{room}")


def advice_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the command in the one-line message of a build that stopped."""
    assert (1, "") == (done.returncode, done.stdout)
    (message,) = done.stderr.splitlines()
    return message.partition("In the directory of setup.py, run: ")[2]


@pytest.mark.deep
@pytest.mark.parametrize("left", ["text", "nothing"])
@pytest.mark.parametrize("broken", [("spec",), ROOMS])
def test_what_an_archive_without_links_is_told_helps(checkout: Path, broken: tuple[str, ...], left: str) -> None:
    """Some programs unpack a link as a text file, others leave it out. There is no git in an archive."""
    make_links(checkout)
    for path in (checkout / "src" / "syncedmem" / room for room in broken):
        path.unlink()
        if left == "text":
            path.write_text(f"../../{path.name}", encoding="utf-8")

    done = run_setup(checkout)
    advice = advice_of(done)

    assert f"src/syncedmem/{{{','.join(broken)}}}" in done.stderr
    assert "git" not in advice
    subprocess.run(["sh", "-c", advice], cwd=checkout, check=True)
    assert 0 == run_setup(checkout).returncode
    assert {room: (checkout / "src" / "syncedmem" / room).readlink() for room in ROOMS} == {
        room: Path("../..", room) for room in ROOMS
    }


@pytest.mark.deep
def test_what_a_repository_without_links_is_told_helps(checkout: Path) -> None:
    def git(*words: str) -> None:
        names = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid")
        subprocess.run([program("git"), *names, *words], cwd=checkout, check=True)

    make_links(checkout)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "all")
    git("config", "core.symlinks", "false")
    for room in ROOMS:
        (checkout / "src" / "syncedmem" / room).unlink()
    git("checkout", "--quiet", "--", "src/syncedmem")

    advice = advice_of(run_setup(checkout))

    assert advice.startswith("git ")
    subprocess.run(["sh", "-c", advice], cwd=checkout, check=True, capture_output=True)
    assert 0 == run_setup(checkout).returncode


def test_packages_are_those_in_the_source() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = pyproject["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(packages_below(PACKAGE.parent))


def test_version_is_the_installed_one_and_has_an_entry_in_the_changelog() -> None:
    assert syncedmem.__version__ == version("syncedmem")
    assert has_entry((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), syncedmem.__version__)


def test_the_stand_in_for_cuda_is_built_from_the_version_of_cupy_that_is_tested() -> None:
    """Its module replaces the module of the wheel."""
    pins = dict(
        re.findall(r"^(cupy\S*)==(\S+)$", (ROOT / "requirements" / "constraints.txt").read_text(), re.MULTILINE)
    )

    assert pins["cupy"] == pins["cupy-cuda12x"]


def links_of(page: str) -> list[str]:
    """Return the targets of links and pictures that are not web addresses."""
    return [target for target in re.findall(r"\]\(([^)]+)\)", page) if not re.match(r"https?://|#", target)]


def test_the_page_of_the_package_has_no_links_into_the_repository() -> None:
    """Package indexes show this page, and they do not have the repository."""
    page = (ROOT / "src" / "README.md").read_text(encoding="utf-8")
    assert [] == links_of(page)
    assert page == metadata("syncedmem")["Description"]


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert {f"version: {syncedmem.__version__}", "license: BSD-2-Clause"} <= set(citation)
