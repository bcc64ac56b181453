#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include_floors.py ROOT: who may include and name whom.

A folder of lib/ includes itself, its parents and folders on lower floors; of its equals nothing. The subfolders of one have
floors of their own where SUBFLOORS says so. No header ring. Only
capi/ names the functions of the C ABI, only the gpu folders name GPU interfaces, and the public headers know only
themselves.
"""

import os
import re
import sys

import source_tree

# The floors of lib/, and nowhere else.
FLOORS = {
    "base": 0,
    "tensor": 1,
    "graph": 2,
    "backend": 3,
    "data": 4,
    "collective": 4,
    "monitor": 5,
    "nn": 5,
    "checkpoint": 6,
    "distribute": 7,
    "estimator": 8,
    "runtime": 9,
    "capi": 10,
    "http": 11,
    "tool": 11,
}
# The floors of a folder's subfolders: all its files lie in these.
SUBFLOORS = {
    "data": {
        "element": 0,
        "file": 0,
        "thread": 0,
        "process": 1,
        "graph": 1,
        "dataset": 2,
        "call": 3,
        "pipeline": 4,
        "keep": 5,
        "routine": 6,
        "format": 6,
        "source": 7,
        "transform": 7,
    },
    "backend/cpu": {
        "shapes": 0,
        "simd": 0,
        "kernel": 1,
        "dnnl": 2,
        "convolution": 3,
        "lower": 4,
        "device": 5,
    },
    "backend/pjrt": {
        "interface": 0,
        "emit": 0,
        "memory": 1,
        "program": 2,
        "device": 3,
    },
    "backend/gpu": {
        "device": 0,
        "runtime": 0,
        "kernel": 1,
        "library": 2,
        "generated": 3,
        "fusion": 4,
        "kernels": 5,
        "program": 6,
        "collective": 7,
    },
    "distribute": {
        "strategy": 0,
        "plan": 0,
        "input": 1,
        "program": 2,
        "workers": 2,
        "weights": 3,
        "train": 4,
        "predict": 5,
        "evaluate": 6,
    },
    "tool": {
        "console": 0,
        "command": 1,
        "config": 1,
        "dataset": 2,
        "documentation": 2,
        "report": 2,
        "model": 3,
        "training": 4,
        "program": 5,
    },
}
# Folders that are programs and modules of their own: they use the public headers only.
OUTSIDE = ("http", "tool")
# Subfolders that may look into one sibling: devices share kernels.
SHARED_SIBLINGS = {("backend/cuda", "backend/gpu"), ("backend/hip", "backend/gpu")}
# Public headers that lower floors may use: the plug-in tables and what only has types.
PUBLIC_FOR_ALL = ("tutti/plugin/", "tutti/arrow.h", "tutti/dlpack.h")
# What tests of any floor may use to get at an implementation.
IMPLEMENTATIONS = ("runtime/backend_list.h", "runtime/engine_list.h", "runtime/plugin_loader.h")
GPU_FOLDERS = ("backend/gpu", "backend/cuda", "backend/hip", "collective/nccl")
GPU_NAMES = re.compile(r"\b(?:cuda|hip|cublas|cublasLt|cudnn|nccl|rccl|miopen|hipblas|hipblasLt|rocblas|cu)[A-Z]\w*\s*\(")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.M)


def includes_of(text):
    """The (bracket, path) pairs of a file's includes; text with its comments still in it."""
    return _INCLUDE.findall(text)


def is_within(folder, ancestor):
    return folder == ancestor or folder.startswith(ancestor + "/")


def subfloor(folder):
    """(folder with subfloors, floor of its subfolder where this one lies), or None where there are none."""
    for parent, floors in SUBFLOORS.items():
        if is_within(folder, parent):
            return parent, floors.get(folder.removeprefix(parent).lstrip("/").split("/")[0])
    return None


def include_problem(folder, bracket, target):
    """Why a file in this folder of lib/ may not include the target, or None."""
    top = folder.split("/")[0]
    if bracket == "<":
        if target.startswith("tutti/") and top not in ("capi", *OUTSIDE) and not target.startswith(PUBLIC_FOR_ALL):
            return f"includes <{target}>: of the public headers the floors below capi/ use only the plug-in tables"
        return None
    target_folder = os.path.dirname(target)
    target_top = target_folder.split("/")[0]
    if target_top not in FLOORS:
        return f'includes "{target}": write includes from the root of lib/'
    if top == target_top:
        if is_within(folder, target_folder) or (folder, "/".join(target_folder.split("/")[:2])) in SHARED_SIBLINGS:
            return None
        own, other = subfloor(folder), subfloor(target_folder)
        if own is not None and other is not None and own[0] == other[0] and None not in (own[1], other[1]):
            if other[1] < own[1]:
                return None
            return f'includes "{target}": {target_folder}/ (subfloor {other[1]}) is not below {folder}/ (subfloor {own[1]})'
        return f'includes "{target}": a folder may include itself and its parents, not {target_folder}/'
    if top in OUTSIDE:
        return f'includes "{target}": {top}/ uses the public headers only'
    if FLOORS[target_top] < FLOORS[top]:
        return None
    return f'includes "{target}": {target_top}/ (floor {FLOORS[target_top]}) is not below {top}/ (floor {FLOORS[top]})'


def include_problems(root):
    problems = []
    for path in source_tree.files_of(root, ["lib"], source_tree.CODE_SUFFIXES):
        folder = os.path.dirname(path).removeprefix("lib").lstrip("/")
        if folder.split("/")[0] not in FLOORS:
            problems.append(f"{path}: lies on no floor")
            continue
        own = subfloor(folder)
        if own is not None and own[1] is None:
            problems.append(f"{path}: lies in none of the subfolders that have a floor")
            continue
        for bracket, target in includes_of(source_tree.read(root, path)):
            problem = include_problem(folder, bracket, target)
            if problem:
                problems.append(f"{path}: {problem}")
    for path in source_tree.files_of(root, ["include"], source_tree.CODE_SUFFIXES):
        for bracket, target in includes_of(source_tree.read(root, path)):
            if bracket == '"':
                problems.append(f'{path}: includes "{target}": public headers are included as <tutti/...>')
    return problems


def test_include_problems(root):
    """tests/graph/ tests lib/graph/, and uses nothing from the floors above it."""
    problems = []
    for path in source_tree.files_of(root, ["tests"], source_tree.CODE_SUFFIXES):
        top = (path.split("/") + [""])[1]
        for bracket, target in includes_of(source_tree.read(root, path)):
            target_top = target.split("/")[0]
            if bracket == '"' and top in FLOORS and target not in IMPLEMENTATIONS and FLOORS.get(target_top, -1) > FLOORS[top]:
                problems.append(f'{path}: includes "{target}" from a floor above the one it tests')
    return problems


def ring_problems(root):
    """Headers that include each other, directly or round about."""
    edges = {}
    for base in ("lib", "include"):
        for path in source_tree.files_of(root, [base], source_tree.HEADER_SUFFIXES):
            edges[path] = [f"lib/{t}" if b == '"' else f"include/{t}" for b, t in includes_of(source_tree.read(root, path))]
    problems, finished, trail = [], set(), []

    def visit(path):
        if path in trail:
            problems.append("header ring: " + " -> ".join(trail[trail.index(path):] + [path]))
        elif path in edges and path not in finished:
            trail.append(path)
            for target in edges[path]:
                visit(target)
            finished.add(trail.pop())

    for path in sorted(edges):
        visit(path)
    return problems


def naming_problems(root):
    """Functions of the C ABI outside capi/, GPU interfaces outside the gpu folders, namespaces of higher floors."""
    public = source_tree.declared_functions(root)
    problems = []
    for path in source_tree.files_of(root, ["lib"], source_tree.CODE_SUFFIXES):
        folder = os.path.dirname(path).removeprefix("lib").lstrip("/")
        top = folder.split("/")[0]
        code = source_tree.without_comments(source_tree.read(root, path))
        if top not in ("capi", *OUTSIDE):
            for name in sorted(set(re.findall(r"\b(tutti_\w+)\s*\(", code)) & public.keys()):
                problems.append(f"{path}: names {name}(): only capi/ names functions of the C ABI")
        if not any(is_within(folder, gpu) for gpu in GPU_FOLDERS) and not path.endswith("_gpu.cu"):
            for name in sorted(set(GPU_NAMES.findall(code))):
                problems.append(f"{path}: names {name.strip(' (')}(): only the gpu folders name GPU interfaces")
        for floor in sorted(set(re.findall(r"\bnamespace\s+tutti::impl::(\w+)[\w:]*\s*\{", code))):
            if floor in FLOORS and top in FLOORS and floor != top and FLOORS[floor] >= FLOORS[top]:
                problems.append(f"{path}: opens the namespace of {floor}/; a namespace is named after its folder")
    return problems


def check(root):
    return include_problems(root) + test_include_problems(root) + ring_problems(root) + naming_problems(root)


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "no upward or sideways include, no header ring")
