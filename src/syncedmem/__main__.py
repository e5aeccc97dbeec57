"""``python -m syncedmem``, and ``syncedmem``: the command line, or what to install for it."""

from __future__ import annotations

import sys

# `python -m` looks first in the present folder, which may have a file with the name of anything that is imported below.
# What Python and the package have imported before this line they have found there: only `python -P` prevents it.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

from os.path import basename
from signal import SIGINT

from .interrupts import end_at_once, say

__all__ = ["main"]

# Here and not in `main`, because the script `syncedmem` calls that only when this module is imported.  In a program of
# somebody else, which may import the module, signals stay as they are; and in a process that the command has started,
# which imports it too: the command says that it was interrupted.
if __name__ == "__main__" or (
    basename(sys.argv[0]) == "syncedmem" and "multiprocessing" not in sys.modules  # noqa: PTH119 -- pathlib is slow
):
    end_at_once()


def main() -> None:
    """Run the command line; without its packages, say in one line how to install them."""
    from .model.errors import MissingPackageError  # noqa: PLC0415 -- an interrupt is one line from above on
    from .model.packages import LIBRARIES  # noqa: PLC0415 -- as above

    try:
        from .cli import main as run  # noqa: PLC0415 -- it needs packages that the library does not
    except ModuleNotFoundError as error:
        if error.name not in LIBRARIES["cli"]:
            raise
        sys.stderr.write(f"syncedmem: {MissingPackageError('the command line', error.name, 'cli')}\n")
        sys.exit(2)
    try:
        run()
    except KeyboardInterrupt as error:  # between two lines of ours, where nothing else says so
        sys.exit(say(next((argument for argument in error.args if isinstance(argument, int)), SIGINT)))


if __name__ == "__main__":
    main()
