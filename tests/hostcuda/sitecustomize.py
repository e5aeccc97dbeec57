"""Python imports this at its start where the folder of it is on PYTHONPATH: so the stand-in is there from the beginning."""

import hostcuda_cupy  # noqa: F401 -- it puts itself in place
