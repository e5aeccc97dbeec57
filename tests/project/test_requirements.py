"""What is installed: the advice of messages, the library alone, and hashes."""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from syncedmem.__main__ import main as command_line
from syncedmem.model import MissingPackageError, packages

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(line: str) -> str:
    (name,) = re.findall(r"^[\w.-]+(?:\[\w+\])?", line)
    return str(name)


# ------------------------------------------------------------------------------------- what messages advise


def test_the_libraries_of_messages_are_those_of_the_extras() -> None:
    extras: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
    assert packages.LIBRARIES == {extra: tuple(map(name_of, lines)) for extra, lines in extras.items()}


@pytest.mark.parametrize(
    ("system", "machine", "command"),
    [
        ("linux", "x86_64", "pip install mako pyopencl pocl-binary-distribution"),
        ("linux", "aarch64", "pip install mako pyopencl"),
        ("darwin", "x86_64", "pip install mako pyopencl"),
    ],
)
def test_what_is_made_for_one_kind_of_machine_is_advised_there(
    system: str, machine: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert command == packages.install("opencl")


def test_a_name_with_brackets_is_quoted() -> None:
    assert "pip install 'cupy-cuda12x[ctk]'" == packages.install("cuda12")


ADVICE = re.compile(r"install[^\n]*(syncedmem\[|'?\.\[)")
PLACES = ("README.md", "SECURITY.md", "model", "runtime", "spec", "src", "docs", "examples", "benchmarks")


def test_nobody_is_advised_to_install_an_extra_of_ours() -> None:
    """No package index has the library, and ``.`` is not the user's folder."""
    files = [path for place in PLACES for path in ((ROOT / place).rglob("*") if "." not in place else [ROOT / place])]
    text = [path for path in files if path.suffix in {".py", ".md"}]
    assert [] == [path for path in text if ADVICE.search(path.read_text(encoding="utf-8"))]
    assert len(text) > 100


# ---------------------------------------------------------------------------------------- the library alone

WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        return None if {absent} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""


def without(absent: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program without some packages: those for whose name ``top`` the expression is true."""
    lines = WITHOUT.format(absent=absent) + program
    return subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)


NEEDED = [name_of(line) for line in PYPROJECT["project"]["dependencies"]]


@pytest.mark.deep
def test_the_library_works_alone() -> None:
    """It needs two packages. One of them, transitions, needs the package six."""
    assert ["numpy", "transitions"] == NEEDED
    there = f"top in {{*sys.stdlib_module_names, 'syncedmem', 'six', *{NEEDED}}} or top.startswith('_sysconfigdata_')"
    done = without(
        f"not ({there})",
        """
import syncedmem
from syncedmem import Blob, PoolAllocator, SyncedMemory, named_device
from syncedmem.model.exports.formats import export
with PoolAllocator(named_device("simulated")) as pool, SyncedMemory(4, device=pool) as memory:
    memory.mutable_cpu_data()[:] = 7
    print(memory.gpu_data().get())
blob = Blob((2, 3), device="simulated")
blob.data = 1
blob.mutable_gpu_diff().set(blob.gpu_data().get() * 3)
blob.update()
print(blob.data[0])
print(len(dir(syncedmem)) > 50, len(export("json")) > 1000)
""",
    )
    assert (0, "[7 7 7 7]\n[-2. -2. -2.]\nTrue True\n", "") == (done.returncode, done.stdout, done.stderr)


KIT = "syncedmem.spec needs the package hypothesis: pip install hypothesis"


COMMAND_LINE = "the command line needs the package {}: pip install hypothesis rich typer"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("missing", "said"),
    [("typer", COMMAND_LINE.format("typer")), ("rich", COMMAND_LINE.format("rich")), ("hypothesis", KIT)],
)
def test_the_command_line_says_in_one_line_what_it_needs(missing: str, said: str) -> None:
    program = "sys.argv = ['syncedmem', 'verify']\nfrom syncedmem.__main__ import main\nmain()"
    done = without(f"top == {missing!r}", program)
    assert (2, "", f"syncedmem: {said}\n") == (done.returncode, done.stdout, done.stderr)


def test_what_is_missing_is_seen_in_this_process_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tests above run other processes, which coverage does not measure. Other missing modules raise as usual."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "syncedmem.spec", raising=False)
    with pytest.raises(MissingPackageError, match=KIT):
        importlib.import_module("syncedmem.spec")

    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "syncedmem.cli", raising=False)
    with pytest.raises(SystemExit) as stopped:
        command_line()
    assert (2, f"syncedmem: {COMMAND_LINE.format('typer')}\n") == (stopped.value.code, capsys.readouterr().err)

    monkeypatch.setitem(sys.modules, "syncedmem.cli", None)
    with pytest.raises(ModuleNotFoundError, match=r"syncedmem\.cli"):
        command_line()


def test_what_stands_in_two_extras_has_one_lower_bound() -> None:
    lines = {line for extra in PYPROJECT["project"]["optional-dependencies"].values() for line in extra}
    assert len(lines) == len({name_of(line) for line in lines})


# ------------------------------------------------------------------------------------------------- hashes


def pins(text: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==[^\s;]+", text.lower().replace("_", "-"), re.MULTILINE))


def test_every_version_has_hashes_and_no_address() -> None:
    """`make requirements/hashes.txt` writes the hashes. The file does not say which index they are from."""
    hashes = (REQUIREMENTS / "hashes.txt").read_text(encoding="utf-8")
    assert pins((REQUIREMENTS / "constraints.txt").read_text(encoding="utf-8")) == pins(hashes)
    blocks = re.split(r"\n(?=\w)", hashes.rstrip("\n"))
    one = r"[\w.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+"
    assert [] == [block for block in blocks if not re.fullmatch(one, block)]
