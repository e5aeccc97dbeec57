"""How long it takes to write every edition at every detail in every format, in a fresh process, as text."""

from __future__ import annotations

import time
from itertools import product

started = time.perf_counter()

from syncedmem.model import EDITIONS  # noqa: E402 -- the import is a part of what is measured
from syncedmem.model.exports.formats import FORMATS, export  # noqa: E402 -- as above

WANTED = 2.0
"""How many seconds all of it may take."""


PIXELS = ("png", "pdf")
"""The formats that CairoSVG paints; the time is its own."""


def main() -> None:
    """Print a line for each format, and the time of all formats together."""
    print(f"{'import':12} {1000 * (time.perf_counter() - started):8.1f} ms")
    count = 0
    for name, found in FORMATS.items():
        before, size = time.perf_counter(), 0
        for edition, detail in product(EDITIONS, found.details or (None,)):
            if name not in PIXELS:
                size += len(export(name, edition=edition, detail=detail))
                count += 1
        print(f"{name:12} {1000 * (time.perf_counter() - before):8.1f} ms {size:10,} characters")
    took = time.perf_counter() - started
    print(f"{count} exports in {took:.2f} s (wanted {WANTED})")


if __name__ == "__main__":
    main()
