#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words.py ROOT: every source names its licence, and no file tells of the machine it was written on."""

import re
import sys

import source_tree

LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = source_tree.CODE_SUFFIXES + (".py", ".sh", "meson.build", "meson_options.txt", ".yaml", ".yml", ".i", ".go", ".java", ".cs")
TEXTS = LICENSED + (".md", ".txt", ".json", ".in")
# Absolute paths of somebody's machine, and addresses of private networks.
MACHINE = re.compile(r"(?<![\w.$}])/(?:home|root|work|mnt|Users)/\w|\b(?:10|192\.168)\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\blorem ipsum\b", re.I)


def check(root):
    problems = []
    for path in source_tree.files_of(root, ["."], TEXTS):
        text = source_tree.read(root, path)
        if path.endswith(LICENSED) and LICENCE not in "\n".join(text.split("\n")[:3]):
            problems.append(f"{path}: the first lines lack '{LICENCE}'")
        if path.startswith("tests/checks/"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = MACHINE.search(line)
            if match:
                problems.append(f"{path}:{number}: '{match.group(0)}...' belongs to one machine")
    return problems


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "every file names its licence and no machine")
