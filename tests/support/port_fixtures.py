"""The ports of tests: programs that are wrong in one way, and libraries in C, compiled once against our headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from exported import exported
from programs import program

from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.targets import ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = Path(__file__).parent / "ports"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-fvisibility=hidden")


PLAIN, WRONG, BLOB_PORT = (str(SOURCES.with_name(f"{name}_port.py")) for name in ("plain", "wrong", "blob"))
LIMITS = Limits(seconds=60, first=60, memory=8 << 30)


def command_of(way: str) -> tuple[str, ...]:
    """Return the command of a port that is wrong in this way, or right."""
    return sys.executable, "-S", WRONG, way


def wrong(way: str) -> ProgramTarget:
    """Return a port that is wrong in this way, or right."""
    return ProgramTarget(way, command_of(way))


@pytest.fixture(scope="session")
def c_port(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that compiles ``ports/NAME.c``, perhaps with a mistake, and returns the path of the library."""
    compiler = program("gcc")
    folder = tmp_path_factory.mktemp("ports")
    (folder / "machine.h").write_text(exported("c"), encoding="utf-8")
    (folder / "syncedmem_port.h").write_text(exported("port-header"), encoding="utf-8")

    def compiled(name: str, mistake: int = 0) -> str:
        library = folder / f"lib{name}{mistake or ''}.so"
        if not library.exists():
            command = [
                compiler,
                *STRICT,
                f"-DMISTAKE={mistake}",
                f"-I{folder}",
                str(SOURCES / f"{name}.c"),
                "-o",
                str(library),
            ]
            subprocess.run(command, check=True)
        return str(library)

    return compiled
