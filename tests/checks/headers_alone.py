#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headers_alone.py INCLUDE_FOLDER... -- C_COMPILER... -- CPP_COMPILER...: each public header compiles by itself, as strict C11
and as C++17, without one warning. Private headers of lib/ are not asked."""

import os
import subprocess
import sys

import source_tree

WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Wundef", "-Werror", "-fsyntax-only"]


def compile_alone(folders, header, compiler, language, standard):
    command = [*compiler, f"-std={standard}", *WARNINGS, *[f"-I{folder}" for folder in folders], "-x", language, "-"]
    # Twice: the include guard is part of what is tested.
    text = f"#include <{header}>\n#include <{header}>\n" + ("int unused_by_anyone;\n" if language == "c" else "")
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return []
    return [f"{header} as {standard}: {result.stderr.strip()}"]


def check(folders, c_compiler, cpp_compiler):
    problems, seen = [], set()
    for folder in folders:
        for header in source_tree.files_of(folder, ["."], source_tree.HEADER_SUFFIXES):
            if header in seen:
                continue
            seen.add(header)
            if header.endswith(".h"):
                problems += compile_alone(folders, header, c_compiler, "c", "c11")
            problems += compile_alone(folders, header, cpp_compiler, "c++", "c++17")
    return problems


def split_at_dashes(arguments):
    parts = [[]]
    for argument in arguments:
        if argument == "--":
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


if __name__ == "__main__":
    include_folders, c_command, cpp_command = split_at_dashes(sys.argv[1:])
    existing = [folder for folder in include_folders if os.path.isdir(folder)]
    source_tree.report(check(existing, c_command, cpp_command), "every public header stands alone")
