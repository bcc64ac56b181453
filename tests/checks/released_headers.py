#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""released_headers.py ROOT BUILT_ROOT C_COMPILER...: what was built with the headers of a release
(packaging/abi/X.Y/include) fits the headers of today. Until X.Y.0 is released the two must say the same; afterwards
today's may only have more: functions, constants, and fields at the end of structs that tell their size.
packaging/abi/README.md tells how they are used.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import abi_baseline
import source_tree

RELEASES = "packaging/abi"
STRUCT = re.compile(r"\btypedef\s+struct\s+(\w+)\s*\{([^{}]*)\}\s*\1\s*;")


def releases(root):
    """The folders of headers, X.Y, in order."""
    found = [name for name in os.listdir(os.path.join(root, RELEASES)) if re.fullmatch(r"\d+\.\d+", name)]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")])


def code_of(text):
    """Without comments and line breaks, each blank one blank."""
    return " ".join(re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S).split())


def headers_of(roots):
    """Path below include/ -> its root, of C and C++ headers."""
    return {path: root for root in roots for path in source_tree.files_of(root, ["include/tutti"], source_tree.HEADER_SUFFIXES)}


def project_version(root):
    return re.search(r"^\s*version: '([\d.]+)',$", source_tree.read(root, "meson.build"), re.M).group(1)


def binary_interface(roots):
    """(major, minor) of the interface that the headers describe."""
    header = next(root for path, root in headers_of(roots).items() if path == "include/tutti/version.h")
    text = source_tree.read(header, "include/tutti/version.h")
    return tuple(re.search(rf"#define TUTTI_ABI_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR"))


def differences(frozen, roots):
    """Of headers that must say the same."""
    then, now = headers_of([frozen]), headers_of(roots)
    problems = [f"{path}: is not frozen yet" for path in sorted(now.keys() - then.keys())]
    problems += [f"{path}: is frozen, and gone" for path in sorted(then.keys() - now.keys())]
    for path in sorted(then.keys() & now.keys()):
        if code_of(source_tree.read(frozen, path)) != code_of(source_tree.read(now[path], path)):
            problems.append(f"{path}: differs from the frozen one")
    return problems


def without_appended_fields(text, old_text):
    """Code of today in which structs that tell their size end where they ended then."""
    old_fields = {name: body.strip() for name, body in STRUCT.findall(code_of(old_text))}

    def cut(match):
        name, fields = match.group(1), " ".join(match.group(2).split())
        old = old_fields.get(name, "")
        is_longer = "struct_size" in old and fields.startswith(old)
        return f"typedef struct {name} {{\n  {old if is_longer else fields}\n}} {name};"

    return STRUCT.sub(cut, re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)) if old_fields else text


def write_cut(frozen, roots, folder):
    """Today's headers in the folder, for the comparison with those of then."""
    for path, root in headers_of(roots).items():
        text = source_tree.read(root, path)
        if os.path.exists(os.path.join(frozen, path)):
            text = without_appended_fields(text, source_tree.read(frozen, path))
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)


def breaks(frozen, roots, compiler):
    """What a program built with the frozen headers would not find any more, or find different."""
    problems = [f"{path}: is gone" for path in sorted(headers_of([frozen]).keys() - headers_of(roots).keys())]
    now = abi_baseline.constants(roots)
    for name, value in sorted(abi_baseline.constants([frozen]).items()):
        if now.get(name) != value:
            problems.append(f"{name} was {value}, " + (f"is {now[name]}" if name in now else "is gone"))
    if not has_types():
        return problems
    with tempfile.TemporaryDirectory() as folder:
        write_cut(frozen, roots, os.path.join(folder, "cut"))
        libraries = []
        for name, headers in (("then", frozen), ("now", os.path.join(folder, "cut"))):
            os.makedirs(os.path.join(folder, name))
            libraries.append(abi_baseline.build_stand_in([headers], compiler, os.path.join(folder, name)))
        command = ["abidiff", "--no-added-syms", *libraries]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return problems + ([result.stdout + result.stderr] if result.returncode else [])


def has_types():
    return shutil.which("abidiff") is not None and platform.machine() == "x86_64"


def check(root, roots, compiler):
    problems, version = [], project_version(root)
    for release in releases(root):
        frozen = os.path.join(root, RELEASES, release)
        if binary_interface([frozen]) != binary_interface(roots):
            found = ["it is of another binary interface, so no program of it can run: remove the folder"]
        elif version == release + ".0":
            found = differences(frozen, roots)
            found += ["after a change that is meant, run packaging/abi/release.sh"] if found else []
        else:
            found = breaks(frozen, roots, compiler)
        problems += [f"{RELEASES}/{release}: {problem}" for problem in found]
    return problems


if __name__ == "__main__":
    source, built, *c_compiler = sys.argv[1:]
    listed = releases(source)
    found_problems = check(source, [source, built], c_compiler)
    are_all_equal = [project_version(source)] == [release + ".0" for release in listed]
    if not found_problems and not are_all_equal and not has_types():
        print("skipped: the types are compared on x86_64, by abidiff (package abigail-tools)")
        sys.exit(source_tree.SKIPPED)
    source_tree.report(found_problems, f"programs of {', '.join(listed)} fit these headers")
