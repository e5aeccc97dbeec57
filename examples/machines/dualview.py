"""Kokkos' DualView: two counters of modifications, of which the larger one says which view is newer.

Source: Kokkos, containers/src/Kokkos_DualView.hpp (modify_host, modify_device, sync_host, sync_device,
clear_sync_state).  Only the order of the two counters matters, so the machine has a head for each order.  The user says
what was modified and when to synchronise; nothing happens by itself.  This is a build with
KOKKOS_ENABLE_DEBUG_DUALVIEW_MODIFY_CHECK, which aborts when both views would be modified: a refusal here.

    syncedmem diagram --edition examples/machines/dualview.py:COUNTERS -o dualview.svg
"""

from __future__ import annotations

from syncedmem.model import Rule, declare

COUNTERS = declare(
    "dualview",
    "The counters of Kokkos' DualView",
    heads="IN_SYNC HOST_NEWER DEVICE_NEWER",
    calls="modify_host modify_device sync_host sync_device clear_sync_state",
    actions={"copy_to_cpu": "", "copy_to_gpu": ""},
    rows=[
        Rule("modify_host", "IN_SYNC HOST_NEWER", "HOST_NEWER"),
        Rule("modify_host", "DEVICE_NEWER", refusal="concurrent_modification"),
        Rule("modify_device", "IN_SYNC DEVICE_NEWER", "DEVICE_NEWER"),
        Rule("modify_device", "HOST_NEWER", refusal="concurrent_modification"),
        Rule("sync_host", "IN_SYNC", "IN_SYNC"),
        Rule("sync_host", "HOST_NEWER", "HOST_NEWER"),
        Rule("sync_host", "DEVICE_NEWER", "IN_SYNC", "copy_to_cpu"),
        Rule("sync_device", "IN_SYNC", "IN_SYNC"),
        Rule("sync_device", "DEVICE_NEWER", "DEVICE_NEWER"),
        Rule("sync_device", "HOST_NEWER", "IN_SYNC", "copy_to_gpu"),
        Rule("clear_sync_state", "IN_SYNC HOST_NEWER DEVICE_NEWER", "IN_SYNC"),
    ],
    cite="containers/src/Kokkos_DualView.hpp",
)
