#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reached_entries.py ROOT: every op, layer, source, transform and option is used by a test through the C interface.

Used means: a test or an example in C or C++ that links the shared library alone calls its helper or names it, or it is in the
numbers of tests/conformance/golden, which the tests golden_*_test.cc of tests/capi give to entries by name. What is not is in
unreached_entries.txt with the reason; the check finds what is missing there, and lines that no longer hold.

Public ops and entries of nn.yaml are used by the tests of every language, too, by a method of their name: such are the models
"blocks", "functions", "layers", "losses", "metrics", "ops", "optimizers" and "schedules" and the pipelines "image_ops",
"image_mixes" and "text_ops" of tests/bindings/scenarios.txt. The check lists what is not.
"""

import glob
import json
import os
import re
import sys

import source_tree
import yaml

SOURCES = ("tests/capi/*.c", "tests/capi/*.cc", "tests/capi/*.h", "tests/bindings/*.c", "tests/bindings/*.txt", "tests/faults/*.c",
           "tests/bench/*.c", "examples/c/*.c")
GOLDEN = "tests/conformance/golden/*.json"
REASONS = "tests/checks/unreached_entries.txt"
IN_EVERY_LANGUAGE = {"function", "layer", "loss", "metric", "optimizer", "parameter", "schedule"}
LANGUAGES = {"Go": "bindings/go/*_test.go", "Java": "bindings/java/src/test/java/org/tutti/*.java", "C#": "tests/bindings/csharp/*.cs"}
# Registries of data: what a name begins with here, and in C.
OF_DATA = {"lib/data/sources.yaml": ("source", "source"), "lib/data/transforms.yaml": ("transform", "pipeline")}


def load(root, path):
    return yaml.safe_load(source_tree.read(root, path)) if os.path.exists(os.path.join(root, path)) else []


def name_of(spec):
    """What an entry of nn.yaml is called: a function as ops are."""
    return spec["name"] if spec["kind"] == "function" else f'{spec["kind"]}_{spec["name"]}'


def use(helper, name):
    """How a program uses an entry: by its helper, or by its name."""
    return rf'\btutti_{helper}\(|"{name}"'


def public_ops(root):
    """Names of the ops that users have a helper for."""
    for group in load(root, "lib/graph/ops/ops.yaml"):
        for op in group["ops"]:
            spec = {**group.get("defaults", {}), **op}
            if spec.get("public", True) and not spec.get("regions"):
                yield op["name"]


def entries(root):
    """(what an entry or option is called here, the pattern of a use)"""
    for name in public_ops(root):
        yield f"op:{name}", use(name, name)
    for spec in load(root, "lib/nn/nn.yaml"):
        name = name_of(spec)
        yield f"op:{name}", use(name, name)
    for path, (kind, prefix) in OF_DATA.items():
        for spec in load(root, path):
            if spec.get("public", True):
                yield f'{kind}:{spec["name"]}', use(f'{prefix}_{spec["name"]}', spec["name"])
    for schema, keys in dict(load(root, "lib/capi/options.yaml")).items():
        for key in keys:
            yield f'option:{schema}/{key["key"]}', rf'\b{key["key"]}\b'


def golden_ops(root):
    paths = glob.glob(os.path.join(root, GOLDEN))
    files = [json.loads(source_tree.read(root, path)) for path in paths]
    return {f'op:{case["op"]}' for made in files for case in (made["cases"] if isinstance(made, dict) else made)}


def reasons(root):
    lines = [line.strip() for line in source_tree.read(root, REASONS).split("\n")]
    return dict((line.split(None, 1) + [""])[:2] for line in lines if line and not line.startswith("#"))


def texts(root, patterns):
    paths = [path for pattern in patterns for path in sorted(glob.glob(os.path.join(root, pattern)))]
    return "\n".join(source_tree.read(root, path) for path in paths)


def unused_in_languages(root):
    """Problems. A method has the name of the op or entry, in the language's way of writing it; it is one of a graph g."""
    names = [*public_ops(root), *(name_of(spec) for spec in load(root, "lib/nn/nn.yaml") if spec["kind"] in IN_EVERY_LANGUAGE)]
    for language, pattern in LANGUAGES.items():
        text = texts(root, [pattern])
        methods = {method.lower() for method in re.findall(r"\b(?:g|graph)\.(\w+)\(", text)}
        for name in names if text else []:
            if name.replace("_", "") not in methods:
                yield f"op:{name}: no test in {language} ({pattern}) uses it"


def check(root):
    text, golden, known = texts(root, SOURCES), golden_ops(root), reasons(root)
    is_reached = {name: name in golden or re.search(pattern, text) is not None for name, pattern in entries(root)}
    problems = [f"{name}: no test through the C interface uses it, and {REASONS} gives no reason"
                for name, reached in is_reached.items() if not reached and not known.get(name)]
    problems += [f"{REASONS}: {name}: there is no {path}" for name, why in known.items()
                 for path in re.findall(r"tests/[\w/]+\.(?:cc|c|py)\b", why) if not os.path.exists(os.path.join(root, path))]
    problems += unused_in_languages(root)
    return problems + [f"{REASONS}: {name} is reached, or there is none" for name in known if is_reached.get(name, True)]


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "all entries and options are reached through the C interface, or it is said why not")
