# SPDX-License-Identifier: Apache-2.0
#
# Makes the style and the script of the report's page texts in C++: generate_page_parts.py report.css report.js OUTPUT.
import sys

PARTS = ("kPageStyle", "kPageScript")


def literal(text):
    """Pieces, as no string literal may be too long."""
    lines = [line + "\n" for line in text.splitlines() if not line.startswith("/* SPDX")]
    pieces = ["".join(lines[i:i + 40]) for i in range(0, len(lines), 40)]
    return "\n    ".join(f'R"page({piece})page"' for piece in pieces)


def main():
    *sources, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as file:
        file.write("// SPDX-License-Identifier: Apache-2.0\n"
                   "// Made by lib/tool/report/generate_page_parts.py. Do not edit.\n"
                   '#include "tool/report/report_page.h"\n\nnamespace tutti::tool {\n\n')
        for name, source in zip(PARTS, sources):
            with open(source, encoding="utf-8") as text:
                file.write(f"const char *const {name} =\n    {literal(text.read())};\n\n")
        file.write("}  // namespace tutti::tool\n")


main()
