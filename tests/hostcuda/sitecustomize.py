"""Loads the stand-in when Python starts: it imports this module if the folder is on PYTHONPATH."""

import hostcuda_cupy

hostcuda_cupy.install()
