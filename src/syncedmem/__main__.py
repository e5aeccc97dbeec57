"""``python -m syncedmem``: the command line."""

from .cli import main

main()
