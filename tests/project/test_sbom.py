"""The SBOM of a wheel has all that the wheel needs, as it is locked."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[2] / "requirements"
HASHES = (FOLDER / "hashes.txt").read_text(encoding="utf-8")
NOT_LOCKED = "cuda13"


@pytest.fixture
def sbom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Any]:
    """A function that makes the SBOM of our package, with a text in place of hashes.txt."""
    monkeypatch.syspath_prepend(str(FOLDER))  # pyright: ignore[reportUnknownMemberType] -- pytest does not declare it
    wheel = tmp_path / "syncedmem.whl"
    with ZipFile(wheel, "w") as files:
        files.writestr("syncedmem.dist-info/METADATA", str(metadata("syncedmem")))
    made = runpy.run_path(str(FOLDER / "sbom.py"))["sbom"]
    monkeypatch.delitem(sys.modules, "declared")
    return lambda hashes: made(wheel, hashes)


def wrong(document: Any) -> list[str]:
    """The direct requirements of the wheel whose component is missing, or is not as it is locked."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].items()
    lines = [*project["dependencies"], *(line for extra, more in extras if extra != NOT_LOCKED for line in more)]
    components = {component["name"]: component for component in document["components"]}
    names = {match[0].lower() for line in lines if (match := re.match(r"[\w-]+", line))}
    return sorted(name for name in names if name not in components or not _is_locked(components[name]))


def _is_locked(component: Any) -> bool:
    """Whether the block of hashes.txt has the version of a component, and its hashes and no others."""
    begin = f"\n{component['name']}=={component['version']}"
    block = f"\n{HASHES}".lower().partition(begin)[2].partition("\n\n")[0]
    digests = [item["content"] for file in component["externalReferences"] for item in file["hashes"]]
    locked = re.split(r"\n(?! )", block)[0]
    return bool(component["licenses"][0]["license"]["name"]) and digests == re.findall("[0-9a-f]{64}", locked)


def test_each_requirement_of_the_wheel_is_in_it_as_it_is_locked(sbom: Callable[[str], Any]) -> None:
    document = sbom(HASHES)

    assert [] == wrong(document)
    assert ("CycloneDX", "1.6") == (document["bomFormat"], document["specVersion"])
    assert json.dumps(document) == json.dumps(sbom(HASHES))


@pytest.mark.parametrize("part", ["version", "hash", "licence", "component"])
def test_a_difference_is_found(part: str, sbom: Callable[[str], Any]) -> None:
    document = sbom(HASHES)
    numpy = next(item for item in document["components"] if item["name"] == "numpy")
    if part == "version":
        numpy["version"] = "1.0"
    elif part == "hash":
        numpy["externalReferences"][0]["hashes"][0]["content"] = "0" * 64
    elif part == "licence":
        numpy["licenses"][0]["license"]["name"] = ""
    else:
        document["components"].remove(numpy)

    assert ["numpy"] == wrong(document)


def test_what_the_lock_lacks_is_refused(sbom: Callable[[str], Any]) -> None:
    with pytest.raises(SystemExit):
        sbom(HASHES.replace("\nnumpy==", "\nother=="))
