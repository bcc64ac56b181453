# SPDX-License-Identifier: Apache-2.0
"""What the repository checks share: the files of the tree, C and C++ without comments and strings, and how a check ends.

Every check is a function from the root folder to a list of problems, each one line that names a file; no problem, no
line. tests/checks/self_test.py breaks each rule in a small tree, so that no check can fall silent.
"""

import os
import re
import sys

# Exit status by which Meson counts a test as skipped.
SKIPPED = 77

CODE_SUFFIXES = (".h", ".hpp", ".c", ".cc", ".cu", ".inc")
HEADER_SUFFIXES = (".h", ".hpp")
IGNORED_FOLDERS = {"build", "__pycache__", "testdata", "subprojects"}
# What SWIG wrote.
GENERATED_SUFFIXES = ("_wrap.c",)


def files_of(root, folders, suffixes):
    """Paths relative to root, sorted, of the files below the folders whose names end in one of the suffixes."""
    found = []
    for folder in folders:
        for path, subfolders, names in os.walk(os.path.join(root, folder)):
            subfolders[:] = [
                name for name in subfolders
                if name not in IGNORED_FOLDERS and not name.startswith(".") and not os.path.exists(os.path.join(path, name, "meson-info"))
            ]
            found += [os.path.relpath(os.path.join(path, name), root) for name in names
                      if name.endswith(suffixes) and not name.endswith(GENERATED_SUFFIXES)]
    return sorted(path.removeprefix("./") for path in found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^ ()\\\t\n]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'', re.S)


def without_comments(text):
    """The code alone: comments become blanks and strings become "", with every line where it was."""

    def blank(match):
        token = match.group(0)
        lines = "\n" * token.count("\n")
        return " " + lines if token.startswith(("//", "/*")) else '""' + lines

    return _TOKENS.sub(blank, text)


def without_directives(code):
    """Code without preprocessor lines (and their continuations), with every line where it was."""
    kept, continued = [], False
    for line in code.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        kept.append("" if directive else line)
    return "\n".join(kept)


def declared_functions(root, folder="include/tutti"):
    """The functions that the C headers of a folder (not of its subfolders) declare without a body: name and declaration."""
    names = {}
    folder_path = os.path.join(root, folder)
    for header in sorted(os.listdir(folder_path)) if os.path.isdir(folder_path) else []:
        if not header.endswith(".h"):
            continue
        code = without_directives(without_comments(read(root, os.path.join(folder, header))))
        code = re.sub(r'extern\s*""\s*\{', "", code)
        outside, depth = [], 0
        for character in code:
            depth -= character == "}"
            if depth <= 0:
                outside.append(";" if character == "}" else character)
            depth += character == "{"
        for statement in "".join(outside).split(";"):
            match = re.search(r"\b(tutti_\w+)\s*\(", statement)
            if match and "typedef" not in statement and not statement.rstrip().endswith("{"):
                names[match.group(1)] = " ".join(statement.split())
    return names


def report(problems, summary):
    """Prints the problems or the summary and ends the program."""
    for problem in problems:
        print(problem)
    print(summary if not problems else f"{len(problems)} problem(s)")
    sys.exit(1 if problems else 0)
