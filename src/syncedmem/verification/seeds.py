"""The main job with many seeds: all devices for each seed, and one report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError
from syncedmem.spec.engine.cluster import take_seeds
from syncedmem.spec.engine.merging import merged

from .checks import checked_devices, device_verdicts, unchecked, verify_model
from .verdicts import DeviceVerdict, Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.spec.engine.cluster import Spread

__all__ = ["merged_devices", "run_seed", "verify_seeds"]

_RUN = f"{__name__}:run_seed"


def run_seed(options: tuple[Sequence[str], int], seed: int) -> tuple[list[DeviceVerdict], int]:
    """The verdicts on the devices of this machine with one seed, and the number of calls."""
    devices, steps = options
    verdicts = device_verdicts(devices, steps=steps, seed=seed, apart=True)
    return verdicts, sum(it.steps for it in verdicts)


def verify_seeds(  # noqa: PLR0913 -- options
    devices: Sequence[str] | None,
    *,
    steps: int,
    seeds: Sequence[int],
    jobs: int,
    scheduler: str | None = None,
    on_result: Callable[[Spread], object] = lambda _: None,
    on_change: Callable[[Verification], object] = lambda _: None,
) -> Verification:
    """Check the model once, then each device with each seed, in several processes or on several machines.

    Parameters
    ----------
    devices, steps
        As for `verify`.  A device is one of the machine on which a seed runs.
    seeds, jobs, scheduler, on_result
        See `syncedmem.spec.engine.cluster.take_seeds`.
    on_change : callable
        Called with what is known until now, now and then and at the end, even if that is an interrupt.

    Raises
    ------
    InvalidArgumentError
        As `verify` and `take_seeds`; also if no seed has a result.
    NoDeviceError, MissingPackageError
        As `verify` and `take_seeds`.
    """
    names = checked_devices(devices, steps)
    model, start = verify_model(), time.perf_counter()
    result: Verification | None = None

    def answered(spread: Spread) -> None:
        nonlocal result
        result = Verification(
            seeds[0],
            model,
            merged_devices(spread.answers),
            time.perf_counter() - start,
            unchecked(),
            steps=steps,
            requested=tuple(devices or ()),
            spread=spread.as_json(),
        )
        on_change(result)

    spread = take_seeds(
        _RUN, (names, steps), seeds, jobs=jobs, scheduler=scheduler, on_result=on_result, on_answers=answered
    )
    if spread.refused or result is None:
        why = spread.refused or "; ".join(spread.failures)
        raise InvalidArgumentError("seeds", f"{seeds[0]} to {seeds[-1]}", f"seeds that can run ({why})")
    return result


def merged_devices(answers: Sequence[Sequence[DeviceVerdict]]) -> list[DeviceVerdict]:
    """One verdict on each device.  A device that only some machines have was checked."""
    return [_device(alike) for alike in zip(*answers, strict=True)]


def _device(alike: Sequence[DeviceVerdict]) -> DeviceVerdict:
    here = [it for it in alike if it.parts]
    if not here:
        return alike[0]
    first = here[0]
    parts: dict[str, Any] = {part: merged([it.parts[part] for it in here]) for part in first.parts}
    return DeviceVerdict(first.name, "", parts, first.limits, first.detail)
