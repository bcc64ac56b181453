#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_map.py NODE SYMBOLS OUTPUT: writes the linker's version script that exports exactly the names in SYMBOLS."""

import sys


def main():
    node, symbols_path, output_path = sys.argv[1:]
    with open(symbols_path, encoding="utf-8") as file:
        names = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    lines = [f"{node} {{"]
    if names:
        lines += ["  global:"] + [f"    {name};" for name in names]
    lines += ["  local:", "    *;", "};", ""]
    with open(output_path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


main()
