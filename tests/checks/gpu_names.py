#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_names.py ROOT: the headers <tutti_gpu.h> of CUDA, of HIP and of the emulated GPU offer the same names."""

import os
import re
import sys

import source_tree

HEADERS = ["lib/backend/cuda/tutti_gpu.h", "lib/backend/hip/tutti_gpu.h", "tests/backend/gpu/emulator/tutti_gpu.h"]
# What the sources of gpu/ may use beside the language of kernels itself.
NAME = re.compile(r"\b(gpu[A-Z]\w*|gpu_\w+|TUTTI_(?!BACKEND_|TESTS_)\w+|kBlockThreads)\b")


def check(root):
    headers = [path for path in HEADERS if os.path.exists(os.path.join(root, path))]
    names = {path: set(NAME.findall(source_tree.without_comments(source_tree.read(root, path)))) for path in headers}
    everything = set().union(*names.values())
    return [f"{path}: lacks {name}, which another tutti_gpu.h has" for path in headers for name in sorted(everything - names[path])]


if __name__ == "__main__":
    source_tree.report(check(sys.argv[1]), "the same names everywhere")
