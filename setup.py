"""Stops a build from a tree without its links, and makes the same bytes at any time; the rest is in pyproject.toml."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
BROKEN = [room for room in ("model", "runtime", "spec") if not (HERE / "src" / "syncedmem" / room).is_dir()]

if BROKEN:
    if (HERE / ".git").exists():
        advice = "git config core.symlinks true; git checkout -- src/syncedmem"
    else:  # an archive of the repository, unpacked by something that makes no links
        advice = f"ln -sf {' '.join(f'../../{room}' for room in BROKEN)} src/syncedmem/"
    raise SystemExit(
        f"syncedmem: src/syncedmem/{{{','.join(BROKEN)}}} should be links to directories, but they are text files or "
        f"missing. In the directory of setup.py, run: {advice}"
    )

# Every file of a wheel or an sdist has this date, unless the variable says otherwise: 2020-02-02, as hatchling has it.
DATE = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "1580601600"))  # the wheel command reads the variable itself
FILE, DIRECTORY = 0o644, 0o755


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member of an archive without what differs between two checkouts: its date, its owner and its mode."""
    member.mtime, member.mode = DATE, DIRECTORY if member.isdir() else FILE
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class SourceArchive(sdist):
    """An sdist with the same bytes at any time, for any user and any umask."""

    def make_archive(self, base_name: str, *_: object, base_dir: str, **_options: object) -> str:  # type: ignore[override]
        """Write the ``.tar.gz``; the packing of setuptools keeps the time in its header, and dates and owners."""
        path = f"{base_name}.tar.gz"
        self.mkpath(str(Path(path).parent))
        with (
            Path(path).open("wb") as file,
            gzip.GzipFile("", "wb", mtime=DATE, fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=anonymous)
        return path


class Wheel(bdist_wheel):
    """A wheel with the same bytes for any umask."""

    # The last step before the files are packed with their modes.
    def write_wheelfile(self, *arguments: str, **options: str) -> None:
        """Write the file ``WHEEL``, and set the modes of all files."""
        super().write_wheelfile(*arguments, **options)
        if self.bdist_dir is not None:
            for path in Path(self.bdist_dir).rglob("*"):
                path.chmod(DIRECTORY if path.is_dir() else FILE)


setup(cmdclass={"sdist": SourceArchive, "bdist_wheel": Wheel})
