"""Signals: a command that is interrupted says so, and what it has started ends with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
