"""A corpus at a URL: small files with names, and one clear error for whatever a library below fsspec raises."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

from syncedmem.model import FileAccessError, MissingPackageError
from syncedmem.spec.fuzz import Step, TargetError
from syncedmem.spec.fuzz.corpus import Corpus
from syncedmem.spec.fuzz.storage import Remote, is_url, storage

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = (Step("allocate", (0, 8, 0, 0)),)


def test_what_one_machine_adds_another_one_reads(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/corpus/"
    Corpus(url).add(PROGRAM)
    Corpus(url).add(PROGRAM)
    (name,) = storage(url).names()

    assert [PROGRAM] == Corpus(url).programs == Corpus(tmp_path / "corpus").programs
    assert f"{url}{name}" == storage(url).where(name)


def test_a_file_is_written_once_and_whole(tmp_path: Path) -> None:
    place = Remote(f"file://{tmp_path}")
    place.add("a.json", b"first")
    place.add("a.json", b"second")
    (tmp_path / "b.txt").touch()

    assert (["a.json"], "first") == (place.names(), place.read("a.json", ""))


@pytest.mark.parametrize(
    ("place", "found"), [("s3://b/c", True), ("zip::file://x", True), ("a/b:c", False), ("C:", False), ("x", False)]
)
def test_a_url_is_told_from_a_folder(place: str, found: bool) -> None:
    assert found == is_url(place)


def test_what_cannot_be_opened_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="nowhere://x cannot be opened: Protocol not known"):
        storage("nowhere://x")
    with pytest.raises(FileAccessError, match="file:///dev/null/x: Not a directory"):
        storage("file:///dev/null/x")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingPackageError, match="a corpus at a URL needs the package fsspec"):
        storage("memory://x")


def test_an_error_of_a_library_is_one_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Remote(f"file://{tmp_path}")

    def broken(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("no\ncredentials")

    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.exists", broken)
    with pytest.raises(FileAccessError, match=f"file://{tmp_path}: no credentials"):
        place.add("a.json", b"")
