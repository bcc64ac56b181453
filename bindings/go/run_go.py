#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Go tool over the module, with the library of a build folder that need not be installed.

usage: run_go.py vet|test|race BUILD_FOLDER
       run_go.py example BUILD_FOLDER NAME             builds a program of examples/go and runs it as a test
       run_go.py installed BUILD_FOLDER                installs into a folder, and builds hello outside the tree against that
       run_go.py scenario_program BUILD_FOLDER FOLDER  makes a program that does scenarios as a worker; prints its path
       run_go.py run BUILD_FOLDER GO_ARGUMENT...      any other command, such as: run build/test test -run Feed ./...

Nothing is downloaded. Without Go >= 1.19 it says so and ends with status 77.
"""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples', 'go')
RUN_EXAMPLE = os.path.join(os.path.dirname(EXAMPLES), 'run_example.py')
SERVING_CLIENT = os.path.join(os.path.dirname(EXAMPLES), 'serving_client.py')
SKIPPED = 77
OLDEST = (1, 19)


def environment(build):
    folder = os.path.join(build, 'bindings', 'go')
    return {**os.environ, 'GOFLAGS': '-mod=mod -buildvcs=false', 'GOPROXY': 'off', 'GOWORK': 'off', 'GOTOOLCHAIN': 'local', 'CGO_ENABLED': '1',
            'GOCACHE': os.path.join(folder, 'cache'), 'GOPATH': os.path.join(folder, 'path'), 'GODEBUG': 'cgocheck=1',
            'PKG_CONFIG_PATH': os.path.join(build, 'meson-uninstalled'),
            'LD_LIBRARY_PATH': os.path.join(build, 'lib')}


def missing(what):
    """Why the Go tool cannot be used here; empty when it can."""
    if shutil.which('go') is None:
        return 'no go here (package golang-go)'
    text = subprocess.run(['go', 'version'], capture_output=True, text=True, check=False).stdout
    match = re.search(r'go(\d+)\.(\d+)', text)
    if not match or (int(match.group(1)), int(match.group(2))) < OLDEST:
        return f'{text.strip()} is older than go{OLDEST[0]}.{OLDEST[1]}'
    if what == 'race' and platform.machine() not in ('x86_64', 'aarch64', 'ppc64le', 's390x'):
        return f'Go has no race detector for {platform.machine()}'
    return ''


def test_of(example):
    return [SERVING_CLIENT] if example == 'serving' else [RUN_EXAMPLE, example]


def commands(what, build, more):
    # SWIG's code turns numbers into pointers, all of them to C memory.
    return {'vet': [['go', 'vet', '.'], ['go', 'vet', '-unsafeptr=false', './...'], ['gofmt', '-l', '.', EXAMPLES]],
            'test': [['go', 'test', '-count=1', './...']],
            'race': [['go', 'test', '-race', '-count=1', './...']],
            'run': [['go', *more]],
            'example': [['go', 'build', '-o', os.path.join(build, 'examples', 'go') + os.sep] + [f'./{name}' for name in more]] +
                       [[sys.executable, *test_of(name), os.path.join(build, 'examples', 'go', name)] for name in more]}[what]


def pkg_config_of(folder):
    """The folder of tutti.pc below an installation, its prefix changed to where it lies; and the folder of the library."""
    (path,) = glob.glob(os.path.join(folder, '**', 'tutti.pc'), recursive=True)
    with open(path, encoding='utf-8') as file:
        text = re.sub(r'^prefix=', f'prefix={folder}', file.read(), flags=re.M)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return os.path.dirname(path), os.path.dirname(os.path.dirname(path))


def installed(build):
    with tempfile.TemporaryDirectory() as folder:
        system, program = os.path.join(folder, 'system'), os.path.join(folder, 'hello')
        subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', system], check=True,
                       stdout=subprocess.DEVNULL)
        pkg_config, libraries = pkg_config_of(system)
        shutil.copytree(HERE, os.path.join(folder, 'module'), ignore=shutil.ignore_patterns('*_test.go', '*.py', '__pycache__'))
        shutil.copytree(os.path.join(EXAMPLES, 'hello'), program)
        with open(os.path.join(program, 'go.mod'), 'w', encoding='utf-8') as file:
            file.write('module hello\n\ngo 1.19\n\nrequire tutti.org/tutti v0.1.0\n\nreplace tutti.org/tutti => ../module\n')
        variables = {**environment(build), 'PKG_CONFIG_PATH': pkg_config, 'LD_LIBRARY_PATH': libraries}
        subprocess.run(['go', 'build', '-o', 'hello', '.'], cwd=program, env=variables, check=True)
        return subprocess.run([sys.executable, RUN_EXAMPLE, 'hello', os.path.join(program, 'hello')], env=variables,
                              check=False).returncode


def scenario_program(build, folder):
    """The program of the tests, behind a script that tells where the library is."""
    program, script = os.path.join(folder, 'go_tests'), os.path.join(folder, 'go_scenarios')
    subprocess.run(['go', 'test', '-c', '-o', program, '.'], cwd=HERE, env=environment(build), check=True, stdout=subprocess.DEVNULL)
    with open(script, 'w', encoding='utf-8') as file:
        file.write(f"#!/bin/sh\nLD_LIBRARY_PATH='{os.path.join(build, 'lib')}' exec '{program}' scenarios \"$@\"\n")
    os.chmod(script, 0o755)
    print(script)
    return 0


def main(what, build, *more):
    reason = missing(what)
    if reason:
        print('skipped:', reason)
        return SKIPPED
    build = os.path.abspath(build)
    if what in ('installed', 'scenario_program'):
        return {'installed': installed, 'scenario_program': scenario_program}[what](build, *more)
    folder = EXAMPLES if what == 'example' else HERE
    for command in commands(what, build, more):
        done = subprocess.run(command, cwd=folder, env=environment(build), stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end='')
        if done.returncode or (command[0] == 'gofmt' and done.stdout):
            print('failed:', ' '.join(command))
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
