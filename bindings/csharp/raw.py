#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the raw layer by SWIG: Raw.cs, one static method for each C function, and tuttisharp_wrap.c.

usage: raw.py SWIG OUTPUT_FOLDER

Mono looks for the library when it compiles a method that calls into it, and does not look again. Library.Load leads it
there first; so no method of the raw layer may become part of its callers.
"""
import os
import re
import subprocess
import sys

BINDINGS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(os.path.dirname(BINDINGS), 'include')
OPTIONS = ['-Wall', '-Werror', '-csharp', '-namespace', 'Tutti', '-dllimport', 'tuttisharp',
           # SWIG's own ways of passing exceptions and text are not used, and would look for the library too early.
           '-DSWIG_CSHARP_NO_EXCEPTION_HELPER', '-DSWIG_CSHARP_NO_STRING_HELPER',
           '-DSWIG_CSHARP_NO_STRING_WITH_LENGTH_HELPER', '-DSWIG_CSHARP_NO_IMCLASS_STATIC_CONSTRUCTOR']
NAMES = 'global::System.Runtime.CompilerServices.MethodImpl'
LIBRARY = re.compile(r'DllImport\("([^"]*)"')
METHOD = re.compile(r'^(?=  public static (?!extern ))', re.M)


def main(swig, folder):
    interfaces, wrapper = os.path.join(BINDINGS, 'swig'), os.path.join(folder, 'tuttisharp_wrap.c')
    subprocess.run([swig, *OPTIONS, '-I' + interfaces, '-I' + INCLUDE, '-outdir', folder, '-outfile', 'Raw.cs',
                    '-o', wrapper, os.path.join(interfaces, 'tutti_csharp.i')], check=True)
    path = os.path.join(folder, 'Raw.cs')
    with open(path, encoding='utf-8') as file:
        text, count = METHOD.subn(f'  [{NAMES}({NAMES}Options.NoInlining)]\n', file.read())
    if count == 0:
        raise SystemExit('raw.py: Raw.cs has no methods, as they are looked for here')
    others = set(LIBRARY.findall(text)) - {'tuttisharp'}
    if others:
        raise SystemExit(f'raw.py: Raw.cs imports from {", ".join(sorted(others))}, and not from tuttisharp alone')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
