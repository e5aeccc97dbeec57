"""Pools and providers of the Unified Memory Framework, driven through the functions of libumf.

A library names the functions that return the table of operations: ``pool=umfScalablePoolOps``,
``provider=my_provider``.  A pool stands on the named provider, or on the one for memory of the operating system.
"""

from __future__ import annotations

from ctypes import POINTER, byref, c_int, c_size_t, c_uint32, c_void_p
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .c_functions import C_RECORD, Functions
from .finding import TargetError
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["umf_target"]

_REFUSALS = (1, 2, 8)
"""Results that mean out of memory: of the host, something specific to the provider, or resources of libumf."""
_INVALID, _NOT_SUPPORTED = (3, 4), 5
_UNTOUCHED = (1 << 64) - 1
_PROVIDER = "umfOsMemoryProviderOps"


def umf_target(functions: Functions) -> Target:
    """The target for a new pool, or for a new provider if no pool is named.

    Raises
    ------
    TargetError
        If there is no such table, or if libumf refuses it.
    """
    umf = _Umf(functions)
    provider = umf.provider(functions.symbols.get("provider", _PROVIDER))
    if "pool" in functions.symbols:
        return _pool_target(umf, umf.pool(functions.symbols["pool"], provider), provider)
    return _provider_target(umf, provider)


class _Made:
    """A pool or a provider; what it stands on is destroyed after it."""

    def __init__(self, address: int, destroy: Callable[[int], object], below: _Made | None = None) -> None:
        self.address = address
        self._destroy = destroy
        self._below = below

    def close(self) -> None:
        """Destroy it."""
        self._destroy(self.address)
        if self._below is not None:
            self._below.close()


class _Umf:
    """The functions of libumf."""

    def __init__(self, functions: Functions) -> None:
        self._bind = functions.bind_symbol

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """The function with a name.

        Raises
        ------
        TargetError
            If the library does not have it, and is not linked with a library that does.
        """
        found = self._bind(name, result, *arguments)
        if found is None:
            raise TargetError(f"the library has no symbol {name}; link it with libumf")
        return found

    def provider(self, symbol: str) -> _Made:
        """A new provider."""
        create = self.call("umfMemoryProviderCreate", c_int, c_void_p, c_void_p, POINTER(c_void_p))
        destroy = self.call("umfMemoryProviderDestroy", None, c_void_p)
        return _Made(_created(symbol, partial(create, self._table(symbol), self._parameters(symbol))), destroy)

    def pool(self, symbol: str, provider: _Made) -> _Made:
        """A new pool on a provider."""
        create = self.call("umfPoolCreate", c_int, c_void_p, c_void_p, c_void_p, c_uint32, POINTER(c_void_p))
        destroy = self.call("umfPoolDestroy", None, c_void_p)
        with_all = partial(create, self._table(symbol), provider.address, self._parameters(symbol), 0)
        return _Made(_created(symbol, with_all), destroy, provider)

    def _table(self, symbol: str) -> int:
        table: int | None = self.call(symbol, c_void_p)()
        if table is None:
            raise TargetError(f"{symbol} returned null: libumf was built without it")
        return table

    def _parameters(self, symbol: str) -> int | None:
        """The default parameters: those of ``umfDisjointPoolOps`` are from ``umfDisjointPoolParamsCreate``."""
        make = self._bind(f"{symbol.removesuffix('Ops')}ParamsCreate", c_int, POINTER(c_void_p))
        return None if make is None else _created(symbol, make)


def _created(symbol: str, create: Callable[[Any], int]) -> int:
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


def _pool_target(umf: _Umf, pool: _Made, provider: _Made) -> Target:
    del provider
    at, place, size = pool.address, c_void_p, c_size_t
    take = umf.call("umfPoolMalloc", place, place, size)
    free = umf.call("umfPoolFree", c_int, place, place)
    calloc = umf.call("umfPoolCalloc", place, place, size, size)
    realloc = umf.call("umfPoolRealloc", place, place, place, size)
    aligned = umf.call("umfPoolAlignedMalloc", place, place, size, size)
    usable = umf.call("umfPoolMallocUsableSize", size, place, place, POINTER(size))
    last = umf.call("umfPoolGetLastAllocationError", c_int, place)

    def supported(handle: int | None) -> bool:
        """Whether a pool has a function, which was tried once."""
        if handle is not None:
            free(at, handle)
        return handle is not None or last(at) != _NOT_SUPPORTED

    def usable_size(handle: int) -> int:
        # libumf 1.0 returns the size; later ones write it, and return a result.
        written = size(_UNTOUCHED)
        result: int = usable(at, handle, byref(written))
        return result if written.value == _UNTOUCHED else written.value

    first = take(at, 64)
    moved = None if first is None else realloc(at, first, 128)
    has_realloc = moved is not None or last(at) != _NOT_SUPPORTED
    supported(first if moved is None else moved)
    has_calloc = supported(calloc(at, 1, 64))
    return Target(
        kind="a pool of UMF",
        subject=pool,
        capabilities=C_RECORD,
        take=lambda size: take(at, size),
        give=lambda handle, _: _require(free(at, handle), "umfPoolFree"),
        take_aligned=(lambda size, alignment: aligned(at, size, alignment)) if supported(aligned(at, 64, 64)) else None,
        take_zeroed=(lambda size: calloc(at, 1, size)) if has_calloc else None,
        take_many=(lambda count, size: calloc(at, count, size)) if has_calloc else None,
        resize=(lambda handle, size, _: realloc(at, handle, size)) if has_realloc else None,
        usable_size=usable_size,
        owned=True,
    )


def _provider_target(umf: _Umf, provider: _Made) -> Target:
    at = provider.address
    allocate = umf.call("umfMemoryProviderAlloc", c_int, c_void_p, c_size_t, c_size_t, POINTER(c_void_p))
    free = umf.call("umfMemoryProviderFree", c_int, c_void_p, c_void_p, c_size_t)

    def take(size: int, alignment: int = 0) -> int | None:
        place = c_void_p()
        status = allocate(at, size, alignment, byref(place))
        if status in _REFUSALS:
            return None
        _require(status, "umfMemoryProviderAlloc")
        return place.value

    return Target(
        kind="a provider of UMF",
        subject=provider,
        capabilities=replace(C_RECORD, sized_free=True),
        take=take,
        give=lambda handle, size: _require(free(at, handle, size), "umfMemoryProviderFree"),
        take_aligned=take,
        owned=True,
    )
