"""Several threads that work at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def run_in_threads(*work: Callable[[], object]) -> None:
    """Run functions in threads of their own; fail if one raises, or does not end."""
    wrong: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 -- reported below
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert [] == wrong
