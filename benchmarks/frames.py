"""How many Python functions a first call enters, and in how many files they are.

Run with ``make bench``.  ``hot_path.py`` measures a call that has nothing to do.  This module looks at the call before
it, which a reader or a debugger has to follow.  Each call is made once before, on another object, so the process is
warm.  It counts the frames of this package, and separately those of all other Python code.  No memory is checked for
views that are kept too long; by default those of the simulated device are.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import options_of, publish

import syncedmem
from syncedmem.model import Mode, set_mode
from syncedmem.runtime import Blob, SyncedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = str(Path(syncedmem.__file__).parent)


def first_gpu_data() -> Callable[[], object]:
    """A memory that was written on the host: the call allocates on the device, copies, and makes a view."""
    memory = SyncedMemory(64, device="simulated", checked=False)
    memory.mutable_cpu_data()
    return memory.gpu_data


def first_update_on_the_host() -> Callable[[], object]:
    """Data and diff were written on the host."""
    blob = Blob((2, 3), device=None)
    blob.mutable_cpu_data()
    blob.mutable_cpu_diff()
    return blob.update


def first_update_of_no_diff() -> Callable[[], object]:
    """The data was written on the host, and the diff never: it has to be allocated and zeroed."""
    blob = Blob((2, 3), device=None)
    blob.mutable_cpu_data()
    return blob.update


def first_update_on_the_device() -> Callable[[], object]:
    """Data and diff were written on the device."""
    blob = Blob((2, 3), device="simulated", checked=False)
    blob.mutable_gpu_data()
    blob.mutable_gpu_diff()
    return blob.update


def first_update_across() -> Callable[[], object]:
    """The data was written on the device and the diff on the host, so the diff has to be allocated there and copied."""
    blob = Blob((2, 3), device="simulated", checked=False)
    blob.mutable_gpu_data()
    blob.mutable_cpu_diff()
    return blob.update


CALLS = {
    "SyncedMemory.gpu_data(), written on the host": first_gpu_data,
    "Blob.update(), all on the host": first_update_on_the_host,
    "Blob.update(), host, diff never written": first_update_of_no_diff,
    "Blob.update(), all on the simulated device": first_update_on_the_device,
    "Blob.update(), device, diff on the host": first_update_across,
}


def frames_of(call: Callable[[], object]) -> Counter[str]:
    """How often a call enters the functions of each file."""
    entered: Counter[str] = Counter()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            entered[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def counted(what: str, prepare: Callable[[], Callable[[], object]]) -> dict[str, Any]:
    """The frames of one call."""
    prepare()()  # once before, for everything that is loaded or compiled once in a process
    entered = frames_of(prepare())
    ours = {file: count for file, count in entered.items() if file.startswith(PACKAGE)}
    return {
        "what": what,
        "frames": sum(ours.values()),
        "files": len(ours),
        "others": sum(entered.values()) - sum(ours.values()),
        "by_file": {file.removeprefix(f"{PACKAGE}/"): count for file, count in sorted(ours.items())},
    }


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    return f"{row['what']:48}  {row['frames']:4} frames over {row['files']:2} files  {row['others']:4} of others"


def main() -> None:
    """Count, print, and write the figures where ``--json`` says."""
    options = options_of(__doc__).parse_args()
    set_mode(Mode.GPU)
    publish([counted(what, prepare) for what, prepare in CALLS.items()], show, options.json)


if __name__ == "__main__":
    main()
