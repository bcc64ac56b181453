#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_calls.py ROOT: no call of a GPU interface, or of a launch, is a statement of its own, nor the end of one that keeps nothing
(a ? b() : c();): its status is used, or thrown away by (void). A statement kernel<<<...>>>(...) is followed by one that asks for
the last error. Statuses that are kept in a variable which nobody reads are the compiler's to find (-Wunused)."""

import os
import re
import sys

import source_tree

FOLDERS = ["lib/backend/gpu", "lib/backend/cuda", "lib/backend/hip", "tests/backend/gpu", "tests/backend/cuda", "tests/backend/hip"]
# Also as members of a table of functions: lt->cublasLtMatmul(...), tables[0].cublasLtMatmul(...), lt()->cublasLtMatmul(...).
CALL = re.compile(r"\b((?:gpu|cuda|cublas|cublasLt|cudnn|nccl|nvrtc|rtc|hip|hiprtc|rocblas|miopen|rccl|cu)[A-Z]\w*|rocblas_\w+|gpu_launch|launch_\w+)\s*\(")
# A member of such a table that has a name of its own: decltype(&::rtcGetCode) get_code; it is called as rtc.get_code(...).
MEMBER = re.compile(r"\bdecltype\(&\s*(?:::)?\s*\w+\)\s*(\w+)\s*(?:=[^;]*)?;")
RETURN_NOTHING = {"cudnnGetLastErrorString"}
# Before the last part of an expression whose value is that part's.
JOINS = re.compile(r"(?:\?|(?<!:):|&&|\|\||,)$")
KEEPS = re.compile(r"(?<![=!<>])=(?!=)|\b(?:return|co_return|throw|case)\b|\(\s*void\s*\)|<<")
LAUNCH = re.compile(r"(\w+)\s*<<<")
ATTRIBUTE = re.compile(r"\[\[[^\[\]]*\]\]")
CONDITIONS = re.compile(r"(?:\bif(?:\s+constexpr)?|\bfor|\bwhile|\bswitch)\s*$")


def opening_parenthesis(code, position):
    """Where the parenthesis or bracket that closes at this position opens, -1 if nowhere."""
    depth = 0
    for index in range(position, -1, -1):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(code[index], 0)
        if depth == 0:
            return index
    return -1


def start_of_statement(code, position):
    """Where the statement begins that has what stands here outside of any parentheses and braces, -1 where these enclose it."""
    depth = 0
    for index in range(position - 1, -1, -1):
        character = code[index]
        if depth == 0 and character in ";{}":
            return index + 1
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(character, 0)
        if depth < 0:
            return -1
    return 0


def start_of_expression(code, position):
    """Where the expression begins that ends in the name at this position: a.b[0]->c()->name, (*a)::name."""
    before = code[:position].rstrip()
    while True:
        separator = re.search(r"(?:::|->|\.)$", before)
        if separator is None:
            return position
        before = before[:separator.start()].rstrip()
        position = separator.start()
        while before and before[-1] in ")]" and not re.search(r"\(\s*void\s*\)$", before):
            before = before[:max(opening_parenthesis(before, len(before) - 1), 0)].rstrip()
            position = len(before)
        name = re.search(r"\w+$", before)
        # The bare :: of the global names may follow a word of the language.
        if name is not None and not re.fullmatch(r"else|do|return", name.group(0)):
            before = before[:name.start()].rstrip()
            position = name.start()


def begins_a_statement(code, position):
    """Whether what stands at this position is the first of its statement, but for operators in front of it."""
    before = re.sub(r"[\s!~+*-]+$", "", code[:position])
    if not before or before[-1] in ";{}":
        return True
    if re.search(r"\b(?:else|do)$", before) or re.search(r"\b(?:case\b[^;{}?]*|default\s*|public\s*|private\s*):$", before):
        return True
    if before[-1] == ")":
        opening = opening_parenthesis(before, len(before) - 1)
        return opening >= 0 and CONDITIONS.search(before[:opening]) is not None
    return False


def ends_a_statement_for_nothing(code, position):
    """Whether what stands at this position is the last part of an expression that nobody keeps: a && b(), a ? b() : c()."""
    before = code[:position].rstrip()
    if not JOINS.search(before):
        return False
    start = start_of_statement(code, position)
    # Of a list in braces each part is kept.
    if start <= 0 or (code[start - 1] == "{" and re.search(r"(?:[=(,\w>]|\breturn)$", code[:start - 1].rstrip())
                      and not re.search(r"\b(?:else|do|const|noexcept|override|mutable)$", code[:start - 1].rstrip())):
        return False
    return KEEPS.search(before[start:]) is None


def plain_code(text):
    """Code without comments, texts, directives and attributes, with every line where it was."""
    code = source_tree.without_directives(source_tree.without_comments(text))
    return ATTRIBUTE.sub(lambda attribute: "\n" * attribute.group(0).count("\n"), code)


def unchecked_launches(text):
    """(line, name) of each kernel<<<...>>>(...) after which nobody asks for the last error at once."""
    code = plain_code(text)
    found = []
    for match in LAUNCH.finditer(code):
        following = code[match.start():].split(";", 2)
        if len(following) < 3 or "GetLastError(" not in following[1] or following[1].lstrip().startswith("}"):
            found.append((code.count("\n", 0, match.start()) + 1, match.group(1)))
    return found


def unchecked_calls(text, members=()):
    """(line, name) of each call whose result nobody looks at. `members`: names of members of tables of functions."""
    code = plain_code(text)
    calls = [(match.start(1), match.group(1)) for match in CALL.finditer(code)]
    if members:
        through = re.compile(r"(?:->|\.)\s*(" + "|".join(sorted(members)) + r")\s*\(")
        calls += [(match.start(1), match.group(1)) for match in through.finditer(code)]
    found = []
    for name_at, name in sorted(calls):
        start = start_of_expression(code, name_at)
        if name not in RETURN_NOTHING and (begins_a_statement(code, start) or ends_a_statement_for_nothing(code, start)):
            found.append((code.count("\n", 0, name_at) + 1, name))
    return found


def check(root):
    problems = []
    texts = {path: source_tree.read(root, path) for path in source_tree.files_of(root, FOLDERS, source_tree.CODE_SUFFIXES)}
    members = {name for text in texts.values() for name in MEMBER.findall(source_tree.without_comments(text))}
    for path, text in texts.items():
        for line, name in unchecked_launches(text):
            problems.append(f"{path}:{line}: nobody asks whether {name} was launched: use gpu_launch()")
        for line, name in unchecked_calls(text, members):
            problems.append(f"{path}:{line}: the status of {name}() is not looked at: use it, or write (void) before it")
    return problems


def folder_problems(root):
    """Of folders that moved nothing would be looked at."""
    return [f"{folder}: there is no such folder" for folder in FOLDERS if not os.path.isdir(os.path.join(root, folder))]


if __name__ == "__main__":
    source_tree.report(folder_problems(sys.argv[1]) + check(sys.argv[1]), "every call of a GPU interface is looked at")
