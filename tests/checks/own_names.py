#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""own_names.py ROOT: a function of one file's own has a name that no other file of its library has for one of its own.

Sources are compiled a dozen and more at a time. Two functions of one name would then be overloads of each other, and a
call could mean the one of another file: which one depends on how the sources happen to be grouped."""

import collections
import os
import re
import sys

import source_tree

TARGET = re.compile(r"\b(?:static_library|shared_library|shared_module|executable)\(\n(.*?)\n\s*\)\n", re.S)
LIST = re.compile(r"^(\w+) = files\((.*?)^\)", re.S | re.M)
SOURCE = re.compile(r"'([\w./]+\.cc)'")
OWN = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.S | re.M)
FUNCTION = re.compile(r"^(?!using|struct|class|enum|constexpr|template|return|if|for|#)[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*](\w+)\(", re.M)


def libraries(root):
    """The sources of each, by the folder and first text of its target."""
    found = {}
    for path in source_tree.files_of(root, ["lib"], ("meson.build",)):
        text = source_tree.read(root, path)
        folder = os.path.dirname(path)
        lists = {name: SOURCE.findall(sources) for name, sources in LIST.findall(text)}
        for target in TARGET.findall(text):
            sources = SOURCE.findall(target)
            for name, listed in lists.items():
                sources += listed if re.search(rf"\b{name}\b", target) else []
            name = re.search(r"'([^']+)'", target)
            found.setdefault((folder, name.group(1) if name else ""), []).extend(
                os.path.normpath(os.path.join(folder, source)) for source in sources)
    return found


def own_functions(code):
    return {name for part in OWN.findall(code) for name in FUNCTION.findall(part)}


def check(root):
    problems = []
    for (folder, library), sources in libraries(root).items():
        files_by_name = collections.defaultdict(set)
        for path in sources:
            if os.path.exists(os.path.join(root, path)):
                for name in own_functions(source_tree.read(root, path)):
                    files_by_name[name].add(path)
        for name, paths in files_by_name.items():
            if len(paths) > 1:
                first, *others = sorted(paths)
                problems.append(f"{first}: {name}() is also a function of {', '.join(others)}, of the same library "
                                f"'{library}' ({folder}/meson.build): name them differently, or write one for all")
    return sorted(set(problems))


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "functions of one file's own have names of their own")
