#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme_example.py README INCLUDE_FOLDER... -- C_COMPILER...: the C programs shown in the README compile without a warning."""

import re
import subprocess
import sys

import source_tree


def check(text, folders, compiler):
    blocks = re.findall(r"```c\n(.*?)```", text, re.S)
    if not blocks:
        return ["no C program found"]
    command = [*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *[f"-I{folder}" for folder in folders], "-x", "c", "-"]
    problems = []
    for block in blocks:
        result = subprocess.run(command, input=block, capture_output=True, text=True, check=False)
        problems += [result.stderr.strip()] if result.returncode else []
    return problems


if __name__ == "__main__":
    dashes = sys.argv.index("--")
    readme = source_tree.read("", sys.argv[1])
    source_tree.report(check(readme, sys.argv[2:dashes], sys.argv[dashes + 1:]), "the README's programs compile")
