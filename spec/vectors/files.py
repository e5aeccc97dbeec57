"""The files of vectors: one for each suite of each edition, a manifest of all, and the schema of a line."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tarfile
from collections import Counter
from io import BytesIO
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from syncedmem.model import EDITIONS
from syncedmem.model.files import write_whole

from .blobs import BLOB_SUITES
from .keys import schema
from .vector import ALL_SUITES, FORMAT, model_digest, vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from syncedmem.model import Machine

    from ..memory.policy import Policy

__all__ = ["MANIFEST", "SCHEMA", "archive", "compare", "folder_of", "suite_files", "write"]

MANIFEST, SCHEMA = "manifest.json", "vector.schema.json"


def suite_files(machine: Machine | None = None, policy: Policy | None = None) -> Iterator[tuple[str, str]]:
    """All files, one by one: the path of each in the folder, and its contents; the manifest is the last.

    Parameters
    ----------
    machine : Machine, optional
        Without one, the files of all of Caffe's editions.
    policy : Policy, optional
        As for `vectors`.

    Raises
    ------
    UnfitPolicyError
        As `vectors` does.
    """
    described: list[dict[str, Any]] = []
    machines = EDITIONS.values() if machine is None else (machine,)
    for it in machines:
        for name, suite in ALL_SUITES.items():
            lines = [*vectors(name, it, policy)]
            if not lines:
                continue
            text = "".join(f"{vector.line()}\n" for vector in lines)
            path = f"{folder_of(it)}/{name}.jsonl"
            described.append(
                {
                    "file": path,
                    "text": suite.text,
                    "of": "blobs" if name in BLOB_SUITES else "memories",
                    "profiles": dict(sorted(Counter(vector.program.profile for vector in lines).items())),
                    "vectors": len(lines),
                    "steps": text.count('{"call":'),
                    "sha256": hashlib.sha256(text.encode()).hexdigest(),
                }
            )
            yield path, text
    models = {it.name: model_digest(it) for it in machines}
    manifest = {"format": FORMAT, "models": models, "suites": described}
    yield SCHEMA, json.dumps(schema(machine), indent=2) + "\n"
    yield MANIFEST, json.dumps(manifest, indent=2) + "\n"


def folder_of(machine: Machine) -> str:
    """The folder of the vectors of a machine: its name, without what no name of a file should have."""
    return re.sub(r"[^\w.-]+", "_", machine.name).lstrip(".") or "_"


def write(
    folder: Path, wanted: Iterable[str] = (), machine: Machine | None = None, policy: Policy | None = None
) -> list[str]:
    """Write vectors into a folder.

    Parameters
    ----------
    folder : Path
    wanted : iterable of str
        Write only files of these names, such as ``"caffe/tour"`` or ``"tour"``; the manifest always lists all.
    machine, policy : Machine, Policy, optional
        As for `suite_files`.

    Returns
    -------
    list of str
        The paths that were written.

    Raises
    ------
    OSError
        If a file cannot be written; files that were written before it stay.
    UnfitPolicyError
        As `vectors` does; then nothing is written.
    """
    paths: list[str] = []
    for path, text in _chosen(suite_files(machine, policy), wanted):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, methodcaller("write", text.encode()))
        paths.append(path)
    return paths


def compare(
    folder: Path, wanted: Iterable[str] = (), machine: Machine | None = None, policy: Policy | None = None
) -> list[str]:
    """The files of a folder that are missing, or differ from those that `write` would write."""
    return [
        path
        for path, text in _chosen(suite_files(machine, policy), wanted)
        if not (folder / path).is_file() or (folder / path).read_bytes() != text.encode()
    ]


def archive(version: str) -> tuple[str, bytes]:
    """All files in one, the same bytes each time: the name of the archive, and its contents.

    The manifest in it has the digests of the other files.

    Parameters
    ----------
    version : str
        The version of the package, which is in the name.
    """
    name, packed = f"syncedmem-vectors-{FORMAT}-{version}", BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as squeezed,
        tarfile.open(mode="w", fileobj=squeezed, format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, text in sorted(suite_files()):
            content = text.encode()
            entry = tarfile.TarInfo(f"{name}/{path}")  # made at no time, by nobody
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, BytesIO(content))
    return f"{name}.tar.gz", packed.getvalue()


def _chosen(files: Iterable[tuple[str, str]], wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    names = set(wanted)
    for path, text in files:
        if not names or path in (MANIFEST, SCHEMA) or names & {path.removesuffix(".jsonl"), path.split("/")[-1][:-6]}:
            yield path, text
