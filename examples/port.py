"""A port that only keeps a head, for examples/replay.py."""

SETS = ("set_cpu_data", "set_gpu_data")
WRITES = ("mutable_cpu_data", "mutable_gpu_data")
READS = ("cpu_data", "gpu_data", "async_gpu_push")


class Port:
    """Which sides are fresh, and whether there is a device."""

    def __init__(self, edition: str) -> None:
        self.has_gpu = edition != "cpu_only"
        self.fresh = set[str]()

    @property
    def head(self) -> str:
        """The head; it follows from the sides that are fresh."""
        if len(self.fresh) == 1:
            return f"HEAD_AT_{next(iter(self.fresh)).upper()}"
        return "SYNCED" if self.fresh else "UNINITIALIZED"

    def perform(self, call: str, argument: object, *, fails: bool) -> str | None:
        """Do one call, or return why it is refused; if an action fails, nothing may change."""
        side = "gpu" if "gpu" in call else "cpu"
        if side == "gpu" and not self.has_gpu:
            return "no_gpu"
        if call in SETS and argument is None:
            return "null_data"
        if call in SETS and argument == {"own": True}:
            return "own_buffer"
        if call == "async_gpu_push" and self.fresh != {"cpu"}:
            return "not_head_at_cpu"
        if fails:
            return "failed"
        if call in (*SETS, *WRITES):
            self.fresh = {side}
        elif call in READS:
            self.fresh = self.fresh | {side}
        return None
