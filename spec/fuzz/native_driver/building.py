"""Compiles the native driver, and targets that are sources or have a build command.

A target in C is ``lib.so:alloc,free``.  Two forms are compiled first: a source, ``pool.c:alloc,free``; and a library
with a command that makes it, ``lib.so:alloc,free?build=make -B lib.so``.  With ``?sanitizer=thread`` or ``address``
they are compiled twice, once with that sanitizer.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..finding import TargetError

__all__ = [
    "STATUS",
    "built",
    "compiled_driver",
    "options_of",
    "requirements_judged",
    "sanitizer_of",
    "trimmed",
    "with_sanitizer",
]

SANITIZERS = {"thread": b"__tsan_", "address": b"__asan_"}
"""The sanitizers, each with a name that is only in what was compiled with it."""

_SOURCES = {".c": "CC", ".cc": "CXX", ".cpp": "CXX", ".cxx": "CXX"}
_COMPILERS = {"CC": "cc", "CXX": "c++"}
_FLAGS = {"CC": "CFLAGS", "CXX": "CXXFLAGS"}
_HERE = Path(__file__).parent
_NEEDS = (
    "a sanitizer needs a target that is compiled here: a source (pool.c:alloc,free), or a library with ?build=COMMAND"
)


@dataclass(frozen=True)
class TargetBuild:
    """A target that can be loaded."""

    target: str
    sanitizer: str = ""
    sanitized: str = ""


def built(text: str) -> TargetBuild:
    """Compile a target if it is a source or has a build command; any other target stays as it is."""
    place, sanitizer, command = _split(text)
    path, colon, symbols = place.rpartition(":")
    if sanitizer is not None and sanitizer not in SANITIZERS:
        raise TargetError(f"{text}: there is no sanitizer {sanitizer!r}; there are {', '.join(SANITIZERS)}")
    if command is not None:
        path = place.partition(":")[0]
        return _from_command(text, path, place.removeprefix(path), command, sanitizer or "")
    if Path(path).suffix in _SOURCES:
        plain = _from_source(Path(path), "")
        sanitized = _from_source(Path(path), sanitizer) if sanitizer else plain
        return TargetBuild(f"{plain}{colon}{symbols}", sanitizer or "", f"{sanitized}{colon}{symbols}")
    if sanitizer is not None:
        raise TargetError(f"{text}: {_NEEDS}")
    return TargetBuild(text, "", text)


def sanitizer_of(text: str) -> str:
    """The sanitizer that a target asks for; nothing for none."""
    return _split(text)[1] or ""


def with_sanitizer(text: str, sanitizer: str) -> str:
    """The target with a sanitizer; its build command stays at the end."""
    place, _, rest = text.partition("?")
    return f"{place}?sanitizer={sanitizer}{'&' if rest else ''}{rest}"


def _split(text: str) -> tuple[str, str | None, str | None]:
    """A target without the options of this module, its sanitizer, and its command, which goes to the end."""
    head, *command = re.split(r"[?&]build=", text, maxsplit=1)
    place, _, rest = head.partition("?")
    options = {option: option.startswith("sanitizer=") for option in rest.split("&") if option}
    sanitizer = next((option.removeprefix("sanitizer=") for option, is_ours in options.items() if is_ours), None)
    others = "&".join(option for option, is_ours in options.items() if not is_ours)
    return f"{place}?{others}" if others else place, sanitizer, command[0] if command else None


# --- sources


def _from_source(source: Path, sanitizer: str) -> Path:
    """The library that a source is compiled to, every time anew: what it includes may have changed."""
    if not source.is_file():
        raise TargetError(f"there is no source {source}")
    language = _SOURCES[source.suffix]
    flags = [*_sanitizer_flags(sanitizer), "-O2", "-g", "-fPIC", "-shared", "-pthread", *_words(_FLAGS[language])]
    name = f"{source.stem}-{_digest(str(source.resolve()), *flags)}.so"
    return _compiled(language, [*flags, str(source), *_words("LDFLAGS")], name, str(source))


def _sanitizer_flags(sanitizer: str) -> list[str]:
    return [f"-fsanitize={sanitizer}", "-fno-omit-frame-pointer"] if sanitizer else []


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
    run = subprocess.run([*compiler, *arguments, "-o", part], capture_output=True, check=False)  # noqa: S603 -- the user's compiler
    if run.returncode:
        raise TargetError(f"{what} cannot be compiled: {_reason(run)}")
    part.replace(library)
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
def _from_command(text: str, path: str, symbols: str, command: str, sanitizer: str) -> TargetBuild:
    """Run a build command, with a sanitizer first: so that what it leaves there is the usual build."""
    if not command.strip():
        raise TargetError(f"{text}: no command is after build=")
    sanitized = path
    if sanitizer:
        _run(path, command, sanitizer)
        if not _has(path, sanitizer):
            raise TargetError(
                f"{command!r} did not use -fsanitize={sanitizer}: it has to pass $CFLAGS, $CXXFLAGS and $LDFLAGS on"
            )
        sanitized = str(folder() / f"{Path(path).name}-{_digest(str(Path(path).resolve()), sanitizer)}.so")
        shutil.copy(path, sanitized)
    _run(path, command, "")
    if sanitizer and _has(path, sanitizer):
        raise TargetError(f"{command!r} did not build {path} again: it has to build it anew, for example with make -B")
    return TargetBuild(f"{path}{symbols}", sanitizer, f"{sanitized}{symbols}")


def _run(path: str, command: str, sanitizer: str) -> None:
    flags = shlex.join(_sanitizer_flags(sanitizer))
    more = {name: f"{os.environ.get(name, '')} {flags}".strip() for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    environment = {**os.environ, **(more if sanitizer else {})}
    run = subprocess.run(command, shell=True, capture_output=True, check=False, env=environment)  # noqa: S602 -- the user gave this command to have it run
    if run.returncode:
        raise TargetError(f"{command!r} failed: {_reason(run)}")
    if not Path(path).is_file():
        raise TargetError(f"{command!r} did not make {path}")


def _has(path: str, sanitizer: str) -> bool:
    return SANITIZERS[sanitizer] in Path(path).read_bytes()


# --- the driver


_DRIVER = (_HERE / "driver.c", _HERE / "oracle.h")


@cache
def requirements_judged() -> tuple[str, ...]:
    """The requirements that the driver judges: those that its sources name."""
    return tuple(sorted({name for it in _DRIVER for name in re.findall(r'"(A\d\d-[a-z-]+)"', it.read_text("utf-8"))}))


@cache
def compiled_driver(sanitizer: str = "") -> Path:
    """The native driver, compiled if this version of it is not in the cache."""
    flags = [*_sanitizer_flags(sanitizer), "-std=gnu11", "-O3", "-g", "-pthread"]
    name = f"driver-{_digest(*(it.read_bytes() for it in _DRIVER), *flags, *_words('CC'))}"
    if os.access(folder() / name, os.X_OK):
        return folder() / name
    return _compiled("CC", [*flags, str(_DRIVER[0]), "-ldl"], name, "the native driver")


# --- what a sanitizer says

STATUS = 66
"""The exit status of a process that a sanitizer ended."""

_COMMON = f"exitcode={STATUS}:halt_on_error=1:allocator_may_return_null=1:abort_on_error=0:color=never:print_summary=1"


def options_of(reports: str) -> dict[str, str]:
    """The environment of a process with a sanitizer, which writes to files whose names begin so."""
    common = f"{_COMMON}:log_path={reports}"
    return {
        "TSAN_OPTIONS": f"{common}:report_signal_unsafe=0:history_size=4",
        "ASAN_OPTIONS": f"{common}:detect_leaks=0",
    }


_BEGIN = re.compile(r"(?:WARNING|ERROR): (\w+Sanitizer: .*)")
_SUMMARY = re.compile(r"SUMMARY: (\w+Sanitizer: .*)")
_FRAME = re.compile(r"\s*#(\d+) ")
_NOISE = re.compile(r"^=+\d*=*$|^==\d+==|\(BuildId: \w+\)|\((?:\S+\+)?0x[0-9a-f]+\)|\b0x[0-9a-f]+ in ")
_END = re.compile(r"Shadow bytes around|^HINT:|^\s*Thread T\d+ .*created by|Register values:")
_MOST_FRAMES, _MOST_LINES = 5, 40


def trimmed(output: str) -> tuple[str, str]:
    """The sentence and the stacks of the first report in an output; both are empty if there is none."""
    begin = _BEGIN.search(output)
    if begin is None:
        return "", ""
    text, *rest = output[begin.start(1) :].splitlines()
    summary = _SUMMARY.search(output)
    lines: list[str] = [_clean(text)]
    for line in rest:
        frame = _FRAME.match(line)
        if _END.search(line) or line.startswith("SUMMARY:") or len(lines) == _MOST_LINES:
            break
        if _clean(line) and not (frame and int(frame[1]) >= _MOST_FRAMES):
            lines.append(_clean(line))
    return _clean(summary[1] if summary else text), "\n".join(lines)


def _clean(line: str) -> str:
    return _NOISE.sub("", line).rstrip()
