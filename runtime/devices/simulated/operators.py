"""What the operators of simulated arrays compute: item by item, by the functions of NumPy that have their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidShapeError

from ...allocators.rehearsal import rehearse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...allocators.pointers import HostArray

__all__ = ["NOT_BOTH", "OPERATORS", "Outcome", "compute", "number", "number_as"]

_IDENTITIES = frozenset({np.equal, np.not_equal})

OPERATORS: frozenset[np.ufunc] = frozenset(
    {
        *(*_IDENTITIES, np.less, np.less_equal, np.greater, np.greater_equal),
        *(np.add, np.subtract, np.multiply, np.true_divide, np.power),
        *(np.positive, np.negative, np.absolute),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert),
    },
)
"""The functions that take simulated arrays, also through an operator: those that CuPy's and PyOpenCL's arrays have."""

NOT_BOTH = "CuPy's and PyOpenCL's arrays do not both have it; compute on the host, with get()"
"""Why anything else is refused: a program that needs it would not work on the one or the other device."""


class Outcome:
    """The shape and the type of a result, found before anything is computed.

    Parameters
    ----------
    function : numpy.ufunc
        One of `OPERATORS`.
    operands : list
        Numbers, and arrays of any kind.

    Raises
    ------
    InvalidShapeError
        If the shapes do not fit together as NumPy broadcasts them.
    InvalidArgumentError
        If NumPy cannot compute with these types.
    """

    __slots__ = ("_name", "dtype", "shape")

    def __init__(self, function: np.ufunc, operands: list[Any]) -> None:
        shapes = [getattr(operand, "shape", ()) for operand in operands]
        try:
            self.shape: tuple[int, ...] = np.broadcast_shapes(*shapes)
        except ValueError:
            raise InvalidShapeError(shapes[-1], f"it does not fit {shapes[0]} in {function.__name__}") from None
        # NumPy chooses the type, and refuses what it cannot compute, without looking at a single item.
        try:
            self.dtype: np.dtype[Any] = rehearse(function, *operands).dtype
        except Exception as error:
            expected = f"numbers that NumPy can take in {function.__name__}"
            raise InvalidArgumentError("operands", tuple(operands), expected) from error
        self._name = function.__name__

    def check_into(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Check that an array of a shape and a type can take the result.

        Raises
        ------
        InvalidShapeError
            If it has another shape.
        InvalidArgumentError
            If it cannot: a number with a fraction does not go into an integer, nor a complex number into a real one.
        """
        if shape != self.shape:
            raise InvalidShapeError(shape, f"the result of {self._name} has the shape {self.shape}")
        if not np.can_cast(self.dtype, dtype, "same_kind"):
            raise InvalidArgumentError("out", dtype, f"a type that can hold {self.dtype}, the type of {self._name}")


def number_as(dtype: np.dtype[Any], value: object) -> Any:
    """A number as an item of a type, converted as C does it."""
    expected = f"a number that {dtype} can hold; set() copies arrays of the host"
    plain = number(None, value, expected)
    try:
        with np.errstate(all="ignore"):
            return dtype.type(plain)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError("value", value, expected) from error


def number(function: np.ufunc | None, operand: Any, expected: str) -> Any:
    """An operand that is no simulated array, after a check that it is a number.

    An object that is equal to nothing but itself, such as None, can be compared too, as in CuPy: it is equal to no
    item.  NaN stands for it.
    """
    value = operand.item() if _is_single(operand) else operand
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return cast("Any", value)
    if function in _IDENTITIES and _is_equal_to_itself_alone(operand):
        return np.nan
    raise InvalidArgumentError("operand", operand, expected)


def _is_single(operand: Any) -> bool:
    """Whether an operand is a number in a NumPy array without axes."""
    return isinstance(operand, np.ndarray) and np.ndim(cast("Any", operand)) == 0


def _is_equal_to_itself_alone(operand: object) -> bool:
    return operand is None or type(operand).__eq__ is object.__eq__  # that of None is its own in newer Pythons


def compute(function: Callable[..., object], *operands: Any, out: HostArray) -> None:
    """Compute with the items themselves, when the turn of the work comes; a device gives no warnings."""
    with np.errstate(all="ignore"):
        function(*operands, out=out, casting="same_kind")
