"""``python -m syncedmem``, and ``syncedmem``: the command line, or what to install for it."""

from __future__ import annotations

import sys

from .model.errors import MissingPackageError
from .model.packages import LIBRARIES

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its packages, say in one line how to install them."""
    try:
        from .cli import main as run  # noqa: PLC0415 -- it needs packages that the library does not
    except ModuleNotFoundError as error:
        if error.name not in LIBRARIES["cli"]:
            raise
        sys.stderr.write(f"syncedmem: {MissingPackageError('the command line', error.name, 'cli')}\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
