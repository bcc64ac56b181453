#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi_baseline.py [--write] BASELINE_FOLDER ROOT BUILT_ROOT C_COMPILER...: what the public headers promise is still what the
baseline says, but for additions; with --write it becomes what the headers say now. packaging/abi/README.md tells how the
files are used.

The types are read from a stand-in library: the declarations of the headers, compiled as C with empty bodies. It has
the interface of libtutti and nothing else; that libtutti's own functions agree with the headers is for its compiler to say.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import source_tree

TYPES, CONSTANTS = "libtutti.abi", "constants.txt"
# Not constants of the interface: they follow the version.
MOVING = re.compile(r"TUTTI_(?:VERSION_|ABI_|PLUGIN_ABI_)")
FOLDERS = ("include/tutti", "include/tutti/plugin")


def headers_of(roots):
    """(root, header) of every public C header, the plug-in tables among them."""
    return [(root, path) for root in roots for path in source_tree.files_of(root, ["include/tutti"], (".h",))]


def stand_in(roots):
    """C code with an empty function for each declared one, and one that takes each plug-in table."""
    lines = [f"#include <{path.removeprefix('include/')}>" for _, path in headers_of(roots)]
    for root in roots:
        for declaration in source_tree.declared_functions(root).values():
            text = re.sub(r"\b(?:TUTTI_[A-Z_]+(?:\([^()]*\))?)(?=\s|$)", "", declaration.rpartition(")")[0]) + ")"
            lines.append(f"{text} {{ __builtin_trap(); }}")
        for _, path in headers_of([root]):
            if "/plugin/" in path:
                for table in re.findall(r"^}\s*(tutti_\w+)\s*;", source_tree.without_comments(source_tree.read(root, path)), re.M):
                    lines.append(f"void take_{table}(const {table} *table) {{ (void)table; }}")
    return "\n".join(lines) + "\n"


def build_stand_in(roots, compiler, folder):
    library = os.path.join(folder, "libtutti.so")
    includes = [f"-I{os.path.join(os.path.abspath(root), 'include')}" for root in roots]
    command = [*compiler, "-std=c11", "-g", "-w", "-shared", "-fPIC", *includes, "-x", "c", "-", "-o", library]
    subprocess.run(command, input=stand_in(roots), text=True, check=True, cwd=folder)
    return library


def constants(roots):
    """NAME -> value as it is written, of the constants that the headers define."""
    found = {}
    for root, path in headers_of(roots):
        code = re.sub(r"\\\n", " ", source_tree.read(root, path))
        code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", code, flags=re.S)
        for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(TUTTI_\w+)[ \t]+(\S.*)$", code, re.M):
            if not MOVING.match(name) and not name.endswith("_API"):
                found[name] = " ".join(value.split())
        for block in re.findall(r"\benum\b[^{;()]*\{([^}]*)\}", code):
            found.update((name, value.strip()) for name, value in re.findall(r"\b(TUTTI_\w+)\s*=\s*([^,]+)", block))
    return found


def types_text(roots, compiler):
    """What abidw says about the stand-in, without paths of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        library = build_stand_in(roots, compiler, folder)
        command = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", library]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return text.replace(folder + "/", "")


def write(baseline, roots, compiler):
    os.makedirs(baseline, exist_ok=True)
    with open(os.path.join(baseline, TYPES), "w", encoding="utf-8") as file:
        file.write(types_text(roots, compiler))
    with open(os.path.join(baseline, CONSTANTS), "w", encoding="utf-8") as file:
        file.writelines(f"{name} {value}\n" for name, value in sorted(constants(roots).items()))


def type_problems(baseline, roots, compiler):
    with tempfile.TemporaryDirectory() as folder:
        library = build_stand_in(roots, compiler, folder)
        command = ["abidiff", "--no-added-syms", os.path.join(baseline, TYPES), library]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [result.stdout + result.stderr] if result.returncode else []


def constant_problems(baseline, roots):
    now, problems = constants(roots), []
    for line in source_tree.read(baseline, CONSTANTS).splitlines():
        name, value = line.split(" ", 1)
        if now.get(name) != value:
            problems.append(f"{name} was {value}, " + (f"is {now[name]}" if name in now else "is gone"))
    return problems


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    chosen, both_roots, c_compiler = arguments[0], arguments[1:3], arguments[3:]
    if "--write" in sys.argv:
        write(chosen, both_roots, c_compiler)
        sys.exit(0)
    if not os.path.exists(os.path.join(chosen, CONSTANTS)):
        print(f"skipped: no baseline in {chosen} yet")
        sys.exit(source_tree.SKIPPED)
    found = constant_problems(chosen, both_roots)
    if shutil.which("abidiff") and platform.machine() == "x86_64":
        found += type_problems(chosen, both_roots, c_compiler)
    elif not found:
        print("skipped: the types are compared on x86_64, by abidiff (package abigail-tools)")
        sys.exit(source_tree.SKIPPED)
    source_tree.report(found, "nothing removed or changed")
