"""Kokkos' DualView: two counters of modifications, which only their order tells apart.

containers/src/Kokkos_DualView.hpp: modify_host, modify_device, sync_host, sync_device, clear_sync_state.  Nothing is
copied but by a sync, and the caller says what it has modified: both sides at once is an error.  Both views are
allocated, and zeroed, when the DualView is made.  After clear_sync_state both count as fresh,
although nothing was copied: the checkers of the formats ``tla`` and ``promela`` find that.
"""

from syncedmem.model import Action, Call, Machine, Refusal, Row

_ROWS = []
for here, held, other in (("host", "HOST_MODIFIED", "DEVICE_MODIFIED"), ("device", "DEVICE_MODIFIED", "HOST_MODIFIED")):
    _ROWS += [
        Row(f"modify_{here}", ("SYNCED", held), held),
        Row(f"modify_{here}", other, refused="concurrent_modification"),
        Row(f"sync_{here}", ("SYNCED", held)),
        Row(f"sync_{here}", other, "SYNCED", do=f"deep_copy_to_{here}"),
    ]
_ROWS += [Row("clear_sync_state", ("SYNCED", "HOST_MODIFIED", "DEVICE_MODIFIED"), "SYNCED")]

KOKKOS = Machine(
    "kokkos",
    _ROWS,
    title="Kokkos' DualView",
    sides=("host", "device"),
    heads={"SYNCED": ("host", "device"), "HOST_MODIFIED": "host", "DEVICE_MODIFIED": "device"},
    calls=[
        Call("modify_host", "write", "host"),
        Call("sync_host", "read", "host"),
        Call("modify_device", "write", "device"),
        Call("sync_device", "read", "device"),
        Call("clear_sync_state"),
    ],
    actions=[
        Action("deep_copy_to_host", "copy", "host", "device"),
        Action("deep_copy_to_device", "copy", "device", "host"),
    ],
    refusals=[Refusal("concurrent_modification", text="the other view was modified and not synchronised")],
)
