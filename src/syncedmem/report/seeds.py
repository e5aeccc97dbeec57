"""What a report of several seeds says of them: which ran, on which machines, and which have no result.

The data is that of `syncedmem.spec.engine.cluster.Spread.as_json`; it is empty if there was one seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .document import Numbers, Unchecked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["machines", "option_of", "seeds_of", "unfinished"]


def seeds_of(spread: Mapping[str, Any], seed: int) -> tuple[int, ...]:
    """The seeds of a run; `seed` is that of a run with one."""
    return tuple(spread.get("seeds", (seed,)))


def option_of(spread: Mapping[str, Any], seed: int) -> str:
    """The option that takes the same seeds again."""
    seeds = seeds_of(spread, seed)
    return f"--seeds {seeds[0]}..{seeds[-1]}" if spread else f"--seed {seed}"


def unfinished(spread: Mapping[str, Any]) -> Iterator[Unchecked]:
    """The seeds that should have a result, and have none."""
    for said in spread.get("without_result", ()):
        what, _, why = said.partition(" no result: ")
        yield Unchecked(what.removesuffix(" has").removesuffix(", have"), why)
    if spread and (left := len(spread["seeds"]) - spread["done"] - spread["lost"]):
        yield Unchecked(f"{left:,} seed{'' if left == 1 else 's'}", "the run ended before")


def machines(spread: Mapping[str, Any]) -> Iterator[Numbers]:
    """What each machine has done."""
    rows = tuple(
        (it["machine"], {"processes": it["processes"], "seeds": it["seeds"], "operations": it["operations"]}, "")
        for it in spread.get("machines", ())
    )
    if spread:
        yield Numbers("Machines", "machine", rows)
