#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed_headers.py OUTPUT [NAME=FILE | NAME]...: a C++ source that has the texts of headers (generated_headers.h).

A name without a file is a header of the standard library whose place <tutti_gpu.h> takes.
"""

import sys

DELIMITER = "TUTTI"
# Compilers need not take longer literals; neighbours are one.
LONGEST = 8000


def literal(text):
    parts = [text[at : at + LONGEST] for at in range(0, len(text), LONGEST)] or [""]
    return "\n".join(f'R"{DELIMITER}({part}){DELIMITER}"' for part in parts)


def source(headers):
    rows = [f'    {{"{name}",\n{literal(text)}}},\n' for name, text in headers]
    return (
        '// Made by embed_headers.py.\n#include "backend/gpu/generated/generated_headers.h"\n\nnamespace tutti::impl::backend::gpu {\n\n'
        + "namespace {\n\nconstexpr GeneratedHeader kHeaders[] = {\n"
        + "".join(rows)
        + "};\n\n}  // namespace\n\nstd::span<const GeneratedHeader> generated_headers() { return kHeaders; }\n\n"
        + "}  // namespace tutti::impl::backend::gpu\n"
    )


if __name__ == "__main__":
    headers = []
    for argument in sys.argv[2:]:
        name, _, path = argument.partition("=")
        if not path:
            headers.append((name, "#include <tutti_gpu.h>\n"))
            continue
        with open(path, encoding="utf-8") as file:
            headers.append((name, file.read()))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(source(headers))
