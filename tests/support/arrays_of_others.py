"""Arrays of libraries that have one protocol each, over an array that has them all."""

from __future__ import annotations

from typing import Any


class Interface:
    """An array of another library that has only ``__cuda_array_interface__``."""

    def __init__(self, array: Any, **changes: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


class OnlyDLPack:
    """An array that has only DLPack, with versions or without."""

    def __init__(self, array: Any, *, old: bool = False) -> None:
        self._array = array
        self._old = old

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        if self._old and options.pop("max_version", None):
            raise TypeError("max_version")
        return self._array.__dlpack__(**options)
