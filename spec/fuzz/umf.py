"""Pools and providers of the Unified Memory Framework, driven through the functions of libumf.

A library names the functions that return the table of operations: ``pool=umfScalablePoolOps``,
``provider=my_provider``.  A pool stands on the named provider, or on the one for memory of the operating system.
"""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .c_functions import Functions, Instance, calls_of
from .finding import TargetError
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["umf_target"]

_CALLS = calls_of(
    "umfMemoryProviderCreate=ppp:i umfMemoryProviderDestroy=p umfMemoryProviderAlloc=pssp:i "
    "umfMemoryProviderFree=pps:i umfPoolCreate=pppip:i umfPoolDestroy=p umfPoolMalloc=ps:p umfPoolFree=pp:i "
    "umfPoolCalloc=pss:p umfPoolRealloc=pps:p umfPoolAlignedMalloc=pss:p umfPoolMallocUsableSize=ppp:s "
    "umfPoolGetLastAllocationError=p:i"
)
"""The functions of libumf, with the letters of `Abi.calls`."""

_REFUSALS = (1, 2, 8)
"""Results that mean out of memory: of the host, something specific to the provider, or resources of libumf."""
_INVALID, _NOT_SUPPORTED = (3, 4), 5
_UNTOUCHED = (1 << 64) - 1


def umf_target(functions: Functions) -> Target:
    """The target for a new pool, or for a new provider if no pool is named."""
    symbols = functions.symbols
    provider = _create(functions, "MemoryProvider", symbols.get("provider", "umfOsMemoryProviderOps"))
    if "pool" not in symbols:
        return _provider_target(functions, provider)
    return _pool_target(functions, _create(functions, "Pool", symbols["pool"], provider))


def _call(functions: Functions, name: str) -> Any:
    """A function of libumf, or one without arguments that returns a pointer."""
    function = functions.bind_symbol(name, _CALLS.get(name, ":p"))
    if function is None:
        raise TargetError(f"the library has no symbol {name}; link it with libumf")
    return function


def _method(functions: Functions, instance: Instance, prefix: str, name: str) -> Any:
    return partial(_call(functions, prefix + name), instance.address)


def _create(functions: Functions, kind: str, symbol: str, provider: Instance | None = None) -> Instance:
    """A pool or a provider with its default parameters, for which some have a function ``umf...ParamsCreate``."""
    create, destroy = _call(functions, f"umf{kind}Create"), _call(functions, f"umf{kind}Destroy")
    table: int | None = _call(functions, symbol)()
    if table is None:
        raise TargetError(f"{symbol} returned null: libumf was built without it")
    make_parameters = functions.bind_symbol(f"{symbol.removesuffix('Ops')}ParamsCreate", "p:i")
    parameters = None if make_parameters is None else _written(symbol, make_parameters)
    arguments = (table, parameters) if provider is None else (table, provider.address, parameters, 0)
    return Instance(_written(symbol, partial(create, *arguments)), destroy, base=provider)


def _written(symbol: str, create: Callable[[Any], int]) -> int:
    """What a function writes to its last argument."""
    place = c_void_p()
    status = create(byref(place))
    if status or place.value is None:
        raise TargetError(f"libumf refuses {symbol}: result {status}")
    return place.value


def _require(status: int, what: str) -> None:
    """Raise an error for a result that means neither success nor out of memory."""
    if status in _INVALID:
        raise ValueError(f"{what}: an invalid argument")
    if status:
        raise RuntimeError(f"{what}: result {status}")


def _pool_target(functions: Functions, pool: Instance) -> Target:
    method = partial(_method, functions, pool, "umfPool")
    take, free, calloc, realloc = map(method, ("Malloc", "Free", "Calloc", "Realloc"))
    aligned, usable, last_error = map(method, ("AlignedMalloc", "MallocUsableSize", "GetLastAllocationError"))

    def is_supported(handle: int | None) -> bool:
        """Whether a pool has a function, which was tried once."""
        if handle is not None:
            free(handle)
        return handle is not None or last_error() != _NOT_SUPPORTED

    def usable_size(handle: int) -> int:
        # libumf 1.0 returns the size; later ones write it, and return a result.
        written = c_size_t(_UNTOUCHED)
        result: int = usable(handle, byref(written))
        return result if written.value == _UNTOUCHED else written.value

    first = take(64)
    moved = None if first is None else realloc(first, 128)
    has_realloc = moved is not None or last_error() != _NOT_SUPPORTED
    is_supported(first if moved is None else moved)
    has_calloc = is_supported(calloc(1, 64))
    return Target(
        kind="a pool of UMF",
        subject=pool,
        capabilities=functions.abi.record,
        take=take,
        give=lambda handle, _: _require(free(handle), "umfPoolFree"),
        take_aligned=aligned if is_supported(aligned(64, 64)) else None,
        take_zeroed=partial(calloc, 1) if has_calloc else None,
        take_many=calloc if has_calloc else None,
        resize=(lambda handle, size, _: realloc(handle, size)) if has_realloc else None,
        usable_size=usable_size,
        owned=True,
    )


def _provider_target(functions: Functions, provider: Instance) -> Target:
    allocate, free = map(partial(_method, functions, provider, "umfMemoryProvider"), ("Alloc", "Free"))

    def take(size: int, alignment: int = 0) -> int | None:
        place = c_void_p()
        status = allocate(size, alignment, byref(place))
        if status in _REFUSALS:
            return None
        _require(status, "umfMemoryProviderAlloc")
        return place.value

    return Target(
        kind="a provider of UMF",
        subject=provider,
        capabilities=replace(functions.abi.record, sized_free=True),
        take=take,
        give=lambda handle, size: _require(free(handle, size), "umfMemoryProviderFree"),
        take_aligned=take,
        owned=True,
    )
