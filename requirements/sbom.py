"""Writes what a wheel needs as an SBOM in CycloneDX: ``python requirements/sbom.py dist/X.whl``.

A component is a package that the wheel needs, with an extra or without, or that such a package needs on this platform.
What only others need and is not locked, such as the parts of a CUDA toolkit, is named as left out.
Its version and its hashes are those of hashes.txt, and its licence is that of the installed package.  The same files
give the same bytes: there is no date, and the serial number follows from the contents.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import metadata as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from declared import LEFT_OUT, name_of
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from email.message import Message

HASHES = Path(__file__).parent / "hashes.txt"
LICENCES = {"pocl-binary-distribution": "MIT"}
"""Of packages whose metadata name none: PoCL's file COPYING is the MIT licence."""

_PACKAGE = re.compile(r"^([\w.-]+)==([^\s;]+)[^\n]*\n((?: +--hash=sha256:[0-9a-f]{64}.*\n)+)", re.MULTILINE)


def locked(text: str) -> dict[str, tuple[str, list[str]]]:
    """The version and the hashes of each package, by its name."""
    return {
        name_of(name): (version, re.findall("[0-9a-f]{64}", hashes)) for name, version, hashes in _PACKAGE.findall(text)
    }


def needed(wheel: Path, lock: Collection[str]) -> tuple[Message, list[str], list[str]]:
    """The metadata of a wheel, the packages that it needs with any extra, and what these need and is not locked."""
    with ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        about = HeaderParser().parsestr(files.read(name).decode())
    extras = {extra for extra in about.get_all("Provides-Extra", []) if extra != LEFT_OUT}
    left = [*_applying(about.get_all("Requires-Dist", []), extras)]
    if missing := sorted({name_of(requirement.name) for requirement in left} - {*lock}):
        sys.exit(f"hashes.txt lacks {', '.join(missing)}: make requirements/hashes.txt")
    found, others = dict[str, set[str]](), set[str]()
    while left:
        requirement = left.pop()
        name = name_of(requirement.name)
        if name not in lock:
            others.add(name)
        elif name not in found or not requirement.extras <= found[name]:
            found[name] = found.get(name, set()) | requirement.extras
            left += _applying(_requirements(name), found[name])
    return about, sorted(found), sorted(others)


def _applying(texts: Iterable[str], extras: set[str]) -> Iterable[Requirement]:
    """Those requirements that this platform has, with one of the extras or with none."""
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        sys.exit(f"{name} is not installed, so nobody knows its licence: make environment")


def licence(name: str) -> str:
    """The licence of an installed package: an expression, or what stands in its place in older metadata."""
    about: Any = installed(name)  # the type of it has no `get`, and without that a field that is missing is an error
    classes = [text.rsplit(" :: ", 1)[1] for text in about.get_all("Classifier", []) if text.startswith("License ::")]
    stated = about.get("License-Expression") or about.get("License", "").split("\n")[0] or " AND ".join(classes)
    if not (stated or name in LICENCES):
        sys.exit(f"{name} does not say its licence: name it in LICENCES")
    return stated or LICENCES[name]


def sbom(wheel: Path, hashes: str) -> dict[str, Any]:
    """What the wheel needs, in CycloneDX 1.6; a package that is not locked is an error."""
    lock = locked(hashes)
    about, names, others = needed(wheel, lock)
    components = [_component(name, *lock[name]) for name in names]
    root = {"type": "library", "bom-ref": wheel.name, "name": about["Name"], "version": about["Version"]}
    told = json.dumps([root, components, others])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, told)}",
        "version": 1,
        "metadata": {
            "component": root | {"licenses": [{"license": {"name": about.get("License-Expression")}}]},
            "properties": [{"name": "syncedmem:not-locked", "value": name} for name in others],
        },
        "components": components,
    }


def _component(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    """A package; its files are references, because a component has one hash of a kind and a package has many files."""
    purl = f"pkg:pypi/{name}@{version}"
    files = [
        {"type": "distribution", "url": purl, "hashes": [{"alg": "SHA-256", "content": digest}]} for digest in hashes
    ]
    licences = [{"license": {"name": licence(name)}}]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": licences,
        "purl": purl,
        "externalReferences": files,
    }


def main(wheel: Path) -> None:
    """Write the SBOM beside the wheel."""
    text = json.dumps(sbom(wheel, HASHES.read_text(encoding="utf-8")), indent=2)
    wheel.with_suffix(".cdx.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
