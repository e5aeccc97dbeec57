"""Compiles the native driver and its thread for forks, and targets that are sources or have a build command.

A target in C is ``lib.so:alloc,free``.  Two forms are compiled first: a source, ``pool.c:alloc,free``; and a library
with a command that makes it, ``lib.so:alloc,free?build=make -B lib.so``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from ..finding import TargetError

__all__ = ["built", "compiled_busy", "compiled_driver"]

_SOURCES = {".c": "CC", ".cc": "CXX", ".cpp": "CXX", ".cxx": "CXX"}
_COMPILERS = {"CC": "cc", "CXX": "c++"}
_FLAGS = {"CC": "CFLAGS", "CXX": "CXXFLAGS"}
_HERE = Path(__file__).parent


def built(text: str) -> str:
    """The target that can be loaded: compiled if it is a source or has a build command; any other stays as it is."""
    place, *command = re.split(r"[?&]build=", text, maxsplit=1)
    path, colon, symbols = place.rpartition(":")
    if command:
        _run_command(text, place.partition(":")[0], *command)
        return place
    return f"{_from_source(Path(path))}{colon}{symbols}" if Path(path).suffix in _SOURCES else text


# --- sources


def _from_source(source: Path) -> Path:
    """The library that a source is compiled to, every time anew: what it includes may have changed."""
    if not source.is_file():
        raise TargetError(f"there is no source {source}")
    language = _SOURCES[source.suffix]
    flags = ["-O2", "-g", "-fPIC", "-shared", "-pthread", *_words(_FLAGS[language])]
    name = f"{source.stem}-{_digest(str(source.resolve()), *flags)}.so"
    return _compiled(language, [*flags, str(source), *_words("LDFLAGS")], name, str(source))


def _words(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


def _digest(*texts: str | bytes) -> str:
    whole = b"\0".join(text.encode() if isinstance(text, str) else text for text in texts)
    return hashlib.sha256(whole).hexdigest()[:16]


def _compiled(language: str, arguments: list[str], name: str, what: str) -> Path:
    """Compile into the cache; another process may do the same at the same time."""
    compiler = _words(language) or [_COMPILERS[language]]
    if shutil.which(compiler[0]) is None:
        raise TargetError(f"{what} cannot be compiled: there is no {compiler[0]}; install it, or set {language}")
    library = folder() / name
    part = library.with_name(f"{name}.{os.getpid()}")
    try:
        # The compiler has no use for an allocator that is preloaded for a target.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        run = subprocess.run([*compiler, *arguments, "-o", part], capture_output=True, check=False, env=environment)  # noqa: S603 -- the user's compiler
        if run.returncode:
            raise TargetError(f"{what} cannot be compiled: {_reason(run)}")
        part.replace(library)
    finally:
        part.unlink(missing_ok=True)
    return library


def _reason(run: subprocess.CompletedProcess[bytes]) -> str:
    """The first error of a compiler, or else its last line."""
    lines = (run.stderr + run.stdout).decode(errors="replace").split("\n")
    lines = [line for line in lines if line.strip()]
    return next((line for line in lines if "error: " in line), lines[-1] if lines else f"status {run.returncode}")


@cache
def folder() -> Path:
    """The folder for what is compiled: in the user's cache, or else one that goes with this process."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "syncedmem"  # noqa: PTH111 -- Path.home() raises if there is none
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError:
        _KEPT.append(tempfile.TemporaryDirectory(prefix="syncedmem-"))
        return Path(_KEPT[-1].name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


# --- build commands


@cache  # a command runs once in a process
def _run_command(text: str, path: str, command: str) -> None:
    if not command.strip():
        raise TargetError(f"{text}: no command is after build=")
    run = subprocess.run(command, shell=True, capture_output=True, check=False)  # noqa: S602 -- the user gave this command to have it run
    if run.returncode:
        raise TargetError(f"{command!r} failed: {_reason(run)}")
    if not Path(path).is_file():
        raise TargetError(f"{command!r} did not make {path}")


# --- the driver


_DRIVER = (_HERE / "driver.c", _HERE / "oracle.h")


@cache
def compiled_driver() -> Path:
    """The native driver, compiled if this version of it is not in the cache."""
    flags = ["-std=gnu11", "-O3", "-g", "-pthread"]
    name = f"driver-{_digest(*(item.read_bytes() for item in _DRIVER), *flags, *_words('CC'))}"
    if os.access(folder() / name, os.X_OK):
        return folder() / name
    return _compiled("CC", [*flags, str(_DRIVER[0]), "-ldl"], name, "the native driver")


@cache
def compiled_busy() -> Path:
    """The library whose function allocates and frees all the time, as `compiled_driver`."""
    source, flags = _HERE / "busy.c", ["-std=gnu11", "-O2", "-fPIC", "-shared"]
    name = f"busy-{_digest(source.read_bytes(), *flags, *_words('CC'))}.so"
    if os.access(folder() / name, os.R_OK):
        return folder() / name
    return _compiled("CC", [*flags, str(source)], name, "the thread beside which processes are forked")
