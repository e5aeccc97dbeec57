"""The C++ example port with the memory of CUDA's runtime: it is compiled against hostcuda, and judged by the kit."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostcuda_control import hostcuda
from programs import program

from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.ports.conformance import Claim, conform_program
from syncedmem.spec.ports.targets import library_target

ROOT = Path(__file__).parents[2]
HEADERS = sorted(ROOT.glob(".venv*-hostcuda/lib/python*/site-packages/nvidia/*/include"))
pytestmark = pytest.mark.deep

LIBRARY = Path(str(sys.modules["hostcuda_cupy"].__file__)).parent / "libcuda.so.1"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the port with ``make cuda``."""
    program("c++")
    folder = tmp_path_factory.mktemp("ports") / "ports"
    shutil.copytree(ROOT / "examples" / "ports", folder, ignore=shutil.ignore_patterns("*.so", "machine.*"))
    command = [
        "make",
        "--silent",
        "cuda",
        f"SYNCEDMEM={shlex.quote(sys.executable)} -m syncedmem",
        f"CXXFLAGS=-O1 {' '.join(f'-isystem {path}' for path in HEADERS)}",
        f"CUDART={LIBRARY} -Wl,-rpath,{LIBRARY.parent}",
    ]
    subprocess.run(command, cwd=folder / "cpp", check=True)
    return folder / "cpp" / "libport_cuda.so"


def test_the_port_with_cuda_conforms_as_far_as_it_can_be_seen(port: Path) -> None:
    """Device memory cannot be read on the host, here as on a GPU; a push is done when somebody waits."""
    assert hostcuda.NAME == "hostcuda, not a GPU"
    report = conform_program(library_target(str(port)), Claim("safe", steps=62, seed=1), Limits(seconds=30))

    assert re.fullmatch(r"conforms to safe/L1: (\d+) of \1 requirements, 558 of 558 transitions", report.line)
