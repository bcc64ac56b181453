#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies the libraries that binaries need into a folder, so that they run without those of the system but glibc's.

usage: bundle_libraries.py [--licences FOLDER] [--leave NAME]... [--] FOLDER BINARY...

Every binary, and every library that is copied, looks for libraries in FOLDER first, by a path relative to its own place
(RUNPATH). --licences: what the packages of the copied libraries say of their licences goes there. --leave: plug-ins whose
own needs are left to the system. Prints what was copied.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

# glibc is the system's: it must be the one that the kernel's loader belongs to.
GLIBC = re.compile(r'^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|BrokenLocale))\.so')


def output_of(*command, folder=None):
    """What a command prints, while the loader looks in `folder` first."""
    environment = {**os.environ, 'LD_LIBRARY_PATH': folder} if folder else None
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def needed(path):
    """Names of the libraries that a binary asks for."""
    return re.findall(r'\(NEEDED\).*\[(.+)\]', output_of('readelf', '--dynamic', '--wide', path))


def found_by_loader(path, folder):
    """Where the loader finds all of them, and what they need in turn."""
    places = {}
    for line in output_of('ldd', path, folder=folder).splitlines():
        match = re.match(r'\s*(\S+) => (\S+) \(', line)
        if match:
            places[match.group(1)] = match.group(2)
        elif '=> not found' in line:
            sys.exit(f'{path}: {line.strip()}')
    return places


def licence_of(library, folder):
    real = os.path.realpath(library)
    # Packages list what they brought by its name before /usr was merged.
    names = [real, real[len('/usr'):] if real.startswith('/usr/') else real]
    for name in names:
        owner = subprocess.run(['dpkg', '-S', name], capture_output=True, text=True, check=False).stdout
        if owner:
            package = owner.split(':')[0]
            os.makedirs(folder, exist_ok=True)
            shutil.copyfile(f'/usr/share/doc/{package}/copyright', os.path.join(folder, package + '.txt'))
            return
    sys.exit(f'{library}: no package has it, and so nothing tells its licence')


def look_in(binary, folder):
    relative = os.path.relpath(folder, os.path.dirname(binary))
    origin = '$ORIGIN' if relative == '.' else '$ORIGIN/' + relative
    subprocess.run(['patchelf', '--set-rpath', origin, binary], check=True)


def bundle(folder, binaries, left, licences):
    places = {}
    for binary in binaries:
        if os.path.basename(binary) not in left:
            places.update(found_by_loader(binary, folder))
    pending = [binary for binary in binaries if os.path.basename(binary) not in left]
    copied = {}
    own = {os.path.basename(binary) for binary in binaries}
    while pending:
        for name in needed(pending.pop()):
            if GLIBC.match(name) or name in copied or name in own or os.path.exists(os.path.join(folder, name)):
                continue
            copied[name] = os.path.join(folder, name)
            shutil.copy2(os.path.realpath(places[name]), copied[name])
            os.chmod(copied[name], 0o644)
            if licences:
                licence_of(places[name], licences)
            look_in(copied[name], folder)
            pending.append(copied[name])
    for binary in binaries:
        look_in(binary, folder)
    return copied


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('binaries', nargs='+')
    parser.add_argument('--licences')
    parser.add_argument('--leave', action='append', default=[])
    arguments = parser.parse_args()
    binaries = [path for path in arguments.binaries if not os.path.islink(path)]
    for name, path in sorted(bundle(arguments.folder, binaries, arguments.leave, arguments.licences).items()):
        print(f'{os.path.getsize(path):>10} {name}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
