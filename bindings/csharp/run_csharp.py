#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs in C# by Mono, with the libraries of a build folder that need not be installed.

usage: run_csharp.py test BUILD_FOLDER CLASS [METHOD]      the tests of a class
       run_csharp.py coreclr BUILD_FOLDER CLASS [METHOD]   the same on CoreCLR, twice: made for Mono, and for .NET
       run_csharp.py collector BUILD_FOLDER                tests under a collector that runs all the time
       run_csharp.py found BUILD_FOLDER                    each way to the library, and what is told where there is none
       run_csharp.py readme BUILD_FOLDER                   compiles and runs the program of README.md
       run_csharp.py example BUILD_FOLDER NAME             compiles a program of examples/csharp and runs it as a test
       run_csharp.py installed BUILD_FOLDER                installs into a folder, and compiles hello outside the tree against that
       run_csharp.py scenario_program BUILD_FOLDER FOLDER  makes a program that does scenarios as a worker; prints its path
       run_csharp.py measure BUILD_FOLDER                  prints what calls cost
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import coreclr

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLES = os.path.join(ROOT, 'examples', 'csharp')
RUN_EXAMPLE = os.path.join(ROOT, 'examples', 'run_example.py')
SERVING_CLIENT = os.path.join(ROOT, 'examples', 'serving_client.py')
SKIPPED = 77
ONLY_ON_DOTNET = ('WithSpans',)
# Tests that cross between C and C# most, for the collector that runs all the time.
CROSSING = ('Failures', 'Maps', 'Data', 'Predictions', 'ToyTests')


def folder_of(build):
    return os.path.join(build, 'bindings', 'csharp')


def environment(build):
    return variables(folder_of(build), [folder_of(build), os.path.join(build, 'lib')])


def variables(assemblies, libraries):
    return {**os.environ, 'MONO_PATH': assemblies, 'LD_LIBRARY_PATH': os.pathsep.join(libraries)}


def run_tests(build, *arguments, **more):
    program = os.path.join(folder_of(build), 'Tests.exe')
    return subprocess.run(['mono', '--debug', program, *arguments], env={**environment(build), **more}, check=False).returncode


def run_on_coreclr(build, name, *arguments):
    """Exit status 77, and why, where there is no CoreCLR. A class of what only .NET has is not in the other assembly."""
    if not os.environ.get('TUTTI_CORECLR'):
        print('skipped: TUTTI_CORECLR names no folder with dotnet')
        return SKIPPED
    runtime, outcomes = coreclr.Runtime(os.path.abspath(os.environ['TUTTI_CORECLR'])), []
    for make in (coreclr.standard_tests, coreclr.core_tests):
        if name in ONLY_ON_DOTNET and make == coreclr.standard_tests:
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = make(runtime, folder_of(build), folder)
            print(make.__doc__)
            sys.stdout.flush()
            # The assembly for .NET looks into the folder of TUTTI_LIBRARY_DIR itself.
            where = {'TUTTI_LIBRARY_DIR': folder_of(build), 'LD_LIBRARY_PATH': os.path.join(build, 'lib')}
            if make == coreclr.standard_tests:
                where = {'LD_LIBRARY_PATH': environment(build)['LD_LIBRARY_PATH']}
            outcomes.append(runtime.run(program, [name, *arguments], **where))
    failed = [code for code in outcomes if code not in (0, SKIPPED)]
    return failed[0] if failed else min(outcomes)


def collector(build):
    """A collection, which moves the youngest objects, before every allocation of the runtime's slow path."""
    return max(run_tests(build, name, MONO_GC_DEBUG='collect-before-allocs=1') for name in CROSSING)


FOUND = '''using System;
using Tutti;

internal static class Found
{
    private static void Main(string[] arguments)
    {
        if (arguments.Length > 0)
            Library.Directory = arguments[0];
        Console.WriteLine("version " + Library.Version);
        try
        {
            Library.Directory = null;
        }
        catch (InvalidOperationException e)
        {
            Console.WriteLine(e.Message);
        }
    }
}
'''


def found(build):
    """A program in a folder of its own, and the native libraries in others."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'Found')
        os.mkdir(source)
        with open(os.path.join(source, 'Found.cs'), 'w', encoding='utf-8') as file:
            file.write(FOUND)
        program = compiled(source, folder, folder_of(build))
        shutil.copy(os.path.join(folder_of(build), 'Tutti.dll'), folder)
        commands = [['mono', program]]
        if os.environ.get('TUTTI_CORECLR'):
            runtime = coreclr.Runtime(os.path.abspath(os.environ['TUTTI_CORECLR']))
            runtime.configure(shutil.copy(program, os.path.join(folder, 'Found.dll')))
            commands.append([runtime.program, os.path.join(folder, 'Found.dll')])
        return max(found_by(command, build, folder) for command in commands)


def found_by(command, build, folder):
    beside, package = folder, os.path.join(folder, 'runtimes', 'linux-x64', 'native')
    away, half = os.path.join(folder, 'away'), os.path.join(folder, 'half')
    # Where the libraries are, the program's arguments, the variables; what is said with them, and what without.
    ways = [
        (beside, [], {}, f'no {beside}/libtuttisharp.so'),
        (package, [], {}, f'no {package}/libtuttisharp.so'),
        (away, [away], {}, f'no {away}/libtuttisharp.so'),
        (away, [], {'TUTTI_LIBRARY_DIR': away}, f'no {away}/libtuttisharp.so'),
        (away, [], {'LD_LIBRARY_PATH': away}, 'the system: libtuttisharp.so: cannot open shared object file'),
        # What a program says comes before what the environment says.
        (away, [away], {'TUTTI_LIBRARY_DIR': half}, f'no {away}/libtuttisharp.so'),
    ]
    failed = []
    for place, arguments, named, wanted in ways:
        said = said_by(command + arguments, named)
        if wanted not in said or 'TUTTI_LIBRARY_DIR' not in said or 'LD_LIBRARY_PATH' not in said:
            failed.append((arguments, named, wanted, said))
        place_libraries(build, place)
        said = said_by(command + arguments, named)
        if 'version ' not in said or 'is loaded already' not in said:
            failed.append((arguments, named, 'version', said))
        halve(os.path.join(place, 'libtutti.so.0.1'))
        said = said_by(command + arguments, named)
        if 'libtutti.so.0.1: file too short' not in said:
            failed.append((arguments, named, 'half of libtutti', said))
        os.remove(os.path.join(place, 'libtutti.so.0.1'))
        os.remove(os.path.join(place, 'libtuttisharp.so'))
    os.makedirs(half, exist_ok=True)
    halve(os.path.join(half, 'libtuttisharp.so'))
    said = said_by(command, {'TUTTI_LIBRARY_DIR': half})
    if f'{half}/libtuttisharp.so cannot be loaded: ' not in said or 'file too short' not in said:
        failed.append(('half of libtuttisharp', said))
    for line in failed:
        print('FAILED:', command[0], *line)
    print(f'{command[0]}: {len(ways)} ways tried')
    return 1 if failed else 0


def place_libraries(build, folder):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(folder_of(build), 'libtuttisharp.so'), folder)
    shutil.copy(os.path.join(build, 'lib', 'libtutti.so.0.1'), folder)


def halve(path):
    with open(path, 'wb') as file:
        file.write(b'\x7fELF')


def said_by(command, named):
    kept = {name: value for name, value in os.environ.items() if name not in ('TUTTI_LIBRARY_DIR', 'LD_LIBRARY_PATH')}
    done = subprocess.run(command, env={**kept, **named}, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def compiled(source, folder, assemblies):
    """A program made of the C# files of a folder; gives its path."""
    program = os.path.join(folder, os.path.basename(source) + '.exe')
    subprocess.run(['mcs', '-langversion:7.2', '-warn:4', '-warnaserror', '-out:' + program, '-r:' + os.path.join(assemblies, 'Tutti.dll'),
                    *sorted(glob.glob(os.path.join(source, '*.cs')))], check=True)
    return program


def as_command(program, folder):
    """A script that runs it, as the runner of examples wants it."""
    script = os.path.join(folder, 'run')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\nexec mono --debug "{program}" "$@"\n')
    os.chmod(script, 0o755)
    return script


def run_program(source, check, assemblies, variables_of_run):
    with tempfile.TemporaryDirectory() as folder:
        script = as_command(compiled(source, folder, assemblies), folder)
        test = [SERVING_CLIENT] if check == 'serving' else [RUN_EXAMPLE, check]
        return subprocess.run([sys.executable, *test, script], env=variables_of_run, check=False).returncode


def readme(build):
    with open(os.path.join(HERE, 'README.md'), encoding='utf-8') as file:
        (program,) = re.findall(r'```csharp\n(using .*?)```', file.read(), re.S)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'hello')
        os.mkdir(source)
        with open(os.path.join(source, 'Hello.cs'), 'w', encoding='utf-8') as file:
            file.write(program)
        return run_program(source, 'hello', folder_of(build), environment(build))


def installed(build):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', folder], check=True,
                       stdout=subprocess.DEVNULL)
        (assembly,) = glob.glob(os.path.join(folder, '**', 'Tutti.dll'), recursive=True)
        (library,) = glob.glob(os.path.join(folder, '**', 'libtuttisharp.so'), recursive=True)
        source = os.path.join(folder, 'hello')
        shutil.copytree(os.path.join(EXAMPLES, 'hello'), source)
        found = variables(os.path.dirname(assembly), [os.path.dirname(library)])
        return run_program(source, 'hello', os.path.dirname(assembly), found)


def example(build, name):
    return run_program(os.path.join(EXAMPLES, name), name, folder_of(build), environment(build))


def scenario_program(build, folder):
    """The program of the tests, behind a script that tells where the libraries are."""
    script, paths = os.path.join(folder, 'csharp_scenarios'), environment(build)
    program = os.path.join(folder_of(build), 'Tests.exe')
    exports = ''.join(f"export {name}='{paths[name]}'\n" for name in ('MONO_PATH', 'LD_LIBRARY_PATH'))
    with open(script, 'w', encoding='utf-8') as file:
        file.write(f"#!/bin/sh\n{exports}exec mono '{program}' scenarios \"$@\"\n")
    os.chmod(script, 0o755)
    print(script)
    return 0


def main(what, build, *more):
    build = os.path.abspath(build)
    commands = {'test': run_tests, 'coreclr': run_on_coreclr, 'collector': collector, 'found': found, 'readme': readme,
                'example': example, 'installed': installed, 'scenario_program': scenario_program,
                'measure': lambda folder: run_tests(folder, 'measure')}
    return commands[what](build, *more)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
