#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documented_names.py ROOT BUILT_INCLUDE: what Markdown files call tutti_... is declared in a public header."""

import re
import sys

import source_tree

# Not names of files (tutti_wrap.c) nor the beginnings of names (tutti_source_<name>).
NAME = re.compile(r"(?<![\w/])tutti_\w*[a-z0-9]\b(?!_)(?!\.(?:[a-z]+\b))")
FOLDERS = ["include", "lib", "bindings", "examples", "tests", "packaging"]


def declared_names(folder):
    """Names in code, and symbols that are looked up by a string."""
    names = set()
    for path in source_tree.files_of(folder, ["."], source_tree.HEADER_SUFFIXES):
        text = source_tree.read(folder, path)
        names.update(re.findall(r"\btutti_\w+", source_tree.without_comments(text)), re.findall(r'"(tutti_\w+)"', text))
    return names


def check(root, built_include):
    known = declared_names(root + "/include") | declared_names(built_include)
    documents = ["README.md"] + source_tree.files_of(root, FOLDERS, (".md",))
    problems = []
    for path in documents:
        for number, line in enumerate(source_tree.read(root, path).splitlines(), 1):
            problems += [f"{path}:{number}: {name} is in no public header" for name in NAME.findall(line) if name not in known]
    return problems


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1], sys.argv[2]), "every name is declared")
