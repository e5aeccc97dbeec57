"""Replay test vectors on a port: ten lines, and a port to try them on.

syncedmem vectors --out build/vectors
python examples/replay.py < build/vectors/caffe/tour.jsonl

You can replay every suite. This program compares heads, refusals and failures; docs/vectors.md says what else you can
compare.
"""

import json
import sys

from port import Port  # yours

count = wrong = 0
for line in sys.stdin:
    vector = json.loads(line)
    port, count = Port(vector["edition"]), count + 1
    for step in vector["steps"]:
        outcome = port.perform(step["call"], step.get("argument"), fails="fail" in step)
        wanted = "failed" if "fail" in step else step.get("refusal")
        if (outcome, port.head) != (wanted, step.get("head", port.head)):
            print(f"{vector['id']}: {step} leads to {port.head}, {outcome or 'done'}")
            wrong += 1
            break
print(f"{count} vectors, {wrong} failed")
sys.exit(wrong > 0 or count == 0)
