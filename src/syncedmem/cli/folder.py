"""The folder of a run: its report, and a file for each finding, written as they are found."""

from __future__ import annotations

import os
import re
from itertools import count
from typing import TYPE_CHECKING, Any

from syncedmem.model import FileFormatError
from syncedmem.model.files import parsed_json, read_text

from .output import as_text, is_other, named, signed, write_over

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["RunFolder"]

_REPORT = "report.json"
_FINDINGS = {
    "conform": re.compile(r"[BPR]\d\d-[a-z0-9-]+\.(py|jsonl)"),
    "fuzz": re.compile(r"[AD]\d\d-[a-z0-9-]+\.(json|c)"),
    "learn": re.compile(r"\d+-[\w-]+\.(py|jsonl)"),
}
"""The names of the files of findings; a report may list others, if somebody else wrote it."""


class RunFolder:
    """The folder of a run; its files replace those of the run before, if that was on the same target.

    Parameters
    ----------
    out : Path
    command : str
        Of `_FINDINGS`.
    target : str
        The target, as a command line has it.
    force : bool
        Whether a report that no command wrote is replaced.

    Attributes
    ----------
    before : str
        The target of the run before, if it was another one.
    stale : list of str
        The files of that run that are still there: nobody but their owner knows whether they are wanted.
    """

    def __init__(self, out: Path, command: str, target: str, *, force: bool) -> None:
        self.before: str = ""
        self.stale: list[str] = []
        self._out, self._command, self._target, self._force = out, command, target, force
        self._names: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._started = False

    def path(self, name: str) -> Path:
        """Where a file of this name is: under the first name like it that no file has, but one of this run."""
        self._start()
        if name not in self._names:
            stem, ending = name.rsplit(".", 1)
            names = (name if n == 1 else f"{stem}-{n}.{ending}" for n in count(1))
            free = (name for name in names if name not in self._names.values())
            self._names[name] = next(name for name in free if not os.path.lexists(self._out / name))
        return self._out / self._names[name]

    def keep(self, files: Mapping[Path, str], report: Mapping[str, Any]) -> None:
        """Write the files of all findings until now, and the report; files that are no longer among them go."""
        self._start()
        texts = {path.name: text for path, text in files.items()}
        for name in self._written.keys() - texts.keys():
            with named(str(self._out / name)):
                (self._out / name).unlink(missing_ok=True)
            del self._written[name]
        for name, text in texts.items():
            if self._written.get(name) != text:
                # By force, because `path` chooses no name that somebody else's file has.
                write_over({self._out / name: text.encode()}, force=True, within=self._out)
                self._written[name] = text
        data = as_text({**report, "target": self._target, "files": [*texts]})
        write_over({self._out / _REPORT: signed(data, "json")}, force=self._force, within=self._out)

    def _start(self) -> None:
        """Remove the files that the report of a run before on this target lists, and no others."""
        report, started = self._out / _REPORT, self._started
        self._started = True
        if started or is_other(report):
            return
        try:
            data = parsed_json(str(report), read_text(report, "a report"))
            target, names = str(data["target"]), [str(name) for name in data["files"]]
        except (FileFormatError, KeyError, TypeError):  # there was no run, or of a version that did not list them
            return
        there = [name for name in names if _FINDINGS[self._command].fullmatch(name) and (self._out / name).is_file()]
        if target != self._target:
            self.before, self.stale = target, there
            return
        for name in there:
            with named(str(self._out / name)):
                (self._out / name).unlink()
