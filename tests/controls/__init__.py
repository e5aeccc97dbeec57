"""The control group: right memories, ports and allocators, each of which takes a freedom that the rules leave.

Nobody right may be accused.  Beside each stands its twin, which claims the same freedom and takes more than it gives,
and the requirement that refuses that.
"""
