#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_calls.py ROOT: no call of a GPU interface, or of a launch, is a statement of its own: its status is used, or thrown away by (void)."""

import re
import sys

import house

FOLDERS = ["lib/backend/gpu", "lib/backend/cuda", "lib/backend/hip", "lib/collective/nccl", "tests/backend/gpu", "tests/backend/cuda",
           "tests/backend/hip"]
# Also as members of a table of functions: lt->cublasLtMatmul(...).
CALL = re.compile(r"(?:\w+\s*(?:::|->|\.)\s*)*\b((?:gpu|cuda|cublas|cublasLt|cudnn|nccl|hip|rocblas|miopen|rccl|cu)[A-Z]\w*|gpu_launch|launch_\w+)\s*\(")
RETURN_NOTHING = {"cudnnGetLastErrorString"}
CONDITIONS = re.compile(r"(?:\bif(?:\s+constexpr)?|\bfor|\bwhile|\bswitch)\s*$")


def opening_parenthesis(code, position):
    """Where the parenthesis that closes at this position opens, -1 if nowhere."""
    depth = 0
    for index in range(position, -1, -1):
        depth += {")": 1, "(": -1}.get(code[index], 0)
        if depth == 0:
            return index
    return -1


def begins_a_statement(code, position):
    """Whether what stands at this position is the first of its statement."""
    before = code[:position].rstrip()
    if not before or before[-1] in ";{}":
        return True
    if re.search(r"\b(?:else|do)$", before) or re.search(r"\b(?:case\b[^;{}?]*|default\s*|public\s*|private\s*):$", before):
        return True
    if before[-1] == ")":
        opening = opening_parenthesis(before, len(before) - 1)
        return opening >= 0 and CONDITIONS.search(before[:opening]) is not None
    return False


def unchecked_calls(text):
    """(line, name) of each call whose result nobody looks at."""
    code = house.without_directives(house.without_comments(text))
    found = []
    for match in CALL.finditer(code):
        if match.group(1) in RETURN_NOTHING:
            continue
        start = match.start()
        if begins_a_statement(code, start):
            found.append((code.count("\n", 0, match.start(1)) + 1, match.group(1)))
    return found


def check(root):
    problems = []
    for path in house.files_of(root, FOLDERS, house.CODE_SUFFIXES):
        for line, name in unchecked_calls(house.read(root, path)):
            problems.append(f"{path}:{line}: the status of {name}() is not looked at: use it, or write (void) before it")
    return problems


if __name__ == "__main__":
    house.report(check(sys.argv[1]), "every call of a GPU interface is looked at")
