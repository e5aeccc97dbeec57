"""``make deep``: what is tested beyond the gate, in parts, one line for each.

The result of a part is kept in build/deep under a digest of the files that it depends on.  A second run repeats only
the parts whose files have changed, and those that did not pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PARTS", "Part", "main"]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "deep"
LIMIT = 2 * 60 * 60
"""Seconds after which a part hangs: four times the longest that one may take."""
ALWAYS = ("Makefile", "conftest.py", "pyproject.toml", "requirements", "tests/mutants", "tests/support")
"""Files and folders that every part depends on."""
PRODUCT = ("model", "runtime", "spec", "src")
_PYTEST = ".venv/bin/pytest -n auto --dist worksteal -m deep"


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes
    ----------
    about : str
        What it tests.
    tests : tuple of str
        The files and folders whose deep tests are its own.  What another part names inside of a folder is the other's.
    make : str
        What is made first; the whole part, unless deep tests are run.
    pytest : str or None
        How the deep tests of its files are run after that, as options of pytest; none are run if this is None.
    reads : tuple of str
        The other files and folders that its result depends on.
    programs : tuple of str
        Programs without which it is not possible.
    """

    about: str
    tests: tuple[str, ...] = ()
    make: str = ""
    pytest: str | None = ""
    reads: tuple[str, ...] = PRODUCT
    programs: tuple[str, ...] = ()

    def impossible(self) -> str:
        """Why it is not possible here; empty if it is."""
        if missing := [program for program in self.programs if not _works(program)]:
            return f"there is no {' and no '.join(missing)}: make system-deps"
        return ""

    @property
    def command(self) -> list[str]:
        """The command that runs it."""
        made = f"make --no-print-directory {self.make}" if self.make else ":"
        if self.pytest is None:
            return ["bash", "-c", made]
        ignored = " ".join(f"--ignore={name}" for name in self._of_others())
        tests = f"{_PYTEST} {self.pytest} {ignored} {' '.join(self.tests)}"
        return ["bash", "-c", f"{made} && {tests}"]

    def _of_others(self) -> list[str]:
        """What other parts name inside of the folders of this one."""
        folders = tuple(f"{name}/" for name in self.tests)
        return [name for part in PARTS.values() for name in part.tests if name.startswith(folders)]

    def digest(self) -> str:
        """A digest of its command, and of the names and the contents of all files that it depends on."""
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
        command = [*listing, *ALWAYS, *self.reads, *self.tests]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
        digest = hashlib.sha256("\0".join(self.command).encode())
        for name in sorted({name for name in names if name}):
            path = ROOT / os.fsdecode(name)
            digest.update(name + b"\0" + (path.read_bytes() if path.is_file() else b""))
        return digest.hexdigest()


def _works(program: str) -> bool:
    """Whether a program is there and says its version; what only stands for a version that is missing does not."""
    there = shutil.which(program)
    return there is not None and not subprocess.run([there, "--version"], capture_output=True, check=False).returncode


_BROWSER = ("chromium", "chromedriver")
_INTERRUPTS = ("tests/cli/test_fuzz_interrupts.py",)
_RACES = (
    "tests/runtime/memory/test_forks.py",
    "tests/spec/fuzz/test_fuzz_native.py",
)
_BROWSERS = (
    "tests/cli/test_explorer.py",
    "tests/model/test_drawings_in_browser.py",
)

PARTS = {
    "coverage": Part(
        "the lines and branches of the model and the runtime that tests take: a report",
        ("tests/model", "tests/runtime"),
        "coverage",
        None,
        reads=(*PRODUCT, "tests"),
    ),
    "seeded-bugs": Part(
        "every seeded bug with every suite, and its reproducer",
        ("tests/spec/test_seeded_bugs.py", "tests/spec/test_reproducers.py"),
        pytest="--every-suite",
    ),
    "kits": Part(
        "the kits, test vectors, learning and proofs", ("tests/spec",), reads=(*PRODUCT, "vectors", "examples")
    ),
    "fuzzer": Part("the fuzzer", ("tests/spec/fuzz", "tests/cli/test_fuzz_command.py"), programs=("gcc", "g++")),
    "ports": Part(
        "ports, and the seeded bugs of the example ports",
        ("tests/spec/ports", "tests/cli/test_conform.py"),
        reads=(*PRODUCT, "examples"),
        programs=("gcc", "g++"),
    ),
    "caffe": Part(
        "Caffe itself, learned, and by all seeds", ("tests/caffe",), "test-caffe CHOSEN=", None, programs=("g++",)
    ),
    "hostcuda": Part(
        "CUDA over hostcuda, with delayed operations",
        ("tests/hostcuda",),
        "test-hostcuda",
        None,
        reads=(*PRODUCT, "tests"),
        programs=("gcc", "g++"),
    ),
    "mfem": Part(
        "the example of MFEM beside MFEM itself",
        ("tests/model/test_real_mfem.py",),
        ".venv-mfem/ready",
        reads=("model", "examples/machines", "requirements/mfem.txt"),
    ),
    "interrupts": Part("interrupts of the fuzzer", _INTERRUPTS),
    "races": Part("threads and forks", _RACES, programs=("gcc",)),
    "commands": Part(
        "the commands, and the project itself", ("tests/cli", "tests/project"), reads=(*PRODUCT, "docs", "README.md")
    ),
    "browsers": Part("the explorer and pictures, in Chromium", _BROWSERS, programs=_BROWSER),
    "sphinx": Part(
        "pages of others, built with Sphinx and MkDocs", ("tests/docs",), reads=(*PRODUCT, "docs", "README.md")
    ),
    "site": Part("the site, and all its blocks", (), "docs", None, reads=(*PRODUCT, "docs", "examples", "README.md")),
    "lowest": Part("the lower bound of every dependency", (), "test-lowest", None, reads=(*PRODUCT, "tests")),
    "pythons": Part(
        "another Python",
        make="test-other-python",
        pytest=None,
        reads=(*PRODUCT, "tests"),
        programs=("python3.13",),
    ),
    "shuffled": Part("the quick tests in a random order", (), "shuffled", None, reads=(*PRODUCT, "tests")),
    "new-seeds": Part("examples that nobody has tried", (), "new-seeds", None, reads=(*PRODUCT, "tests")),
}
"""The one table: what each part is, and its files."""


@dataclass(frozen=True)
class Result:
    """How a part ended, as it is kept."""

    digest: str
    passed: bool
    seconds: float


def run(name: str, part: Part) -> Result | str:
    """Run a part, unless it passed with the same files; return its result, or why there is none."""
    if reason := part.impossible():
        return f"not possible here: {reason}"
    file, digest = KEPT / f"{name}.json", part.digest()
    kept = Result(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None
    if kept is not None and kept.passed and kept.digest == digest:
        return f"unchanged since it passed in {kept.seconds:.0f} s"
    file.unlink(missing_ok=True)
    begun = time.monotonic()
    with (KEPT / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            part.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            status = process.wait(LIMIT)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            status = -signal.SIGKILL
    result = Result(digest, status == 0, time.monotonic() - begun)
    file.write_text(json.dumps(vars(result)) + "\n", encoding="utf-8")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts, or those that are named, and print a line for each; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="deep.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)} (default: all)")
    names = parser.parse_args(arguments).parts
    if unknown := sorted({*names} - {*PARTS}):
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in names or PARTS:
        result = run(name, PARTS[name])
        if isinstance(result, Result):
            failed |= not result.passed
            word = "passed" if result.passed else f"failed, see build/deep/{name}.log,"
            result = f"{word} in {result.seconds:.0f} s"
        print(f"{name:<14}{result}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
