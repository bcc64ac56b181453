#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""package_architectures.py ROOT TOOLKIT [CUOBJDUMP] -- MESON...: a build as packages are built (packaging/release.ini)
has code for six generations of GPUs, and PTX for what comes after: as Meson gives them to nvcc for every kernel file, and, where
there is cuobjdump, in what nvcc makes of the smallest of these files."""

import os
import re
import subprocess
import sys
import tempfile

import source_tree

CODE = {"80", "86", "89", "90", "100", "120"}
TEXT = {"120"}
COMMAND = re.compile(r"^build (\S+\.cu\.o): CUSTOM_COMMAND\w* (\S+\.cu)\b")


def commands(ninja):
    """(object file, source, command) of each kernel file."""
    found, lines = [], ninja.split("\n")
    for index, line in enumerate(lines):
        match = COMMAND.match(line)
        if not match:
            continue
        words = []
        for setting in lines[index + 1:]:
            if not setting.startswith(" "):
                break
            if setting.startswith(" COMMAND = "):
                words.append(setting[len(" COMMAND = "):])
        found.append((match.group(1), match.group(2), " ".join(words)))
    return found


def flag_problems(found):
    problems = [] if found else ["no kernel file is compiled"]
    for target, _, command in found:
        code, text = set(re.findall(r"code=sm_(\d+)", command)), set(re.findall(r"code=compute_(\d+)", command))
        if code != CODE or text != TEXT:
            problems.append(f"{target}: code for {sorted(code, key=int)}, PTX for {sorted(text, key=int)}")
    return problems


def content_problems(elf, ptx, name):
    """Of the lists that cuobjdump prints."""
    code, text = set(re.findall(r"\bsm_(\d+)\w*\.cubin", elf)), set(re.findall(r"\b(?:sm|compute)_(\d+)\w*\.ptx", ptx))
    if code == CODE and text == TEXT:
        return []
    return [f"{name}: cuobjdump finds code for {sorted(code, key=int)}, PTX for {sorted(text, key=int)}"]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def check(root, toolkit, cuobjdump, meson):
    with tempfile.TemporaryDirectory(prefix="tutti-architectures-") as build:
        off = [f"-D{name}=disabled" for name in ("hip", "go", "java", "csharp", "http", "gloo", "cpu", "tests")]
        run([*meson, "setup", build, root, "--native-file", os.path.join(root, "packaging", "release.ini"), "-Dcuda=enabled",
             f"-Dgpu_toolkit={toolkit}", *off])
        with open(os.path.join(build, "build.ninja"), encoding="utf-8") as file:
            found = commands(file.read())
        problems = flag_problems(found)
        if not found or not cuobjdump:
            return problems, "the flags of six generations and PTX"
        target = min(found, key=lambda one: os.path.getsize(os.path.join(build, one[1])))[0]
        run(["ninja", "-C", build, target])
        made = os.path.join(build, target)
        problems += content_problems(run([cuobjdump, "--list-elf", made]), run([cuobjdump, "--list-ptx", made]), target)
    return problems, "code for six generations and PTX"


if __name__ == "__main__":
    at = sys.argv.index("--")
    tree, nvidia, *dump = sys.argv[1:at]
    source_tree.report(*check(tree, nvidia, dump[0] if dump else "", sys.argv[at + 1:]))
