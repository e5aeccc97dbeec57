"""For tests of programs that use memories: pytest loads this by itself wherever the package is installed.

Two fixtures, ``copies`` and ``no_copies``, and a marker with the limits of the second one::

    def test_one_step_copies_up_once(copies, blob):
        step(blob)
        assert (copies.up, copies.down) == (1, 0)

    @pytest.mark.no_copies(up=1, down=0)
    def test_a_step_brings_nothing_back(blob):
        step(blob)

They count what the test itself does, and not its other fixtures.  ``-p no:syncedmem`` turns them off.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from syncedmem.runtime import CopyLog

__all__ = ["copies", "no_copies", "pytest_configure", "pytest_runtest_call"]

_MARKER = "no_copies"
_WAITING = pytest.StashKey[list["CopyLog"]]()
"""The logs of a test that has not begun."""
_RUNNING = pytest.StashKey[ExitStack]()
"""What a test that has begun leaves at its end."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(at_most=None, *, bytes=None, allocations=None, up=None, down=None): "
        "refuse what the test copies between host and device, as syncedmem.no_copies does.",
    )


@pytest.fixture
def copies(request: pytest.FixtureRequest) -> CopyLog:
    """What the test copies and allocates, as ``with syncedmem.copies() as log:`` around it."""
    from syncedmem.runtime import copies as counted  # noqa: PLC0415 -- here, so that pytest starts without NumPy

    return _around(request.node, counted())


@pytest.fixture
def no_copies(request: pytest.FixtureRequest) -> CopyLog:
    """Refuse what the test copies, as ``with syncedmem.no_copies() as log:`` around it; the marker has the limits."""
    return _around(request.node, _guard(request.node))


@pytest.hookimpl(hookwrapper=True)  # the older form, which every release of pytest has
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Count while the test itself runs."""
    waiting = item.stash.get(_WAITING, list["CopyLog"]())
    item.stash[_WAITING] = []  # a test that is run again has new ones
    with ExitStack() as stack:
        if item.get_closest_marker(_MARKER) is not None:
            stack.enter_context(_guard(item))
        for log in waiting:
            stack.enter_context(log)
        item.stash[_RUNNING] = stack
        yield
        del item.stash[_RUNNING]


def _guard(item: pytest.Item) -> CopyLog:
    from syncedmem.runtime import no_copies as refused  # noqa: PLC0415 -- as above

    marker = item.get_closest_marker(_MARKER)
    return refused() if marker is None else refused(*marker.args, **marker.kwargs)


def _around(item: pytest.Item, log: CopyLog) -> CopyLog:
    """Have a log count while the test runs; from now on if it runs already."""
    running = item.stash.get(_RUNNING, None)
    if running is None:
        item.stash.setdefault(_WAITING, []).append(log)
    else:
        running.enter_context(log)
    return log
