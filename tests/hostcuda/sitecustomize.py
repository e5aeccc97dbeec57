"""Loads hostcuda when Python starts: Python imports this module if its folder is on PYTHONPATH."""

import hostcuda_cupy

hostcuda_cupy.install()
