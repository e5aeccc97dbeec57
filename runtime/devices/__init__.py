"""The memory of each kind of device, with its arithmetic beside it.

``registry`` finds devices by name, and ``factories`` by class.  ``host`` is the host's memory, ``cuda`` and ``opencl``
are over CuPy and PyOpenCL, and ``simulated`` is a second memory space inside this process.
"""

from .registry import DEVICE_NAMES, DeviceReport, named_device, probe, resolve_device, resolve_host

__all__ = ["DEVICE_NAMES", "DeviceReport", "named_device", "probe", "resolve_device", "resolve_host"]
