#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""formatting.py ROOT: C and C++ look as clang-format 14 writes them with .clang-format. Other versions write otherwise,
so without that one the check is skipped. Go looks as gofmt writes it (bindings/go/run_go.py); of Go, Java and C# only the
width is checked here."""

import os
import shutil
import subprocess
import sys

import source_tree

COLUMNS = 120
GENERATED = "; DO NOT EDIT."
FOLDERS = ["lib", "include", "tests", "examples", "bindings"]


def formatter():
    """The path of clang-format 14, or None."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and " version 14." in subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout:
            return path
    return None


def check(root, program):
    paths = source_tree.files_of(root, FOLDERS, source_tree.CODE_SUFFIXES)
    if not paths:
        return []
    style = "--style=file:" + os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.clang-format"))
    other_paths = [path for path in source_tree.files_of(root, FOLDERS, (".go", ".java", ".cs")) if GENERATED not in source_tree.read(root, path)]
    result = subprocess.run([program, style, "--dry-run", "-Werror", *paths], cwd=root, capture_output=True, text=True, check=False)
    places = sorted({line.split(": error:")[0] for line in result.stderr.split("\n") if ": error:" in line})
    if result.returncode and not places:
        return [result.stderr.strip()]
    return [f"{place}: not as clang-format writes it" for place in places] + long_lines(root, paths + other_paths)


def long_lines(root, paths):
    """clang-format leaves comments as they are, tables and all, so their width is checked here."""
    problems = []
    for path in paths:
        for number, line in enumerate(source_tree.read(root, path).split("\n"), 1):
            if len(line.expandtabs(4)) > COLUMNS and " " in line.strip()[3:]:
                problems.append(f"{path}:{number}: {len(line.expandtabs(4))} columns, more than {COLUMNS}")
    return problems


if __name__ == "__main__":
    clang_format = formatter()
    if clang_format is None:
        print("skipped: no clang-format 14 here (package clang-format-14)")
        sys.exit(source_tree.SKIPPED)
    source_tree.report(check(sys.argv[1], clang_format), "formatted")
