#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plugin_shape.py PLUGIN [LIBRARY...]: the plug-in exports its entry alone, and needs of its vendor only the libraries listed."""

import re
import subprocess
import sys

import source_tree
from library_shape import readelf

ENTRY = "tutti_backend_entry"
NEEDED = re.compile(r"^(?:libstdc\+\+|libgcc_s|libm|libc|libpthread|libdl|librt|ld-linux-[\w-]+)\.so\b")
# Of libraries that are opened at run time, and of the driver.
VENDOR = re.compile(r"^(?:(?:cu|cuda|cublas|cublasLt|cudnn|nccl|nvrtc|hip|hiprtc|miopen|rccl)[A-Z]|rocblas_)\w*$")
# What comes from a library that may be listed.
FROM = {"libamdhip64": re.compile(r"^hip[A-Z]\w*$")}


def symbols(plugin):
    """The rows of nm for dynamic symbols: (kind, name)."""
    rows = subprocess.run(["nm", "-D", plugin], capture_output=True, text=True, check=True).stdout.split("\n")
    return [tuple(row.split()[-2:]) for row in rows if row.strip()]


def symbol_problems(rows, allowed=()):
    exported = [name.split("@")[0] for kind, name in rows if kind in "TDBRVWi"]
    problems = [f"exports {name}, which is not the entry" for name in exported if name not in (ENTRY, "_init", "_fini")]
    if ENTRY not in exported:
        problems.append(f"lacks {ENTRY}")
    needed = [name.split("@")[0] for kind, name in rows if kind == "U"]
    known = [FROM[library] for library in allowed if library in FROM]
    return problems + [f"needs {name}() when it is loaded" for name in needed
                       if VENDOR.match(name) and not any(listed.match(name) for listed in known)]


def needed_problems(text, allowed):
    problems = []
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if not NEEDED.match(name) and name.split(".so")[0] not in allowed:
            problems.append(f"needs {name} when it is loaded")
    if re.search(r"\((?:RPATH|RUNPATH)\).*\[/", text):
        problems.append("has a library path of this machine")
    return problems


if __name__ == "__main__":
    path, *libraries = sys.argv[1:]
    source_tree.report(symbol_problems(symbols(path), libraries) + needed_problems(readelf("-d", path), libraries), "one entry, no driver needed")
