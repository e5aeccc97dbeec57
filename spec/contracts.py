"""What is checked one by one: what may be adopted, what is refused, and what holds at the edges."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import Call, Input, Mode

from .subject import Bench, Violation
from .trial import Trial, pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["CONTRACTS", "DEVICE_CONTRACTS"]

_SIZE = 48
_READ, _WRITE, _ADOPT = Input(Call.CPU_DATA), Input(Call.MUTABLE_CPU_DATA), Input(Call.SET_CPU_DATA)
_GPU_READ, _GPU_WRITE, _GPU_ADOPT = Input(Call.GPU_DATA), Input(Call.MUTABLE_GPU_DATA), Input(Call.SET_GPU_DATA)
_RELEASE = Input(Call.RELEASE)


def _refused(trial: Trial, requirement: str, line: str, call: Callable[[], object]) -> None:
    """Something that must raise, and change nothing."""
    trial.script.append(line)
    entries, live = list(trial.ledger.entries), dict(trial.ledger.live)
    try:
        call()
    except Exception:  # noqa: BLE001 -- a subject refuses with whatever it likes
        if trial.ledger.entries != entries or trial.ledger.live != live:
            raise Violation(
                requirement, "it was refused, but not without allocator calls", tuple(trial.script)
            ) from None
        trial.compare_untouched()
        return
    raise Violation(requirement, "it was not refused", tuple(trial.script))


def _started(bench: Bench, *word: Input, size: int = _SIZE) -> Trial:
    trial = Trial(bench, size)
    for entry in word:
        trial.perform(entry)
    return trial


def own_host_buffer(bench: Bench) -> Trial:
    """The memory's own host buffer is not adopted (R35)."""
    trial = _started(bench, _WRITE)
    own = trial.subject.mutable_cpu_data()
    line = "memory.set_cpu_data(memory.mutable_cpu_data())"
    _refused(trial, "R35-own-buffer-refused", line, lambda: trial.subject.set_cpu_data(own))
    return trial


def own_device_buffer(bench: Bench) -> Trial:
    """The memory's own device buffer is not adopted (R35)."""
    trial = _started(bench, _GPU_WRITE)
    own = trial.subject.mutable_gpu_data()
    line = "memory.set_gpu_data(memory.mutable_gpu_data())"
    _refused(trial, "R35-own-buffer-refused", line, lambda: trial.subject.set_gpu_data(own))
    return trial


def unsuitable_host_buffers(bench: Bench) -> Trial:
    """Host buffers that are too small, read-only, not contiguous, or no host memory (R36 to R39)."""
    trial = _started(bench, _WRITE)
    wide = memoryview(bytearray(2 * _SIZE))
    cases: list[tuple[str, str, object]] = [
        ("R36-too-small-refused", "bytearray(size - 1)", bytearray(_SIZE - 1)),
        ("R36-too-small-refused", "bytearray()", bytearray()),
        ("R37-read-only-refused", "bytes(size)", bytes(_SIZE)),
        ("R38-not-contiguous-refused", "memoryview(bytearray(2 * size))[::2]", wide[::2]),
        ("R39-wrong-kind-refused", "object()", object()),
        ("R39-wrong-kind-refused", "12345", 12345),
    ]
    if bench.device is not None:
        cases.append(("R39-wrong-kind-refused", "device.empty(size)", bench.device.empty(_SIZE)))
    for requirement, text, buffer in cases:
        line = f"memory.set_cpu_data({text})"
        _refused(trial, requirement, line, partial(trial.subject.set_cpu_data, buffer))
    return trial


def unsuitable_device_buffers(bench: Bench) -> Trial:
    """Device buffers that are too small, or no memory of this device (R36, R39)."""
    trial = _started(bench, _GPU_WRITE)
    device = cast("Any", bench.device)
    cases: list[tuple[str, str, object]] = [
        ("R36-too-small-refused", "device.empty(size - 1)", device.empty(_SIZE - 1)),
        ("R39-wrong-kind-refused", "bytearray(size)", bytearray(_SIZE)),
        ("R39-wrong-kind-refused", "object()", object()),
    ]
    if bench.elsewhere is not None:
        cases.append(("R39-wrong-kind-refused", "other_device.empty(size)", bench.elsewhere.empty(_SIZE)))
    for requirement, text, buffer in cases:
        line = f"memory.set_gpu_data({text})"
        _refused(trial, requirement, line, partial(trial.subject.set_gpu_data, buffer))
    return trial


class _Watched(bytearray):
    """A buffer that can be watched."""

    __slots__ = ("__weakref__",)


def adopted_buffer_lives(bench: Bench) -> Trial:
    """A buffer that only the memory knows of still holds its bytes (R40)."""
    trial = _started(bench)
    content = pattern(3, _SIZE)
    buffer = _Watched(content)
    watch = weakref.ref(buffer)
    trial.script.append("memory.set_cpu_data(host_buffer); del host_buffer; gc.collect()")
    try:
        trial.subject.set_cpu_data(buffer)
        del buffer
        gc.collect()
        shown = bytes(memoryview(trial.subject.cpu_data()))
    except Exception as error:
        raise Violation("R40-kept-alive", f"cpu_data raised {error!r}", tuple(trial.script)) from error
    if watch() is None or shown != content:
        raise Violation("R40-kept-alive", "the adopted buffer was let go", tuple(trial.script))
    trial.oracle = trial.oracle.adopt("cpu", content).after
    return trial


def bad_sizes(bench: Bench) -> None:
    """Sizes no memory can have are refused when it is made (R45)."""
    trial = _started(bench)
    bad: tuple[Any, ...] = (-1, -(1 << 70), 1 << 64, 1.5, "16", None)
    for size in bad:
        line = f"make({size!r})"
        _refused(
            trial,
            "R45-bad-size-refused",
            line,
            partial(bench.make, size, host=bench.host, device=bench.device),
        )
    trial.finish()


def after_release(bench: Bench) -> Trial:
    """After release every call is refused, and a second release does nothing (R48, R49)."""
    trial = _started(bench, _WRITE, _RELEASE)
    for entry in (_READ, _WRITE, _ADOPT, _GPU_READ, _GPU_WRITE, _GPU_ADOPT, Input(Call.ASYNC_GPU_PUSH)):
        trial.perform(entry)
    try:
        trial.perform(_RELEASE)
    except Violation as violation:
        raise Violation("R49-release-twice", violation.message, violation.script) from violation
    return trial


def bad_streams(bench: Bench) -> Trial:
    """What is no stream of the device is not pushed on (R52)."""
    trial = _started(bench, _WRITE)
    for stream in (None, 0, "stream", object()):
        line = f"memory.async_gpu_push(stream={stream!r})"
        _refused(trial, "R52-bad-stream-refused", line, partial(trial.subject.async_gpu_push, stream=stream))
    return trial


def elsewhere(bench: Bench) -> Trial | None:
    """The memory works on its own device while another is current, and leaves that current (R50)."""
    if bench.elsewhere is None:
        return None
    with bench.elsewhere.using():
        trial = _started(bench, _WRITE, _GPU_READ, _GPU_WRITE, _READ, _GPU_ADOPT, _ADOPT, _GPU_WRITE)
        trial.finish()
    return trial


def device_check(bench: Bench) -> None:
    """With the check on, every call is refused while another device is current, and works again after (R51)."""
    if not bench.check_device or bench.elsewhere is None:
        return
    make: Any = bench.make
    strict = Bench(bench.name, partial(make, check_device=True), bench.host, bench.device, bench.profile)
    trial = _started(strict, _WRITE)
    calls: tuple[tuple[str, Callable[[], object]], ...] = (
        ("cpu_data()", trial.subject.cpu_data),
        ("mutable_cpu_data()", trial.subject.mutable_cpu_data),
        ("gpu_data()", trial.subject.gpu_data),
        ("mutable_gpu_data()", trial.subject.mutable_gpu_data),
        ("set_cpu_data(host_buffer)", lambda: trial.subject.set_cpu_data(bytearray(_SIZE))),
        ("close()", trial.subject.close),
    )
    for text, call in calls:
        with bench.elsewhere.using():
            _refused(trial, "R51-device-check", f"memory.{text}  # another device is current", call)
    for entry in (_READ, _GPU_READ):
        trial.perform(entry)
    trial.finish()


def several_at_once(bench: Bench) -> None:
    """What is done to one memory leaves its neighbours alone (R53)."""
    word = (_WRITE, _GPU_READ, _ADOPT, _GPU_WRITE, _READ) if bench.device is not None else (_WRITE, _ADOPT, _READ)
    trials = [_started(bench, *word[:length]) for length in range(len(word))]
    for entry in word:
        for trial in trials:
            trial.perform(entry)
            for other in trials:
                other.compare_untouched()
    for trial in trials:
        trial.finish()
        for other in trials:
            other.compare_untouched()


@contextmanager
def _in_mode(trial: Trial, mode: Mode) -> Generator[None]:
    before, trial.mode = trial.mode, mode
    yield
    trial.mode = before


def mode_between(bench: Bench) -> Trial:
    """Memory is freed as it was allocated although the mode has changed in between (R25)."""
    trial = _started(bench)
    for mode in Mode:
        trial = _started(bench)
        with _in_mode(trial, mode):
            trial.perform(_WRITE)
        with _in_mode(trial, Mode.CPU if mode is Mode.GPU else Mode.GPU):
            trial.perform(_ADOPT)
    return trial


CONTRACTS: tuple[Callable[[Bench], Trial | None], ...] = (
    own_host_buffer,
    unsuitable_host_buffers,
    adopted_buffer_lives,
    bad_sizes,
    after_release,
    several_at_once,
    mode_between,
)
"""The checks that every bench can be put to."""

DEVICE_CONTRACTS: tuple[Callable[[Bench], Trial | None], ...] = (
    own_device_buffer,
    unsuitable_device_buffers,
    bad_streams,
    elsewhere,
    device_check,
)
"""The checks for benches with a device."""
