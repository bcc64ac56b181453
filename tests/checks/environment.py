#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""environment.py ROOT: the library reads environment variables in functions named ..._from_environment alone, but for the
path of plug-ins."""

import re
import sys

import source_tree

ALLOWED = {"lib/runtime/plugin_loader.cc"}
READ = re.compile(r"\b(?:secure_getenv|getenv)\s*\(")
# The beginning of a function, in the style of the tree: its name, and what follows up to "{" at the end of a line.
FUNCTION = re.compile(r"^(?=\w)(?!namespace\b)[^;{}=]*?\b(\w+)\([^;{}]*?\)[^;{}()]*\{$", re.M | re.S)


def check(root):
    problems = []
    for path in source_tree.files_of(root, ["lib"], (".h", ".cc")):
        code = source_tree.without_comments(source_tree.read(root, path))
        if path in ALLOWED or path.startswith("lib/tool/"):
            continue
        functions = [(match.end(), match.group(1)) for match in FUNCTION.finditer(code)]
        for read in READ.finditer(code):
            name = next((name for end, name in reversed(functions) if end <= read.start()), "no function")
            if not name.endswith("from_environment"):
                line = code.count("\n", 0, read.start()) + 1
                problems.append(f"{path}:{line}: {name} reads the environment, and is not named ..._from_environment")
    return problems


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "the environment is read where names say so")
