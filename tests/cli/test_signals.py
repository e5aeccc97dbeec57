"""Signals: a command that is interrupted says so, and what it has started ends with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HANGS = """\
import os, pathlib, sys
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
while True:
    pass
"""


@pytest.mark.parametrize("command", ["conform", "learn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_hangs_ends_with_the_command(command: str, number: signal.Signals, tmp_path: Path) -> None:
    program, place = tmp_path / "hangs.py", tmp_path / "pid"
    program.write_text(HANGS, encoding="utf-8")
    port = shlex.join([sys.executable, str(program), str(place)])
    words = [sys.executable, "-m", "syncedmem", command, "--command", port, "--out", str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        while not (place.exists() and place.read_text(encoding="utf-8")):
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(number)
        _, said = run.communicate(timeout=60)

    assert (128 + number, f"syncedmem: interrupted by {number.name}\n") == (run.returncode, said)
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text(encoding="utf-8")), 0)


# A right port, in whose process of this number a request sends a signal to the command, to itself, or to both.
INTERRUPTS = """\
import os, pathlib, signal, sys, time
sys.path.insert(0, sys.argv[1])
import port

starts, start, request, number, to_itself = pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:])
with starts.open("a") as file:
    file.write("+")
right, command = port.answer, os.getppid()

def answer(op, **fields):
    global request
    request -= starts.stat().st_size == start
    if not request and not to_itself:
        os.kill(command, number)
    if not request and to_itself:
        if not os.fork():
            os.close(1)
            time.sleep(0.05)
            os.kill(command, number)
            os._exit(0)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return right(op, **fields)

port.answer = answer
port.serve()
"""
PORTS = Path(__file__).parents[2] / "examples" / "ports" / "json"


MOMENTS_OF_A_RUN = [
    (2, 40, signal.SIGTERM),
    *(
        pytest.param(*moment, number, marks=pytest.mark.deep)
        for moment in [(1, 1), (2, 1), (2, 3_000), (2, 40_000), (3, 1), (4, 1), (4, 400), (4, 5_000)]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    ),
]


@pytest.mark.parametrize("to_itself", [False, True])
@pytest.mark.parametrize(("start", "request_number", "number"), MOMENTS_OF_A_RUN)
def test_whoever_is_interrupted_accuses_nobody(
    start: int, request_number: int, to_itself: bool, number: signal.Signals, tmp_path: Path
) -> None:
    """Also where the port gets it first, as in a service that is stopped.  Processes 3 and 4 are those of safe."""
    program = tmp_path / "interrupts.py"
    program.write_text(INTERRUPTS, encoding="utf-8")
    where = (program, PORTS, tmp_path / "starts", start, request_number, int(number), int(to_itself))
    port = shlex.join([sys.executable, *map(str, where)])
    words = [sys.executable, "-m", "syncedmem", "conform", "--command", port, "--out", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (128 + number, f"syncedmem: interrupted by {number.name}\n") == (done.returncode, done.stderr)
    assert "" == done.stdout


# Before anything of a command is imported, Python imports this module: it sends a signal while another one is imported,
# at the end of the command, or after everything that is registered for the end.
SENDS = """\
import atexit, os, signal, sys

NUMBER, WHERE = int(os.environ["NUMBER"]), os.environ["WHERE"]

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == WHERE:
            send()
        elif name == "typer" and WHERE == "the end":
            atexit.register(send)

def send():
    print("sent", flush=True)
    signal.raise_signal(NUMBER)

if WHERE == "after the end":
    atexit.register(send)
sys.meta_path.insert(0, Finder)
"""
MOMENTS = {
    "syncedmem.model.errors": "--version",
    "syncedmem.model.caffe": "--version",
    "syncedmem.cli": "--version",
    "typer": "--version",
    "rich.console": "devices",
    "syncedmem.cli.vectors": "--version",
    "numpy": "devices",
    "numpy._core._multiarray_umath": "devices",
    "syncedmem.runtime.devices.simulated": "devices",
    "jinja2": "diagram --format c",
    "hypothesis": "verify --device cpu --steps 0",
    "the end": "diff caffe caffe",
}
"""Where the signal comes, in which command."""


def sent(
    folder: Path,
    where: str,
    number: int = signal.SIGINT,
    command: str = "-m syncedmem --version",
    *,
    heard: str = "default_int_handler",
) -> subprocess.CompletedProcess[str]:
    """Run a command, and send it a signal at a moment."""
    # What a shell has started in the background ignores Ctrl-C, and these tests do it then too.
    first = f"import signal\nsignal.signal(2, signal.{heard})\n"
    (folder / "sitecustomize.py").write_text(f"{first}{SENDS}", encoding="utf-8")
    return subprocess.run(
        [sys.executable, *shlex.split(command)],
        env={**os.environ, "PYTHONPATH": str(folder), "NUMBER": str(int(number)), "WHERE": where},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep(quick=3)
@pytest.mark.parametrize("where", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", ["-m syncedmem", shlex.quote(str(Path(sys.executable).with_name("syncedmem")))])
def test_an_interrupt_is_one_line_at_any_time(where: str, number: signal.Signals, program: str, tmp_path: Path) -> None:
    done = sent(tmp_path, where, number, f"{program} {MOMENTS[where]}")

    assert "sent\n" in done.stdout
    assert (128 + number, f"syncedmem: interrupted by {number.name}\n") == (done.returncode, done.stderr)


def test_an_interrupt_that_comes_too_late_is_ignored(tmp_path: Path) -> None:
    """Python takes itself apart, for a tenth of a second, and no handler is called any more."""
    done = sent(tmp_path, "after the end")

    assert (0, "sent", "") == (done.returncode, done.stdout.split()[-1], done.stderr)


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """As in a job of ``nohup``, until the command itself begins."""
    done = sent(tmp_path, "typer", heard="SIG_IGN")

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.deep
def test_a_closed_terminal_ends_no_job_of_nohup(tmp_path: Path) -> None:
    """It is ignored then, also while the command runs and has forked."""
    words = [sys.executable, "-m", "syncedmem", "fuzz", "syncedmem.runtime:CPUDeviceAllocator", "--steps", "2000"]
    words += ["--out", str(tmp_path / "out")]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    with run:
        while run.poll() is None:
            os.killpg(run.pid, signal.SIGHUP)
            time.sleep(0.05)
        said = run.communicate()[0]

    assert (0, True) == (run.returncode, "passed" in said), said


def test_a_program_that_imports_it_keeps_its_signals() -> None:
    program = (
        "import signal, sys; before = [*map(signal.getsignal, (2, 15))]; import syncedmem.__main__; "
        "sys.exit(before != [*map(signal.getsignal, (2, 15))])"
    )
    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode
