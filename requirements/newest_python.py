"""Prints the newest Python of this machine that has another version than the one that runs this script.

It looks where the system and where version managers install Python.  If there is none, it says so; that is no error.
It skips free-threaded and unfinished releases, because few libraries have wheels for them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROGRAM = re.compile(r"python3\.\d+")

# Folders below the home directory, unless the environment variable of the version manager names another one.
MANAGERS = {
    "pyenv": ("PYENV_ROOT", ".pyenv", "versions/*/bin"),
    "uv": ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "*/bin"),
    "asdf": ("ASDF_DATA_DIR", ".asdf", "installs/python/*/bin"),
    "mise": ("MISE_DATA_DIR", ".local/share/mise", "installs/python/*/bin"),
    "conda": ("CONDA_ROOT", "miniconda3", "envs/*/bin"),
}
SYSTEM = ("/usr/local/bin", "/opt/python/*/bin")

# The program that a Python runs to tell its version, and whether it can make environments.
QUESTION = """
import ensurepip, json, sys, sysconfig, venv
finished = sys.version_info.releaselevel == "final" and not sysconfig.get_config_var("Py_GIL_DISABLED")
print(json.dumps([*sys.version_info[:3], finished and sys.implementation.name == "cpython"]))
"""


def directories(environment: dict[str, str]) -> list[Path]:
    """The paths where a Python may be."""
    home = Path(environment.get("HOME", "/"))
    found = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep) if entry]
    for variable, default, pattern in MANAGERS.values():
        root = Path(environment[variable]) if variable in environment else home / default
        found += sorted(root.glob(pattern))
    for pattern in SYSTEM:
        found += sorted(Path("/").glob(pattern[1:]))
    return [path for path in dict.fromkeys(found) if path.is_dir() and os.access(path, os.R_OK)]


def version_of(program: Path) -> tuple[int, ...] | None:
    """The version; None if it does not start (as some of pyenv), cannot make environments, or is to be skipped."""
    try:
        done = subprocess.run([program, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 -- found on this machine by its name
        *version, usable = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return tuple(version) if usable else None


def found(environment: dict[str, str]) -> dict[Path, tuple[int, ...] | None]:
    """Every Python of this machine, with its version."""
    there = (path for folder in directories(environment) for path in folder.iterdir())
    programs = {path.resolve(): path for path in there if PROGRAM.fullmatch(path.name)}
    return {path: version_of(path) for path in programs.values()}


def newest(versions: dict[Path, tuple[int, ...] | None], lowest: tuple[int, ...]) -> Path | None:
    """The newest Python of another version than ours, which must be at least `lowest`."""
    fit = {path: version for path, version in versions.items() if version is not None and version >= lowest}
    others = {path: version for path, version in fit.items() if version[:2] != sys.version_info[:2]}
    return max(others, key=lambda path: others[path], default=None)


def main(environment: dict[str, str]) -> None:
    """Print the path of that Python, or what was skipped."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bound: str = project["requires-python"]
    versions = found(environment)
    python = newest(versions, tuple(map(int, bound.removeprefix(">=").split("."))))
    if python is not None:
        print(python)
        return
    print(f"No other Python {bound} than {sys.version.split()[0]} was found.  Skipped:", file=sys.stderr)
    for path, version in sorted(versions.items()):
        said = "does not start, or is no finished CPython that can make environments"
        print(f"  {path}: {said if version is None else '.'.join(map(str, version))}", file=sys.stderr)


if __name__ == "__main__":
    main(dict(os.environ))
