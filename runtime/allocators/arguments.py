"""What arguments and results are, as far as type checkers can say it; nothing here is used when a program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Protocol, SupportsFloat, TypeVar

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    from syncedmem.model.interface import DeviceArray

__all__ = ["DeviceMemory", "HostMemory", "Numbers", "ReadOnlyArray"]

ShapeT = TypeVar("ShapeT", bound=tuple[int, ...])
DtypeT = TypeVar("DtypeT", bound=np.dtype[Any])

if TYPE_CHECKING:

    class ReadOnlyArray(np.ndarray[ShapeT, DtypeT]):
        """A NumPy array that stays read-only: a type checker refuses ``array[0] = 1``, as NumPy does."""

        def __setitem__(self, key: Never, value: Never, /) -> None: ...  # type: ignore[override]

else:
    ReadOnlyArray = np.ndarray


class SupportsArray(Protocol):
    """An array of another library, which NumPy can make its own."""

    def __array__(self) -> Any: ...


class SupportsArrayInterface(Protocol):
    """An array of another library in host memory."""

    @property
    def __array_interface__(self) -> Any: ...


class SupportsCudaArrayInterface(Protocol):
    """An array of another library in memory of CUDA."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class SupportsDLPack(Protocol):
    """An array of another library, wherever it is."""

    def __dlpack__(self) -> Any: ...


if TYPE_CHECKING:
    HostMemory: TypeAlias = Buffer | SupportsArrayInterface | SupportsDLPack
    DeviceMemory: TypeAlias = DeviceArray | SupportsCudaArrayInterface | SupportsDLPack
    # A text is a sequence too, so the sequences are named one by one.
    Numbers: TypeAlias = (
        SupportsFloat
        | complex
        | list[Any]
        | tuple[Any, ...]
        | range
        | Buffer
        | SupportsArray
        | SupportsArrayInterface
        | SupportsDLPack
    )
else:
    HostMemory = DeviceMemory = Numbers = Any
