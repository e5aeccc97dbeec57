"""The files of vectors: one for each suite of each edition, a manifest of all, and the schema of a line."""

from __future__ import annotations

import gzip
import hashlib
import json
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

__all__ = ["MANIFEST", "SCHEMA", "archive", "compare", "suite_files", "write"]

MANIFEST, SCHEMA = "manifest.json", "vector.schema.json"


def suite_files() -> Iterator[tuple[str, str]]:
    """All files, one by one: the path of each in the folder, and its contents; the manifest is the last."""
    described: list[dict[str, Any]] = []
    for edition in EDITIONS:
        for name, suite in ALL_SUITES.items():
            made = [*vectors(name, edition)]
            if not made:
                continue
            text = "".join(f"{vector.line()}\n" for vector in made)
            path = f"{edition}/{name}.jsonl"
            described.append(
                {
                    "file": path,
                    "text": suite.text,
                    "of": "blobs" if name in BLOB_SUITES else "memories",
                    "profiles": dict(sorted(Counter(vector.program.profile for vector in made).items())),
                    "vectors": len(made),
                    "steps": text.count('{"call":'),
                    "sha256": hashlib.sha256(text.encode()).hexdigest(),
                }
            )
            yield path, text
    models = {edition: model_digest(edition) for edition in EDITIONS}
    manifest = {"format": FORMAT, "models": models, "suites": described}
    yield SCHEMA, json.dumps(schema(), indent=2) + "\n"
    yield MANIFEST, json.dumps(manifest, indent=2) + "\n"


def write(folder: Path, wanted: Iterable[str] = ()) -> list[str]:
    """Write vectors into a folder.

    Parameters
    ----------
    folder : Path
    wanted : iterable of str
        Write only files of these names, such as ``"caffe/tour"`` or ``"tour"``; the manifest always lists all.

    Returns
    -------
    list of str
        The paths that were written.

    Raises
    ------
    OSError
        If a file cannot be written; files that were written before it stay.
    """
    paths: list[str] = []
    for path, text in _chosen(wanted):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, methodcaller("write", text.encode()))
        paths.append(path)
    return paths


def compare(folder: Path, wanted: Iterable[str] = ()) -> list[str]:
    """The files of a folder that are missing, or differ from those that `write` would write."""
    return [
        path
        for path, text in _chosen(wanted)
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


def _chosen(wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    names = set(wanted)
    for path, text in suite_files():
        if not names or path in (MANIFEST, SCHEMA) or names & {path.removesuffix(".jsonl"), path.split("/")[-1][:-6]}:
            yield path, text
