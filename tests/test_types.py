"""What type checkers make of the public names.

`make types` checks this file.  An error that is expected is ignored on its line.  If mypy or pyright finds no error
there, that is an error.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true, reportUnusedImport=false

from __future__ import annotations

import pytest

import syncedmem


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Blub'"):
        from syncedmem import Blub  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(ImportError, match="cannot import name 'PoolAlocator'"):
        from syncedmem import PoolAlocator  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(ImportError, match="cannot import name 'rrm'"):
        from syncedmem.interop import rrm  # type: ignore[attr-defined] # noqa: F401 -- there is none
    with pytest.raises(AttributeError, match="has no attribute 'Blub'"):
        _ = syncedmem.Blub  # type: ignore[attr-defined]
