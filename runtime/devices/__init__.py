"""The memory of each kind of device, with its arithmetic next to it.

``registry`` finds devices by name.  ``host`` is host memory.  ``cuda`` uses CuPy and
``opencl`` uses PyOpenCL.  ``simulated`` is a second memory space inside this process.
"""

from .registry import DEVICE_NAMES, DeviceReport, named_device, probe, resolve_device, resolve_host

__all__ = ["DEVICE_NAMES", "DeviceReport", "named_device", "probe", "resolve_device", "resolve_host"]
