#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbol_list.py ROOT BUILT_ROOT LIBRARY: the library exports exactly what packaging/abi/symbols.txt lists and what the
public headers declare (those of the source tree and those generated below BUILT_ROOT)."""

import os
import subprocess
import sys

import source_tree

LIST = "packaging/abi/symbols.txt"


def listed_symbols(root):
    lines = source_tree.read(root, LIST).split("\n")
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def exported_symbols(library):
    """Names in the dynamic symbol table that the library defines; the node of the version script is none."""
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.split("\n") if line.strip()]
    return sorted({row[-1].split("@")[0] for row in rows if row[-2] != "A"})


def compare(exported, listed, declared):
    """Problems from three collections of names that must be one."""
    problems = []
    if list(listed) != sorted(set(listed)):
        problems.append(f"{LIST}: not sorted, or a name is there twice")
    for name in sorted(set(exported) | set(listed) | set(declared)):
        if not name.startswith("tutti_"):
            problems.append(f"{name}: exported without the prefix tutti_")
            continue
        where = [name in exported, name in listed, name in declared]
        if not all(where):
            words = [w if yes else "not " + w for yes, w in zip(where, ("exported", "listed", "declared in a public header"))]
            problems.append(f"{name}: {', '.join(words)}")
    return problems


def declared_symbols(roots):
    names = {}
    for root in roots:
        names.update(source_tree.declared_functions(root))
    return sorted(names)


if __name__ == "__main__":
    if sys.argv[1] == "--declared":
        print("\n".join(declared_symbols(sys.argv[2:])))
        sys.exit(0)
    source, built, built_library = sys.argv[1:]
    symbols = listed_symbols(source)
    found = compare(exported_symbols(built_library), symbols, declared_symbols([source, built]))
    if found:
        found.append("after a change that is meant, run packaging/abi/update.sh")
    source_tree.report(found, f"{len(symbols)} symbols exported, listed and declared; {os.path.basename(built_library)}")
