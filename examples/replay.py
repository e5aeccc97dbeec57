"""Replay test vectors on a port: ten lines, and a port to try them on.

syncedmem vectors --out build/vectors --suite caffe/tour
python examples/replay.py < build/vectors/caffe/tour.jsonl
"""

import json
import sys

from port import Port  # yours: this example compares heads; docs/vectors.md says what else there is

wrong = 0
for line in sys.stdin:
    vector, port = json.loads(line), Port()
    for step in vector["steps"]:
        port.perform(step["call"])
        if step.get("head", port.head) != port.head:
            print(vector["id"], step["call"], "leads to", port.head, "and not to", step["head"])
            wrong += 1
            break
sys.exit(wrong > 0)
