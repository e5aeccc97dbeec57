"""Prints what pyproject.toml declares, in the format of ``pip install --requirement``.

=====================  ===========================================================================================
``declared.py EXTRA``  the dependencies, and those of the extras that are named
``--lowest``           the lower bound of every dependency, of all extras and of the build, as a version
``--rest``             constraints for all other packages: constraints.txt without those in --lowest or lowest.txt
=====================  ===========================================================================================
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEFT_OUT = "cuda13"  # its CuPy would replace that of cuda12; the tests of cuda12 count for both

# A requirement: a name, extras, the lower bound and other bounds, and a marker.
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[^\]]*\])?>=(?P<lowest>[\w.]+)[^;]*(?P<marker>;.*)?")


def lowest(requirement: str) -> str:
    """The lower bound as a version; extras are left out, because they add other packages."""
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        sys.exit(f"pyproject.toml: {requirement!r} has no lower bound")
    return f"{found['name']}=={found['lowest']}{found['marker'] or ''}"


def name_of(line: str) -> str:
    """The name at the beginning of a requirement, normalised for comparisons."""
    found = re.match(r"[\w.-]+", line)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def main(arguments: list[str]) -> list[str]:
    """The lines to print."""
    pyproject: dict[str, Any] = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    if arguments not in (["--lowest"], ["--rest"]):
        return [*project["dependencies"], *(line for extra in arguments for line in extras[extra])]
    optional = [line for extra, lines in extras.items() if extra != LEFT_OUT for line in lines]
    declared = [*pyproject["build-system"]["requires"], *project["dependencies"], *optional]
    if arguments == ["--lowest"]:
        return [lowest(line) for line in declared]
    decided = [line for line in (HERE / "lowest.txt").read_text(encoding="utf-8").splitlines() if "==" in line]
    known = {name_of(line) for line in (*declared, *decided)}
    constraints = (HERE / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in constraints if name_of(line) not in known]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in main(sys.argv[1:]))
