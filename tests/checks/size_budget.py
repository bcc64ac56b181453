#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""size_budget.py ROOT: keeps files and functions small, headers explained, and switches, leftovers and vague names out."""

import os
import re
import statistics
import sys

import source_tree

HEADER_MEDIAN, HEADER_LONGEST = 100, 450
SOURCE_MEDIAN, SOURCE_MOST, SOURCE_LONGEST = 160, 450, 600
FUNCTION_MEDIAN, FUNCTION_MOST, FUNCTION_LONGEST = 8, 60, 120
PURE_METHODS = 12
# Units, headers with their sources, in a folder of lib/; of lists of like things, one transform or kernel each, there
# are as many as there are.
FOLDER_UNITS = 30
LISTS = ("lib/backend/gpu/device", "lib/backend/gpu/kernels", "lib/backend/cpu/kernel", "lib/data/transform", "lib/graph/ops")
# Medians and shares of fewer things than this say nothing.
ENOUGH = 20
# Comments as a share of comments and code in the public headers: 30-50% is aimed at, outside 25-60% fails.
COMMENTS_LEAST, COMMENTS_MOST = 0.25, 0.60
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|misc)$|^common$")
CONDITIONS = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.M)

_NOT_A_FUNCTION = re.compile(r"^\s*(?:export\s+)?(?:inline\s+)?(?:namespace|extern|enum)\b|\b(?:class|struct|union)\s+[\w:\s]*(?:final\s*)?(?::[^()]*)?$")
_FUNCTION_END = re.compile(r"\)\s*(?:(?:const|noexcept|override|final|mutable|try|&&?|\w+\(\))\s*)*(?:->[\w\s:<>,*&\[\]]+)?(?:requires\b.*)?$", re.S)
_INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:\s*(?!:)")


def nested_removed(head, opening, closing):
    """The head of a block without what stands between the brackets (the brackets stay)."""
    kept, depth = [], 0
    for character in head:
        depth -= character == closing and depth > 0
        if depth == 0:
            kept.append(character)
        depth += character == opening
    return "".join(kept)


def without_template(head):
    """The head without a leading template<...>, whatever parentheses its parameters hold."""
    match = re.match(r"\s*template\s*<", head)
    if not match:
        return head
    depth, parentheses = 1, 0
    for position in range(match.end(), len(head)):
        parentheses += {"(": 1, ")": -1}.get(head[position], 0)
        depth += 0 if parentheses else {"<": 1, ">": -1}.get(head[position], 0)
        if depth == 0:
            return without_template(head[position + 1:])
    return head


def name_of_function(head):
    flat = nested_removed(without_template(head), "(", ")")
    names = re.findall(r"(operator\s*(?:\(\)|[^\s(]+)|[\w:~]+)\s*\(", flat)
    return next((name for name in names if name not in ("requires", "decltype", "__attribute__")), "?")


def kind_of_block(head):
    """Whether "{" after this head opens a "scope" (namespace, class), a "function", an "initialiser" in a list, or a "value"."""
    head = re.sub(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)", "operator", head)
    head = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^)]*\)|__attribute__\s*\(\(.*?\)\)", " ", head, flags=re.S)
    flat = nested_removed(without_template(head), "(", ")")
    if not flat.strip() or head.count("(") > head.count(")"):
        return "value"
    if re.match(r"\s*(?:class|struct|union)\b", flat) and not _FUNCTION_END.search(flat):
        return "scope"
    if "(" not in flat:
        return "scope" if _NOT_A_FUNCTION.search(flat) else "value"
    if _INITIALISERS.search(flat):
        return "function" if flat.rstrip().endswith((")", "}")) else "initialiser"
    if "=" in flat.split("(")[0] or re.search(r"\breturn\b", flat) or not _FUNCTION_END.search(flat):
        return "scope" if _NOT_A_FUNCTION.search(flat) else "value"
    return "function"


def functions_of(text):
    """(name, first line, lines) of every function body in C or C++; a lambda counts as part of the function around it."""
    code = source_tree.without_directives(source_tree.without_comments(text))
    found, position, head_start = [], 0, 0
    while position < len(code):
        character = code[position]
        if character in ";}":
            head_start = position + 1
        elif character == ":" and re.search(r"\b(?:public|private|protected)\s*$", code[head_start:position]):
            head_start = position + 1
        elif character == "{":
            head = code[head_start:position]
            kind = kind_of_block(head)
            if kind == "scope":
                head_start = position + 1
            else:
                end = closing_brace(code, position)
                if kind == "function":
                    first = head_start + len(head) - len(head.lstrip())
                    line = code.count("\n", 0, first) + 1
                    found.append((name_of_function(head), line, code.count("\n", first, end) + 1))
                    head_start = end + 1
                position = end
        position += 1
    return found


def closing_brace(code, position):
    depth = 0
    for match in re.finditer(r"[{}]", code[position:]):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return position + match.start()
    return len(code) - 1


def lines_of(text):
    return text.count("\n")


def comment_share(texts):
    """Lines that are comment and nothing else, as a share of all lines that are not blank; licence lines count for neither."""
    comments = lines = 0
    for text in texts:
        code = source_tree.without_comments(text).split("\n")
        for before, after in zip(text.split("\n"), code):
            if before.strip() and "SPDX-License-Identifier" not in before:
                comments += not after.strip()
                lines += 1
    return comments / max(lines, 1)


def share_problem(kind, values, limit, least_share):
    inside = sum(value <= limit for value in values)
    if inside < least_share * len(values) and len(values) >= ENOUGH:
        return [f"{kind}: only {inside} of {len(values)} have at most {limit} lines; {least_share:.0%} must"]
    return []


def file_problems(root, figures):
    paths = source_tree.files_of(root, ["lib", "include", "tests", "examples", "bindings"], source_tree.CODE_SUFFIXES)
    problems, headers, sources = [], [], []
    for path in paths:
        lines = lines_of(source_tree.read(root, path))
        header = path.endswith(source_tree.HEADER_SUFFIXES)
        longest = HEADER_LONGEST if header else SOURCE_LONGEST
        if lines > longest:
            problems.append(f"{path}: {lines} lines, more than {longest}")
        if path.startswith(("lib/", "include/")):
            (headers if header else sources).append(lines)
    for kind, values, most in (("headers", headers, HEADER_MEDIAN), ("sources", sources, SOURCE_MEDIAN)):
        if values:
            median = statistics.median(values)
            figures.append(f"{kind}: {len(values)}, median {median:g}, longest {max(values)}")
            if median > most and len(values) >= ENOUGH:
                problems.append(f"{kind}: median {median:g} lines, more than {most}")
    return problems + share_problem("sources", sources, SOURCE_MOST, 0.90)


def function_problems(root, figures):
    problems, lengths = [], []
    for path in source_tree.files_of(root, ["lib", "include", "tests", "examples", "bindings"], source_tree.CODE_SUFFIXES):
        if path.endswith(".cu"):
            continue
        for name, line, length in functions_of(source_tree.read(root, path)):
            if length > FUNCTION_LONGEST:
                problems.append(f"{path}:{line}: {name} has {length} lines, more than {FUNCTION_LONGEST}")
            if path.startswith(("lib/", "include/")):
                lengths.append(length)
                if FUNCTION_MOST < length <= FUNCTION_LONGEST:
                    figures.append(f"{path}:{line}: {name} has {length} lines")
    if lengths:
        median = statistics.median(lengths)
        figures.append(f"functions: {len(lengths)}, median {median:g}, longest {max(lengths)}")
        if median > FUNCTION_MEDIAN and len(lengths) >= ENOUGH:
            problems.append(f"functions: median {median:g} lines, more than {FUNCTION_MEDIAN}")
    return problems + share_problem("functions", lengths, FUNCTION_MOST, 0.97)


def comment_problems(root, figures):
    problems = []
    for kind, folder in (("public headers", "include"), ("headers of lib", "lib")):
        texts = [source_tree.read(root, path) for path in source_tree.files_of(root, [folder], source_tree.HEADER_SUFFIXES)]
        if sum(map(lines_of, texts)) < 100:
            continue
        share = comment_share(texts)
        figures.append(f"{kind}: {share:.0%} comments")
        if folder == "include" and not COMMENTS_LEAST <= share <= COMMENTS_MOST:
            problems.append(f"{kind}: {share:.0%} of the lines are comments, not {COMMENTS_LEAST:.0%} to {COMMENTS_MOST:.0%}")
    return problems


def condition_problems(root, figures):
    """At most one #if in 1,000 lines outside backend/; include guards and __cplusplus do not count."""
    lines, conditions = 0, []
    for path in source_tree.files_of(root, ["lib", "include"], source_tree.CODE_SUFFIXES):
        if path.startswith("lib/backend/"):
            continue
        text = source_tree.read(root, path)
        lines += lines_of(text)
        for match in CONDITIONS.finditer(text):
            if "__cplusplus" not in match.group(1) and not re.search(r"_H(PP)?_*$", match.group(1).strip()):
                conditions.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}:{match.group(0)}")
    figures.append(f"#if outside backend/: {len(conditions)} in {lines} lines")
    if len(conditions) > max(1, lines / 1000):
        return [f"more than one #if in 1,000 lines outside backend/ ({len(conditions)} in {lines}):"] + conditions
    return []


def interface_problems(root):
    problems = []
    for path in source_tree.files_of(root, ["lib"], source_tree.HEADER_SUFFIXES):
        code = source_tree.without_comments(source_tree.read(root, path))
        for piece in re.split(r"\n(?=\s*(?:class|struct)\s)", code):
            pure = len(re.findall(r"\)[^;{}()]*=\s*0\s*;", piece))
            if pure > PURE_METHODS:
                name = re.match(r"\s*(?:class|struct)\s+(\w+)", piece)
                problems.append(f"{path}: {name.group(1) if name else '?'} has {pure} pure methods, more than {PURE_METHODS}")
    return problems


def folder_problems(root, figures):
    folders = {}
    for path in source_tree.files_of(root, ["lib"], source_tree.CODE_SUFFIXES):
        folder, name = os.path.split(path)
        folders.setdefault(folder, set()).add(name.split(".")[0])
    largest = sorted(((len(units), folder) for folder, units in folders.items() if folder not in LISTS), reverse=True)
    figures.extend(f"{folder}: {count} units" for count, folder in largest[:1])
    return [f"{folder}: {count} units, more than {FOLDER_UNITS}" for count, folder in largest if count > FOLDER_UNITS]


def leftover_problems(root):
    problems = []
    for path in source_tree.files_of(root, ["lib", "include", "tests", "examples", "bindings"], source_tree.CODE_SUFFIXES + (".py", ".sh", "meson.build")):
        if path.startswith("tests/checks/"):
            continue
        for number, line in enumerate(source_tree.read(root, path).split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))", line):
                problems.append(f"{path}:{number}: a leftover mark without an issue number, as in TODO(#12)")
    return problems


def name_problems(root):
    """Below missing_headers/, names are those by which another project's headers include them."""
    problems = []
    for path in source_tree.files_of(root, ["."], ("",)):
        for part in path.split("/missing_headers/")[0].split("/"):
            if VAGUE_NAMES.search(part.split(".")[0]):
                problems.append(f"{path}: name a file or folder after what is in it, not '{part}'")
                break
    return problems


def check(root, figures=None):
    figures = figures if figures is not None else []
    return (file_problems(root, figures) + function_problems(root, figures) + comment_problems(root, figures) +
            condition_problems(root, figures) + interface_problems(root) + folder_problems(root, figures) +
            leftover_problems(root) + name_problems(root))


if __name__ == "__main__":
    measured = []
    found = check(sys.argv[1], measured)
    print("\n".join(measured))
    source_tree.report(found, "within the budgets")
