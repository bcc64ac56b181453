#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Go tool over the module, with the library of a build folder that need not be installed.

usage: run_go.py vet|test|race BUILD_FOLDER
       run_go.py example BUILD_FOLDER NAME             builds a program of examples/go and runs it as a test
       run_go.py run BUILD_FOLDER GO_ARGUMENT...      any other command, such as: run build/test test -run Feed ./...

Nothing is downloaded. Without Go >= 1.19 it says so and ends with status 77.
"""
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples', 'go')
RUN_EXAMPLE = os.path.join(os.path.dirname(EXAMPLES), 'run_example.py')
SKIPPED = 77
OLDEST = (1, 19)


def environment(build):
    folder = os.path.join(build, 'bindings', 'go')
    return {**os.environ, 'GOFLAGS': '-mod=mod', 'GOPROXY': 'off', 'GOWORK': 'off', 'GOTOOLCHAIN': 'local', 'CGO_ENABLED': '1',
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


def commands(what, build, more):
    # SWIG's code turns numbers into pointers, all of them to C memory.
    return {'vet': [['go', 'vet', '.'], ['go', 'vet', '-unsafeptr=false', './...'], ['gofmt', '-l', '.']],
            'test': [['go', 'test', '-count=1', './...']],
            'race': [['go', 'test', '-race', '-count=1', './...']],
            'run': [['go', *more]],
            'example': [['go', 'build', '-o', os.path.join(build, 'examples', 'go') + os.sep] + [f'./{name}' for name in more]] +
                       [[sys.executable, RUN_EXAMPLE, name, os.path.join(build, 'examples', 'go', name)] for name in more]}[what]


def main(what, build, *more):
    reason = missing(what)
    if reason:
        print('skipped:', reason)
        return SKIPPED
    build = os.path.abspath(build)
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
