#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi_baseline.py BASELINE ROOT BUILT_ROOT LIBRARY: what the library exports is still what packaging/abi/libtutti.abi says, but
for additions. With --write before the arguments it writes the baseline. packaging/abi/README.md tells how the two are used."""

import os
import platform
import shutil
import subprocess
import sys

import house


def header_options(option, roots):
    """--headers-dir options: types that the public headers do not define are private."""
    folders = [os.path.join(root, "include") for root in roots]
    return [argument for folder in folders if os.path.isdir(folder) for argument in (option, folder)]


def write(baseline, roots, library):
    command = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--drop-private-types", *header_options("--headers-dir", roots)]
    text = subprocess.run([*command, library], capture_output=True, text=True, check=True).stdout
    for root in roots:
        text = text.replace(os.path.abspath(root) + "/", "")
    with open(baseline, "w", encoding="utf-8") as file:
        file.write(text)


def compare(baseline, roots, library):
    command = ["abidiff", "--no-added-syms", *header_options("--headers-dir2", roots), baseline, library]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [result.stdout + result.stderr] if result.returncode else []


def why_skipped(baseline, library):
    """The reason why there is nothing to compare here, or None."""
    if not shutil.which("abidiff"):
        return "no abidiff here (package abigail-tools)"
    if platform.machine() != "x86_64":
        return "the baseline is that of x86_64"
    if not os.path.exists(baseline):
        return f"no {baseline} yet"
    sections = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
    return None if ".debug_info" in sections else "the library has no debug information"


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        write(sys.argv[2], sys.argv[3:-1], sys.argv[-1])
        sys.exit(0)
    reason = why_skipped(sys.argv[1], sys.argv[-1])
    if reason:
        print("skipped:", reason)
        sys.exit(house.SKIPPED)
    house.report(compare(sys.argv[1], sys.argv[2:-1], sys.argv[-1]), "nothing removed or changed")
