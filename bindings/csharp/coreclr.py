# SPDX-License-Identifier: Apache-2.0
"""Programs in C# on CoreCLR: made by Mono's compiler, there being no other one in Debian, and run by the `dotnet` of a
folder that the environment variable TUTTI_CORECLR names, with shared/Microsoft.NETCore.App beside it: an installed .NET,
or dotnetcore2/bin of the wheel dotnetcore2, which has the runtime 3.1.

usage: coreclr.py DOTNET_FOLDER OUTPUT_FOLDER      makes the assembly for .NET and its tests, without a build folder
"""
import glob
import json
import os
import shutil
import subprocess
import sys

import raw

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TESTS = os.path.join(ROOT, 'tests', 'bindings', 'csharp')
FRAMEWORK = 'Microsoft.NETCore.App'
# What the sources use of the framework.
ASSEMBLIES = ('System.Private.CoreLib', 'Microsoft.Win32.Primitives', 'System.Runtime', 'System.Collections', 'System.Collections.Concurrent', 'System.Console',
              'System.Diagnostics.Process', 'System.IO.Compression', 'System.IO.FileSystem', 'System.Linq', 'System.Linq.Parallel',
              'System.Memory', 'System.Net.Primitives', 'System.Net.Sockets', 'System.Runtime.Extensions', 'System.Runtime.InteropServices', 'System.Runtime.InteropServices.RuntimeInformation',
              'System.Threading',
              'System.Threading.Tasks.Parallel', 'System.ComponentModel.Primitives', 'System.Text.RegularExpressions')
# The collector runs whenever 64 KiB have been allocated, and moves what it keeps. The runtimes have other prefixes.
BUSY_COLLECTOR = {prefix + 'GCgen0size': '10000' for prefix in ('COMPlus_', 'DOTNET_')}
# Two references of one version are told to match, which needs no telling.
COMPILER = ['mcs', '-langversion:7.2', '-warn:4', '-warnaserror', '-nowarn:1702', '-debug', '-unsafe', '-nostdlib', '-noconfig',
            '-define:NETCOREAPP']


class Runtime:
    """A folder with `dotnet`."""

    def __init__(self, folder):
        self.program = os.path.join(folder, 'dotnet')
        versions = sorted(glob.glob(os.path.join(folder, 'shared', FRAMEWORK, '*')), key=version_of)
        if not os.path.isfile(self.program) or not versions:
            raise SystemExit(f'TUTTI_CORECLR is {folder}, which has not both dotnet and shared/{FRAMEWORK}')
        self.framework = versions[-1]

    def references(self):
        paths = [os.path.join(self.framework, name + '.dll') for name in ASSEMBLIES]
        return ['-r:' + path for path in paths if os.path.isfile(path)]

    def configure(self, program):
        """What dotnet reads beside a program. Without ICU, which may not be there."""
        options = {'framework': {'name': FRAMEWORK, 'version': os.path.basename(self.framework)},
                   'configProperties': {'System.Globalization.Invariant': True}}
        with open(os.path.splitext(program)[0] + '.runtimeconfig.json', 'w', encoding='utf-8') as file:
            json.dump({'runtimeOptions': options}, file)

    def run(self, program, arguments, **variables):
        os.chmod(self.program, 0o755)
        environment = {**os.environ, **BUSY_COLLECTOR, 'TUTTI_DOTNET': self.program, **variables}
        return subprocess.run([self.program, program, *arguments], env=environment, check=False).returncode


def version_of(path):
    return [int(part) if part.isdigit() else 0 for part in os.path.basename(path).split('.')]


def standard_tests(runtime, assemblies, folder):
    """The tests and the assembly as the build has made them: for Mono, whose references .NET forwards."""
    shutil.copy(os.path.join(assemblies, 'Tutti.dll'), folder)
    program = os.path.join(folder, 'Tests.dll')
    shutil.copy(os.path.join(assemblies, 'Tests.exe'), program)
    runtime.configure(program)
    return program


def core_tests(runtime, assemblies, folder):
    """The same made for .NET, with what stands behind `#if NETCOREAPP`."""
    library, program = os.path.join(folder, 'Tutti.dll'), os.path.join(folder, 'Tests.dll')
    made = [path for path in glob.glob(os.path.join(assemblies, '*.cs'))]
    subprocess.run([*COMPILER, *runtime.references(), '-target:library', '-out:' + library,
                    *sorted(glob.glob(os.path.join(HERE, 'src', '*.cs'))), *sorted(made)], check=True)
    subprocess.run([*COMPILER, *runtime.references(), '-r:' + library, '-target:exe', '-out:' + program,
                    *sorted(glob.glob(os.path.join(TESTS, '*.cs'))), os.path.join(HERE, 'src', 'JsonReader.cs')], check=True)
    runtime.configure(program)
    return program


def generate(folder):
    """The sources that a build makes (meson.build)."""
    raw.main('swig', folder)
    subprocess.run([sys.executable, os.path.join(HERE, 'builders.py'), folder], check=True)


def main(dotnet, folder):
    generated = os.path.join(folder, 'generated')
    os.makedirs(generated)
    generate(generated)
    core_tests(Runtime(dotnet), generated, folder)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
