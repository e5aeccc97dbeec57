"""Harnesses for libFuzzer and AFL++: they build, show what is wrong with its calls, and pass what is right."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.spec import Violation
from syncedmem.spec.fuzz import TargetError
from syncedmem.spec.fuzz.harness import Harness, harness_of

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPPORT = Path(__file__).parents[2] / "support"
FAULTY = SUPPORT / "faulty_allocators.c"
BUGS = {
    "twice_malloc,twice_free": "A01-distinct-pointers",
    "overlap_malloc,overlap_free": "A02-no-overlap",
    "skewed_malloc,skewed_free": "A03-aligned",
    "marking_malloc,marking_free": "A04-contents-kept",
    "cut_malloc,cut_free": "A06-out-of-memory",
    "idle_malloc,idle_free": "A09-zero-size",
    "dirty_malloc,dirty_free,dirty_calloc": "A13-zeroed",
    "moving_malloc,moving_free,moving_calloc,moving_realloc": "A14-resize-keeps",
}
PROMISES = {"overlap_malloc,overlap_free": {"alignment": "1"}, "idle_malloc,idle_free": {"zero_size": "null"}}


def inputs(folder: Path, number: int = 300) -> list[Path]:
    """Return files of random bytes."""
    draw = random.Random(0)  # noqa: S311 -- no secret
    found = [folder / f"input-{i}" for i in range(number)]
    for path in found:
        path.write_bytes(draw.randbytes(draw.randrange(200)))
    return found


def program(target: str, folder: Path, promises: dict[str, str] | None = None) -> Path:
    """Build a harness with the compiler alone, and return the program, which takes files."""
    made = harness_of(target, "harness.c", promises)
    return built(made, "one input", folder, "harness-once")


def built(made: Harness, purpose: str, folder: Path, name: str, flags: Sequence[str] = ()) -> Path:
    """Run the command of a harness that builds it."""
    (folder / "harness.c").write_text(made.text, encoding="utf-8")
    command = made.commands[purpose].partition(" && ")[0]
    done = subprocess.run(  # noqa: S602 -- what a reader puts into a shell
        " ".join([command, "-Wall", "-Wextra", "-Werror", "-O1", *flags]),
        shell=True, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return folder / name


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a harness."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("symbols", BUGS)
def test_a_bug_is_found_and_the_calls_show_it_again(symbols: str, tmp_path: Path) -> None:
    """What is printed is a program, which the driver in Python judges as the harness did."""
    target, promises = f"{FAULTY}:{symbols}", PROMISES.get(symbols, {})
    done = run([program(target, tmp_path, promises), *inputs(tmp_path)], tmp_path)
    requirement, _, shown = done.stderr.partition(":")
    code = shown.partition("\n\n")[2]

    assert BUGS[symbols] == requirement.strip(), done.stderr[:400]
    assert code.startswith("from syncedmem.spec.fuzz import driver_of\nwith driver_of(")
    with pytest.raises(Violation, match=BUGS[symbols]):
        exec(code, {})  # noqa: S102 -- the program that a reader copies


@pytest.mark.parametrize(
    ("symbols", "called"),
    [
        ("libc.so.6:malloc,free,calloc,realloc", {"allocate", "free", "check", "calloc", "resize", "request_too_much"}),
        ("libc.so.6:malloc,free", {"allocate", "free", "check", "request_too_much"}),
        (
            f"{FAULTY}:good_nep49_malloc,good_nep49_free,good_nep49_calloc,good_nep49_realloc?abi=nep49",
            {"allocate", "free", "check", "calloc", "resize", "request_too_much"},
        ),
        (f"{FAULTY}:good_torch_malloc,good_torch_free?abi=torch", {"allocate", "free", "check", "request_too_much"}),
        (f"{FAULTY}:good_cupy_malloc,good_cupy_free?abi=cupy", {"allocate", "free", "check", "request_too_much"}),
    ],
)
def test_what_is_right_passes_and_every_call_is_made(symbols: str, called: set[str], tmp_path: Path) -> None:
    """Each call is shown before it is made, if that is asked for."""
    done = run([program(symbols, tmp_path), *inputs(tmp_path)], tmp_path, SYNCEDMEM_SHOW="1")

    assert not done.returncode, done.stderr[-400:]
    assert called == set(re.findall(r"driver\.(\w+)\(", done.stderr))


def test_an_input_comes_from_standard_input_too(tmp_path: Path) -> None:
    """As AFL++ gives it to a program that it has not built."""
    made = program("libc.so.6:malloc,free", tmp_path)
    done = subprocess.run(
        [made], input=b"\x05\x07\x80", capture_output=True, check=False, env={**os.environ, "SYNCEDMEM_SHOW": "1"}
    )

    calls = re.findall(r"driver\.(.*)", done.stderr.decode())
    assert (0, ["allocate(0, 5)", "allocate(1, 7)", "free(0)", "free(1)"]) == (done.returncode, calls)
    assert 2 == run([made, tmp_path / "missing"], tmp_path).returncode


def test_each_input_begins_anew_where_the_target_can(tmp_path: Path) -> None:
    """Without ``reset`` the pool goes on as the last input has left it."""
    source = tmp_path / "pool.c"
    source.write_text(
        "#include <stdlib.h>\nstatic int calls;\nvoid begin(void) { calls = 0; }\n"
        "void *take(size_t n) { return n == 9 && ++calls > 2 ? NULL : malloc(n); }\nvoid give(void *p) { free(p); }\n",
        encoding="utf-8",
    )
    (tmp_path / "input").write_bytes(b"\x09")
    files = [tmp_path / "input"] * 3

    assert not run([program(f"{source}:take,give,reset=begin", tmp_path), *files], tmp_path).returncode
    assert (
        "A16-no-leaks: block 0 of 9 bytes" in run([program(f"{source}:take,give", tmp_path), *files], tmp_path).stderr
    )


def test_a_source_in_cpp_is_built_as_such(tmp_path: Path) -> None:
    source = tmp_path / "pool.cpp"
    source.write_text(
        '#include <new>\nextern "C" void *take(std::size_t n) { return n > 1000000 ? nullptr : ::operator new(n); }\n'
        'extern "C" void give(void *p) { ::operator delete(p); }\n',
        encoding="utf-8",
    )
    assert not run([program(f"{source}:take,give", tmp_path), *inputs(tmp_path, 20)], tmp_path).returncode


@pytest.mark.no_cover
def test_libfuzzer_finds_one_size_of_many_thousands(tmp_path: Path) -> None:
    """Only a request of 48271 bytes is wrong; millions of random steps do not make it."""
    if not has_libfuzzer(tmp_path):
        pytest.skip("there is no libFuzzer here: make system-deps")
    target = f"{SUPPORT / 'conditional_bugs.c'}:pool_malloc,pool_free,reset=pool_reset"
    fuzzer = built(harness_of(target, "harness.c"), "libFuzzer", tmp_path, "harness", ["-DBUG=1"])
    done = run([fuzzer, "-use_value_profile=1", "-max_len=512", "-seed=1", "-max_total_time=300"], tmp_path)

    assert "A01-distinct-pointers: block " in done.stderr
    assert " of 48271 bytes: it has memory of a live block\n" in done.stderr
    assert [*tmp_path.glob("crash-*")]


def has_libfuzzer(folder: Path) -> bool:
    """Whether there is a clang that has libFuzzer."""
    empty = folder / "empty.c"
    empty.write_text("int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }\n", encoding="utf-8")
    command: list[str | Path] = ["clang", "-fsanitize=fuzzer", empty, "-o", folder / "empty"]
    return shutil.which("clang") is not None and not run(command, folder).returncode


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("syncedmem:CPUDeviceAllocator", "a harness needs functions in C, of malloc, nep49, torch, cupy"),
        ("libc.so.6:nowhere,free", "libc.so.6 has no symbol nowhere"),
        ("nowhere.c:take,give", "there is no source nowhere.c"),
        ("counted", "a harness cannot call counted_make"),
    ],
)
def test_what_no_harness_can_call_is_refused(target: str, said: str, tmp_path: Path) -> None:
    if target == "counted":
        target = f"{SUPPORT / 'conventions.c'}:counted_*?abi=nep49"
    with pytest.raises(TargetError, match=re.escape(said)):
        harness_of(target, str(tmp_path / "harness.c"))


def test_the_command_writes_it_and_says_how_it_is_built(tmp_path: Path) -> None:
    """It fuzzes nothing. With - it goes to standard output, and the commands do not."""
    target, path = "libc.so.6:malloc,free", tmp_path / "harness.c"
    done = CliRunner().invoke(app, ["fuzz", target, "--harness", str(path), "--promise", "alignment=16"])
    there = CliRunner().invoke(app, ["fuzz", target, "--harness", "-"])

    assert (0, 0, "") == (done.exit_code, there.exit_code, done.stdout)
    assert f"libFuzzer: clang -g -O1 -fsanitize=fuzzer {path} -l:libc.so.6 -o harness && ./harness" in done.stderr
    assert {"libFuzzer:", "AFL++:", "one"} <= {line.split(" ")[0] for line in done.stderr.splitlines()}
    assert ".alignment = 16" in path.read_text(encoding="utf-8")
    assert there.stdout.startswith("/* A harness of syncedmem ")
    assert 2 == CliRunner().invoke(app, ["fuzz", target, "--harness", str(tmp_path / "no" / "\0")]).exit_code
