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
from .kills import Kills
from .vector import ALL_SUITES, FORMAT, model_digest, vectors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["MANIFEST", "SCHEMA", "archive", "compare", "suite_files", "write"]

MANIFEST, SCHEMA = "manifest.json", "vector.schema.json"


def suite_files() -> dict[str, str]:
    """The contents of all files, by their paths in the folder.

    Raises
    ------
    StaleKillsError
        If the stored kills were measured for other vectors.
    """
    kills = Kills.known()
    found: dict[str, str] = {}
    described: list[dict[str, Any]] = []
    for edition in EDITIONS:
        for name, suite in ALL_SUITES.items():
            killed = kills.of(edition, name)
            made = [*vectors(name, edition, killed)]
            if not made:
                continue
            lines = [vector.line() for vector in made]
            text = "".join(f"{line}\n" for line in lines)
            path = f"{edition}/{name}.jsonl"
            found[path] = text
            described.append(
                {
                    "file": path,
                    "text": suite.text,
                    "of": "blobs" if name in BLOB_SUITES else "memories",
                    "profiles": dict(sorted(Counter(vector.program.profile for vector in made).items())),
                    "vectors": len(lines),
                    "steps": text.count('{"call":'),
                    "kills": len({bug for names in killed for bug in names}),
                    "sha256": hashlib.sha256(text.encode()).hexdigest(),
                }
            )
    models = {edition: model_digest(edition) for edition in EDITIONS}
    manifest = {"format": FORMAT, "models": models, "seeded_bugs": len(kills.bugs), "suites": described}
    found[SCHEMA] = json.dumps(schema(), indent=2) + "\n"
    found[MANIFEST] = json.dumps(manifest, indent=2) + "\n"
    return found


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
    chosen = _chosen(wanted)
    for path, text in chosen.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, methodcaller("write", text.encode()))
    return [*chosen]


def compare(folder: Path, wanted: Iterable[str] = ()) -> list[str]:
    """The files of a folder that are missing, or differ from those that `write` would write."""
    chosen = _chosen(wanted)
    return [
        path
        for path, text in chosen.items()
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
        for path, text in sorted(suite_files().items()):
            content = text.encode()
            entry = tarfile.TarInfo(f"{name}/{path}")  # made at no time, by nobody
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, BytesIO(content))
    return f"{name}.tar.gz", packed.getvalue()


def _chosen(wanted: Iterable[str]) -> dict[str, str]:
    names = set(wanted)
    return {
        path: text
        for path, text in suite_files().items()
        if not names or path in (MANIFEST, SCHEMA) or names & {path.removesuffix(".jsonl"), path.split("/")[-1][:-6]}
    }
