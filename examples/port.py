"""A port that keeps a head and nothing else, for examples/replay.py."""


class Port:
    """A head, and which sides are fresh."""

    def __init__(self) -> None:
        self.fresh = set[str]()

    @property
    def head(self) -> str:
        """The head, by which sides are fresh."""
        if len(self.fresh) == 1:
            return f"HEAD_AT_{next(iter(self.fresh)).upper()}"
        return "SYNCED" if self.fresh else "UNINITIALIZED"

    def perform(self, call: str) -> None:
        """Do one call."""
        side = "gpu" if "gpu" in call else "cpu"
        if call in ("set_cpu_data", "set_gpu_data", "mutable_cpu_data", "mutable_gpu_data"):
            self.fresh = {side}
        elif call in ("cpu_data", "gpu_data") or (call == "async_gpu_push" and self.fresh == {"cpu"}):
            self.fresh = self.fresh | {side}
