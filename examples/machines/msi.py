"""A line of a cache that keeps coherent by MSI: what its processor does, and what it sees on the bus.

Source: Hennessy and Patterson, Computer Architecture: A Quantitative Approach, section on snooping protocols
(write-invalidate for a write-back cache).

    syncedmem diagram --edition examples/machines/msi.py:LINE -o msi.svg
"""

from __future__ import annotations

from syncedmem.model import Rule, declare

LINE = declare(
    "msi",
    "A line of a cache with the protocol MSI",
    heads="INVALID SHARED MODIFIED",
    calls="read write bus_read bus_write evict",
    actions={"read_miss": "", "write_miss": "", "invalidate_others": "", "write_back": ""},
    rows=[
        Rule("read", "INVALID", "SHARED", "read_miss"),
        Rule("read", "SHARED", "SHARED"),
        Rule("read", "MODIFIED", "MODIFIED"),
        Rule("write", "INVALID", "MODIFIED", "write_miss"),
        Rule("write", "SHARED", "MODIFIED", "invalidate_others"),
        Rule("write", "MODIFIED", "MODIFIED"),
        Rule("bus_read", "INVALID", "INVALID"),
        Rule("bus_read", "SHARED", "SHARED"),
        Rule("bus_read", "MODIFIED", "SHARED", "write_back"),
        Rule("bus_write", "INVALID SHARED", "INVALID"),
        Rule("bus_write", "MODIFIED", "INVALID", "write_back"),
        Rule("evict", "INVALID SHARED", "INVALID"),
        Rule("evict", "MODIFIED", "INVALID", "write_back"),
    ],
    cite="Hennessy and Patterson, snooping protocols",
)
