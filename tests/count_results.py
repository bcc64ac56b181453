#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""count_results.py LOG_FOLDER: prints "N passed, N failed, N skipped" for Meson's last test run; fails unless all is well."""

import collections
import glob
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}


def main():
    counts = collections.Counter()
    for path in glob.glob(sys.argv[1] + "/testlog*.json"):
        with open(path, encoding="utf-8") as file:
            for line in file:
                result = json.loads(line)["result"]
                counts["passed" if result in PASSED else "skipped" if result in SKIPPED else "failed"] += 1
    if not counts["passed"] and not counts["failed"]:
        print("no test ran")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 0 if counts["passed"] and not counts["failed"] else 1


sys.exit(main())
