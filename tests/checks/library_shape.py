#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library_shape.py SONAME LIBRARY LARGEST_BYTES: the library is called SONAME, is bound at load and never unloaded, needs only
what is listed here, runs nothing when it is loaded, and takes no more memory than allowed."""

import re
import subprocess
import sys

import source_tree

NEEDED = re.compile(r"^(?:libdnnl|libhwy|libz|libjpeg|libspng|libgomp|libstdc\+\+|libgcc_s|libm|libc|libpthread|libdl|ld-linux-x86-64)\.so\b")


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, library], capture_output=True, text=True, check=True).stdout


def dynamic_problems(text, soname):
    problems = []
    if f"soname: [{soname}]" not in text:
        problems.append(f"the soname is not {soname}")
    for flag in ("NODELETE", "NOW"):
        if not re.search(rf"FLAGS_1.*\b{flag}\b", text):
            problems.append(f"linked without -z {flag.lower()}")
    if re.search(r"\((?:RPATH|RUNPATH)\).*\[/", text):
        problems.append("has a library path of this machine")
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if not NEEDED.match(name):
            problems.append(f"needs {name}, which is not on the list of dependencies")
    return problems


def initialiser_problems(text):
    """From nm's rows: code that runs when the library is loaded, one symbol per source with static objects."""
    sources = sorted(set(re.findall(r"\b_GLOBAL__(?:sub_)?[ID]_(\S+)", text)))
    return [f"{source}: has static objects that are made at load time and destroyed at exit" for source in sources]


def segment_problems(text, largest):
    """Of the rows "LOAD offset address address file-size memory-size flags" the memory counts."""
    loaded = sum(int(size, 16) for size in re.findall(r"^\s*LOAD(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", text, re.M))
    if not 0 < loaded <= largest:
        return [f"its segments take {loaded} bytes of memory, more than {largest}"]
    return []


if __name__ == "__main__":
    expected, path, largest_bytes = sys.argv[1:]
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=False).stdout
    source_tree.report(dynamic_problems(readelf("-d", path), expected) + segment_problems(readelf("-l", path), int(largest_bytes)) +
                 initialiser_problems(symbols), "well formed")
