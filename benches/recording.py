#!/usr/bin/env python3
"""Times a job with recording on and off, in alternating pairs, and prints the medians and their ratio.

    benches/recording.py [STAGE [PAIRS [OPTION ...]]]     10000x180us, 15, no more options

STAGE is the job's one stage, as `regrow run stages --stage` has it; OPTIONs are handed to `regrow run`.

REGROW  the program (target/release/regrow)
"""

import os
import subprocess
import sys
import tempfile
import time
from statistics import median

REGROW = os.environ.get("REGROW", "target/release/regrow")
OFF = ["-D", "execution.batch.job-recovery.enabled=false"]


def run(stage, options):
    """Seconds of the clock and of processor time."""
    with tempfile.TemporaryDirectory() as data:
        command = [REGROW, "run", "stages", "--stage", stage, "--data-dir", data, "--quiet"]
        before, began = os.times(), time.monotonic()
        ended = subprocess.run(command + options, capture_output=True, text=True)
        wall, after = time.monotonic() - began, os.times()
    if ended.returncode != 0:
        sys.exit(ended.stderr)
    used = [times.children_user + times.children_system for times in (before, after)]
    return wall, used[1] - used[0]


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    stage = sys.argv[1] if len(sys.argv) > 1 else "10000x180us"
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    sides = {"on": sys.argv[3:], "off": OFF + sys.argv[3:]}
    seen = {side: [] for side in sides}
    for pair in range(pairs):
        for side in sorted(sides, reverse=pair % 2 == 1):
            seen[side].append(run(stage, sides[side]))
    print("recording  wall s  processor s")
    for side, times in seen.items():
        print(f"{side:9}  {median(t[0] for t in times):6.3f}  {median(t[1] for t in times):11.3f}")
    ratios = [[on[k] / off[k] for on, off in zip(seen["on"], seen["off"])] for k in (0, 1)]
    print(f"ratio      {median(ratios[0]):6.3f}  {median(ratios[1]):11.3f}   (medians of {pairs} pairs)")


if __name__ == "__main__":
    main()
