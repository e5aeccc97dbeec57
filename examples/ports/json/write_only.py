"""port.py with calls that copy nothing, because all is written: the machine of examples/machines/write_only.py."""

import port

as_caffe = port.call


def call(it, op, side, mode, buffer):
    if not op.startswith("overwrite"):
        return as_caffe(it, op, side, mode, buffer)
    port.allocate(it, side, mode)
    it["head"] = port.HEAD[side]
    return None


port.call = call
port.HELLO |= {"name": "write_only.py", "edition": "write_only"}
port.serve()
