"""The files of vectors: one for each suite of each edition, and the schema of a line."""

from __future__ import annotations

import json
import re
from operator import methodcaller
from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS
from syncedmem.model.files import SIGN, write_whole

from .keys import schema
from .suites import SUITES
from .vector import vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from syncedmem.model import Machine

    from ..memory.policy import Policy

__all__ = ["SCHEMA", "compare", "folder_of", "is_chosen", "suite_files", "write"]

SCHEMA = "vector.schema.json"


def suite_files(
    machine: Machine | None = None, policy: Policy | None = None, wanted: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """The files, one by one: the path of each in the folder, and its contents; the schema is the last.

    Parameters
    ----------
    machine : Machine, optional
        Without one, the files of all of Caffe's editions.
    policy : Policy, optional
        As for `vectors`.
    wanted : collection of str
        Only files of these names, such as ``"caffe/tour"`` or ``"tour"``, and the schema; others are not computed.

    Raises
    ------
    UnfitPolicyError
        As `vectors` does.
    """
    machines = EDITIONS.values() if machine is None else (machine,)
    for each in machines:
        for name in SUITES:
            path = f"{folder_of(each)}/{name}.jsonl"
            chosen = vectors(name, each, policy) if is_chosen(path, wanted) else ()
            if text := "".join(f"{vector.line()}\n" for vector in chosen):
                yield path, text.replace("{", f'{{"$comment":"{SIGN}",', 1)
    yield SCHEMA, json.dumps(schema(machine), indent=2) + "\n"


def folder_of(machine: Machine) -> str:
    """The folder of the vectors of a machine: its name, without what no name of a file should have."""
    return re.sub(r"[^\w.-]+", "_", machine.name).lstrip(".") or "_"


def write(
    folder: Path, wanted: Collection[str] = (), machine: Machine | None = None, policy: Policy | None = None
) -> list[str]:
    """Write vectors into a folder.

    Parameters
    ----------
    folder : Path
    wanted, machine, policy
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
    for path, text in suite_files(machine, policy, wanted):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, methodcaller("write", text.encode()))
        paths.append(path)
    return paths


def compare(
    folder: Path, wanted: Collection[str] = (), machine: Machine | None = None, policy: Policy | None = None
) -> list[str]:
    """The files of a folder that are missing, or differ from those that `write` would write."""
    return [
        path
        for path, text in suite_files(machine, policy, wanted)
        if not (folder / path).is_file() or (folder / path).read_bytes() != text.encode()
    ]


def is_chosen(path: str, wanted: Collection[str]) -> bool:
    """Whether a path of `suite_files` is among these, which are named as there; without names, all are."""
    names = {path.removesuffix(".jsonl"), path.rsplit("/", maxsplit=1)[-1].removesuffix(".jsonl")}
    return not wanted or path == SCHEMA or bool(names & {*wanted})
