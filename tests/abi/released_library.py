#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""released_library.py OUTPUT RELEASE_FOLDER C_COMPILER...: makes what a program of a release was linked with: a library
with the soname, version node and functions of then, and nothing inside. At run time the loader takes the library of
today for it, as it would for a program that was built then; were it to take this one, the first call would end the
program."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "checks"))
import abi_baseline  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position
import released_headers  # pylint: disable=wrong-import-position


def main():
    output, release, *compiler = sys.argv[1:]
    interface = ".".join(released_headers.binary_interface([release]))
    names = sorted(source_tree.declared_functions(release))
    with tempfile.TemporaryDirectory() as folder:
        version_script = os.path.join(folder, "tutti.map")
        with open(version_script, "w", encoding="utf-8") as file:
            exported = "".join(f"    {name};\n" for name in names)
            file.write(f"TUTTI_{interface} {{\n  global:\n{exported}  local:\n    *;\n}};\n")
        link = [f"-Wl,-soname,libtutti.so.{interface}", f"-Wl,--version-script={version_script}"]
        include, target = os.path.abspath(release) + "/include", os.path.abspath(output)
        command = [*compiler, "-std=c11", "-w", "-shared", "-fPIC", f"-I{include}", *link, "-x", "c", "-", "-o", target]
        subprocess.run(command, input=abi_baseline.stand_in([release]), text=True, check=True, cwd=folder)


main()
