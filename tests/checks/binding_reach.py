#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""binding_reach.py ROOT: every public C function is used by each binding, or listed in its unreached.txt with the reason.

A line of unreached.txt is a function's name and why programs do not need it; a name that ends in * stands for all that begin
so, one that begins with * for all that end so. The check prints what is out of reach, and finds lines that no longer hold.
"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile

import source_tree

# For each language: the folder with unreached.txt, that of its sources where they lie elsewhere, their suffix, and how its raw
# layer calls a function. What builders.py of the folder, run as a program with an output folder, writes at build time counts as
# source too.
LANGUAGES = {
    "C++": ("bindings/cpp", "include/tutti/cpp", ".hpp", lambda name: r"\btutti_" + name + r"\b"),
    "Go": ("bindings/go", "", ".go", lambda name: r"\braw\." + name[0].upper() + name[1:] + r"\b"),
    "Java": ("bindings/java", "", ".java", lambda name: r"\bRaw\s*(?:\.|::)\s*" + name + r"\b"),
    "C#": ("bindings/csharp", "", ".cs", lambda name: r"\bRaw\." + name + r"\b"),
}


def reasons_of(root, folder):
    """Pattern to reason."""
    lines = [line.strip() for line in source_tree.read(root, os.path.join(folder, "unreached.txt")).split("\n")]
    return dict((line.split(None, 1) + [""])[:2] for line in lines if line and not line.startswith("#"))


def sources_of(root, folder, suffix):
    paths = [path for path in source_tree.files_of(root, [folder], (suffix,)) if not re.search("/internal/|/test/", path) and not path.endswith("_test" + suffix)]
    return "\n".join([source_tree.read(root, path) for path in paths] + generated_of(root, folder, suffix))


def generated_of(root, folder, suffix):
    program = os.path.join(root, folder, "builders.py")
    if not os.path.isfile(program) or "__main__" not in source_tree.read(root, os.path.join(folder, "builders.py")):
        return []
    with tempfile.TemporaryDirectory() as output:
        subprocess.run([sys.executable, program, output], check=True)
        return [source_tree.read(output, path) for path in source_tree.files_of(output, ["."], (suffix,))]


def check(root, figures=None):
    problems = []
    functions = sorted(source_tree.declared_functions(root))
    for language, (folder, sources, suffix, call) in LANGUAGES.items():
        if not os.path.isdir(os.path.join(root, folder)):
            continue
        reasons, text = reasons_of(root, folder), sources_of(root, sources or folder, suffix)
        missing = [name for name in functions if not re.search(call(name.removeprefix("tutti_")), text)]
        for name in missing:
            reason = next((why for pattern, why in reasons.items() if fnmatch.fnmatchcase(name, pattern)), "")
            if reason and figures is not None:
                figures.append(f"{language} does not reach {name}: {reason}")
            if not reason:
                problems.append(f"{folder}: does not reach {name}, and unreached.txt gives no reason")
        for pattern in reasons:
            if not fnmatch.filter(missing, pattern):
                problems.append(f"{folder}/unreached.txt: '{pattern}' is reached, or is no function")
    return problems


if __name__ == "__main__":
    told = []
    found = check(sys.argv[1], told)
    print("\n".join(told))
    source_tree.report(found, "the bindings reach the rest of the C interface")
