"""Files are replaced as a whole: permissions, links, interrupted saves, and files left over; and hostile JSON."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from operator import methodcaller
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pytest

from syncedmem.model import FileAccessError, FileFormatError, InvalidArgumentError
from syncedmem.model.files import MOST_TEXT, parsed_json, read_text, write_whole
from syncedmem.runtime.blobs.array_files import save_npy

if TYPE_CHECKING:
    from collections.abc import Callable

LEFT_OVER = ".syncedmem-0123456789abcdef.part"
VALUES = np.arange(6, dtype="f4").reshape(2, 3)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def open_files() -> list[str]:
    """Return the open descriptors of this process, also the one of the folder that lists them."""
    return os.listdir("/proc/self/fd")  # noqa: PTH208 -- asked for thousands of times


def put(content: bytes) -> Callable[[IO[bytes]], object]:
    """Return a writer of some bytes."""
    return methodcaller("write", content)


# -------------------------------------------------------------------------------- permissions and links


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_a_new_file_is_as_private_as_the_old_one_before_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Between the creation of the file and its permissions, nobody else can open it."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(mode)
    made, seen = set[int](), list[int]()

    def mode_of(descriptor: int) -> int:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)

    def write(file: IO[bytes]) -> None:
        seen.append(mode_of(file.fileno()))
        file.write(b"after")

    def fchown(descriptor: int, *_: int) -> None:
        made.add(mode_of(descriptor))

    monkeypatch.setattr(os, "fchown", fchown)
    write_whole(path, write)

    assert ({0o600}, [mode]) == (made, seen)
    assert (b"after", mode) == (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))


def test_the_owner_is_kept_where_the_system_lets_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    asked: list[tuple[int, int]] = []

    def fchown(_: int, owner: int, group: int) -> None:
        asked.append((owner, group))
        if owner != -1:
            raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "fchown", fchown)
    write_whole(path, put(b"after"))

    assert [(-1, path.stat().st_gid), (path.stat().st_uid, -1)] == asked
    assert b"after" == path.read_bytes()


def test_a_new_file_has_the_permissions_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    write_whole(tmp_path / "b", put(b""))

    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("b")
    write_whole(tmp_path / "link", put(b"after"))
    write_whole(tmp_path / "dangling", put(b"new"))

    assert (b"after", True) == ((tmp_path / "a").read_bytes(), (tmp_path / "link").is_symlink())
    assert (b"new", True) == ((tmp_path / "b").read_bytes(), (tmp_path / "dangling").is_symlink())


def test_a_link_that_is_not_followed_is_replaced(tmp_path: Path) -> None:
    """What it leads to stays, also if that is a folder or nothing."""
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "folder").mkdir()
    for name in ("a", "folder", "missing"):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(name)
        write_whole(tmp_path / "link", put(b"after"), follow=False)

        assert (b"after", False) == ((tmp_path / "link").read_bytes(), (tmp_path / "link").is_symlink())
    assert (b"before", {"a", "folder", "link"}) == (
        (tmp_path / "a").read_bytes(),
        {path.name for path in tmp_path.iterdir()},
    )


def test_a_hard_link_keeps_what_was_there(tmp_path: Path) -> None:
    """The path has a new file, as docs/blobs.md says."""
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "other").hardlink_to(tmp_path / "a")
    write_whole(tmp_path / "a", put(b"after"))

    assert (b"after", b"before") == ((tmp_path / "a").read_bytes(), (tmp_path / "other").read_bytes())


def test_a_loop_of_links_is_an_error_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    with pytest.raises(FileAccessError, match=r"/a: Too many levels of symbolic links") as caught:
        save_npy(tmp_path / "a", VALUES)

    assert errno.ELOOP == caught.value.errno
    assert ["a", "b"] == names(tmp_path)
    assert (tmp_path / "a").is_symlink()


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "it is a directory"), ("pipe", "it is not a regular file"), ("no/a", "No such"), ("\0", "null")],
)
def test_what_is_no_place_for_a_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileAccessError, match=message):
        write_whole(os.path.join(tmp_path, name), put(b""))  # noqa: PTH118 -- pathlib would tidy it

    assert ["pipe"] == names(tmp_path)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="path must be a path"):
        write_whole(3, put(b""))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# ------------------------------------------------------------------------------------ what is on the disk


def test_the_file_and_its_folder_are_synced_in_this_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is synced before it replaces the old one, and the folder after that."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    seen: list[tuple[bool, bytes]] = []

    def fsync(descriptor: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, put(b"after"))

    assert [(False, b"before"), (True, b"after")] == seen


@pytest.mark.parametrize("place", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_file_that_the_disk_did_not_take_is_not_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: int
) -> None:
    """The error names the path, and what the system said."""
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def full(_: object) -> None:
        raise OSError(number, os.strerror(number))

    if place == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileAccessError, match=os.strerror(number)) as caught:
        write_whole(path, full if place == "write" else put(b"after"))

    assert (number, str(path)) == (caught.value.errno, caught.value.source)
    assert (b"before", ["a"]) == (path.read_bytes(), names(tmp_path))


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no")
        synced(descriptor)

    before = open_files()
    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "a", put(b"after"))

    assert (b"after", before) == ((tmp_path / "a").read_bytes(), open_files())


def test_an_error_of_ours_comes_out_as_it_is(tmp_path: Path) -> None:
    error = FileAccessError("elsewhere", "gone", errno.ENOENT)

    def write(_: IO[bytes]) -> None:
        raise error

    with pytest.raises(FileAccessError) as caught:
        write_whole(tmp_path / "a", write)

    assert error is caught.value


@pytest.mark.deep
def test_a_disk_that_is_full_until_the_end_closes_the_file(tmp_path: Path) -> None:
    """Closing the file cannot write the rest of the buffer either."""
    program = (
        "import os, resource, sys; from pathlib import Path; from syncedmem.model.files import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "before = os.listdir('/proc/self/fd')\n"
        "try: write_whole(sys.argv[1], lambda file: file.write(bytes(1000)))\n"
        "except OSError as error: print(error.errno, before == os.listdir('/proc/self/fd'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, tmp_path / "a"], capture_output=True, text=True, check=True
    )

    assert (f"{errno.EFBIG} True\n", "") == (done.stdout, done.stderr)
    assert [] == names(tmp_path)


# ------------------------------------------------------------------------------ files that are left over


@pytest.mark.deep
def test_a_killed_save_leaves_the_old_file_and_the_next_save_tidies_up(tmp_path: Path) -> None:
    """It did so a day later."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    program = (
        "import os, signal, sys; from syncedmem.model.files import write_whole\n"
        "def write(file): file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(sys.argv[1], write)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    left = names(tmp_path)
    write_whole(tmp_path / "b", put(b"other"))

    assert (-signal.SIGKILL, 2, b"before") == (done.returncode, len(left), path.read_bytes())
    assert ["a", "b"] == names(tmp_path)


def test_two_that_save_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    """A file that another process is still writing is not removed as left over."""
    started, finish = threading.Event(), threading.Event()

    def slowly(file: IO[bytes]) -> None:
        file.write(b"first")
        started.set()
        finish.wait()

    thread = threading.Thread(target=write_whole, args=(tmp_path / "a", slowly))
    thread.start()
    started.wait()
    for path in tmp_path.iterdir():  # also if the last byte came long ago
        os.utime(path, (0, 0))
    write_whole(tmp_path / "a", put(b"second"))
    during = names(tmp_path)
    finish.set()
    thread.join()

    assert (2, ["a"], b"first") == (len(during), names(tmp_path), (tmp_path / "a").read_bytes())


@pytest.mark.deep
def test_two_processes_that_save_all_the_time_get_no_error(tmp_path: Path) -> None:
    program = (
        "import sys; from syncedmem.model.files import write_whole\n"
        "for _ in range(200): write_whole(sys.argv[1], lambda file: file.write(sys.argv[2].encode() * 1000))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a")]
    running = [subprocess.Popen([*command, letter], stderr=subprocess.PIPE) for letter in "xyz"]
    said = [process.communicate()[1] for process in running]

    assert [b""] * 3 == said
    assert ["a"] == names(tmp_path)
    assert (tmp_path / "a").read_bytes() in {letter * 1000 for letter in (b"x", b"y", b"z")}


def test_a_file_that_was_taken_for_left_over_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may look at it before it is locked."""
    locked = fcntl.flock

    def late(file: IO[bytes], how: int) -> None:
        if how == fcntl.LOCK_EX:
            monkeypatch.setattr(fcntl, "flock", locked)
            write_whole(tmp_path / "b", put(b"other"))
        locked(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_whole(tmp_path / "a", put(b"mine"))

    assert ["a", "b"] == sorted(names(tmp_path))
    assert b"mine" == (tmp_path / "a").read_bytes()


def test_a_file_system_without_locks_keeps_what_is_left_over_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(file: IO[bytes], how: int) -> None:
        raise OSError(errno.ENOLCK, f"no locks: {file.fileno()}, {how}")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / LEFT_OVER).touch()
    write_whole(tmp_path / "a", put(b"first"))
    early = names(tmp_path)
    os.utime(tmp_path / LEFT_OVER, (0, 0))
    write_whole(tmp_path / "a", put(b"second"))

    assert {"a", LEFT_OVER} == set(early)
    assert ["a"] == names(tmp_path)


def test_what_only_looks_like_a_left_over_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LEFT_OVER)
    for name in (".0123456789abcdef.part", "download.part", f"{LEFT_OVER}s"):
        (tmp_path / name).touch()
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    write_whole(tmp_path / "a", put(b"after"))

    assert 5 == len(names(tmp_path))


def test_a_folder_that_cannot_be_listed_is_saved_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", denied)
        write_whole(tmp_path / "a", put(b"after"))

    assert ["a"] == names(tmp_path)


# -------------------------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize(("place", "name"), [(os, "fsync"), (Path, "replace")])
def test_an_interrupted_save_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str
) -> None:
    """There is no other file, and no open descriptor."""
    path = tmp_path / "a.npy"
    save_npy(path, VALUES)
    content, opened = path.read_bytes(), open_files()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_npy(path, VALUES + 1)
    monkeypatch.undo()

    assert content == path.read_bytes()
    assert (["a.npy"], opened) == (names(tmp_path), open_files())


# --------------------------------------------------------------------------------- files that a user names


def test_a_text_is_read_with_or_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone")

    assert "one" == read_text(tmp_path / "a", "a text")


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    both = os.open(pipe, os.O_RDWR)  # opens a writer before there is a reader
    os.write(both, b"one")
    os.write(both, b" two")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that the written bytes are not lost when the writer closes
    os.close(both)
    found = read_text(pipe, "a text")
    os.close(reader)

    assert "one two" == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "missing: No such file"),
        ("folder", "folder: it is a directory"),
        ("pipe", "pipe: the file is empty; expected a song"),
        ("empty", "empty: the file is empty; expected a song"),
        ("latin", "latin, byte 1: it is not text; expected a song"),
        ("large", "large: it has more than 16,777,216 bytes; expected a song"),
        ("\0", "null"),
    ],
)
def test_what_has_no_text_is_refused_and_waits_for_nobody(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").write_bytes(b" \n")
    (tmp_path / "latin").write_bytes(b"a\xe4")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_TEXT + 1)

    with pytest.raises(FileFormatError, match=message):
        read_text(tmp_path / name, "a song")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1, column 2: Expecting property name"),
        ("[" * 100_000, "nested too deeply: 100,000 levels"),
        ('{"a":' * 10_000 + '"]]]"' + "}" * 10_000, "nested too deeply: 10,000 levels"),
        ("1" * 5000, "Exceeds the limit"),
        ("NaN", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ('{"a": 1, "a": 1}', "the name 'a' occurs twice in an object"),
        ("", "line 1, column 1"),
    ],
)
def test_broken_json_is_one_line(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=f"^the file: this is broken JSON: .*{message}") as caught:
        parsed_json("the file", text)

    assert "\n" not in str(caught.value)


def test_json_is_what_it_says() -> None:
    assert {"a": [1, 2.5, None, "x"], "b": {}} == parsed_json("the file", '{"a": [1, 2.5, null, "x"], "b": {}}')
