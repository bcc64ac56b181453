# SPDX-License-Identifier: Apache-2.0
"""A build that was made on another machine, as one file: programs and plug-ins, the libraries that they run with, what tests
say about themselves, the images of Fashion-MNIST. It is taken where the sources are those that it was made from."""
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile

import packages
import packed_files
import source_digest

# What the archive begins with, and what lies beside the programs when all of it is there; the tests, in which folders have the
# names below.
HEAD, MARK, TESTS, IMAGES, LIBRARIES = 'head.json', 'carried.json', 'gpu-tests.json', 'fashion-mnist', 'run'
BUILD, SOURCES = '@BUILD@', '@SOURCES@'
# Of the system and of the driver and toolkit, which the other machine has; its own are newer.
OF_THE_SYSTEM = re.compile(r'(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|cuda|cudart|cudnn|nccl|nvrtc|'
                           r'cublas|cublasLt|nvidia-ml|nvJitLink)[._-])')
# Of xz: more takes minutes longer and gives little.
PRESET = 6


def path():
    return os.environ.get('TUTTI_GPU_BUILD') or os.path.join('build', 'gpu-build.tar.xz')


# Where it is made.

def listed_by_meson(build):
    """What Meson says about the tests of the suite gpu; [] where nothing was configured."""
    answer = subprocess.run(['meson', 'introspect', '--tests', build], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return []
    return [test for test in json.loads(answer.stdout) if 'gpu' in test['suite'] or 'tutti:gpu' in test['suite']]


def words_of(test):
    """All that may be a path."""
    return [*test['cmd'], *(word for value in test['env'].values() for word in value.split(':'))]


def files_named(build, tests, programs):
    """The programs and plug-ins, by their names in the build folder."""
    words = {word for test in tests for word in words_of(test)} | {os.path.join(build, name) for name in programs}
    inner = {os.path.relpath(word, build) for word in words if os.path.isabs(word) and os.path.isfile(word)}
    return {name for name in inner if packed_files.is_inside(name)}


def needed_by(binary, environment):
    """Paths of the libraries that the loader finds for it, without the system's."""
    answer = subprocess.run(['ldd', binary], capture_output=True, text=True, check=False, env=environment)
    found = re.findall(r'^\s*(\S+) => (/\S+)', answer.stdout, re.MULTILINE)
    return {os.path.normpath(place) for name, place in found if not OF_THE_SYSTEM.match(os.path.basename(name))}


def gathered(build, tests, programs, environment):
    """{name in the archive: path}: what Meson built by its name there, libraries of this machine in folders of their own."""
    named = files_named(build, tests, programs)
    members = {name: os.path.join(build, name) for name in named}
    for name in sorted(named):
        for place in needed_by(os.path.join(build, name), environment):
            inner = os.path.relpath(place, build)
            library = os.path.basename(place)
            members[inner if packed_files.is_inside(inner) else os.path.join(LIBRARIES, library, library)] = place
    return members


def stripped(source, target):
    """A copy without what no loader reads. Plug-ins and libraries keep the names that a debugger's stacks have; those of a
    program can be looked up in the build that it comes from."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    what = '--strip-debug' if '.so' in os.path.basename(source) else '--strip-all'
    if subprocess.run(['strip', what, '--discard-all', '-o', target, source], check=False, capture_output=True).returncode != 0:
        shutil.copy(source, target)
    return target


def images():
    """[(name, bytes)] without gzip, which xz cannot look into; [] where there are none."""
    folder = os.environ.get('TUTTI_FASHION_MNIST', packages.FASHION_MNIST)
    if not os.path.isdir(folder):
        return []
    listed = []
    for name in sorted(os.listdir(folder)):
        if name.endswith('-ubyte.gz'):
            with gzip.open(os.path.join(folder, name)) as file:
                listed.append((os.path.join(IMAGES, name.removesuffix('.gz')), file.read()))
    return listed


def with_names(text, build):
    """Of folders, for another machine."""
    return text.replace(os.path.abspath(build), BUILD).replace(os.path.abspath('.'), SOURCES)


def pack(target, build, programs, what, environment):
    """Writes the archive; `what` is told about it: digest, commit, architectures."""
    build = os.path.abspath(build)
    tests = listed_by_meson(build)
    with tempfile.TemporaryDirectory(prefix='tutti-carried-') as folder:
        members = [(HEAD, json.dumps(what).encode()), (TESTS, with_names(json.dumps(tests), build).encode())]
        for name, place in sorted(gathered(build, tests, programs, environment).items()):
            members.append((name, stripped(place, os.path.join(folder, name))))
        packed_files.pack(target, members + images(), PRESET)
    return len(members), len(tests)


# Where it is used.

def taken(build):
    """What was unpacked in the folder; None where it has a build of its own, or nothing."""
    if os.path.exists(os.path.join(build, 'build.ninja')):
        return None
    try:
        with open(os.path.join(build, MARK), encoding='utf-8') as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def refusal(what, capabilities):
    """Why a build cannot be taken here; '' where it can."""
    if what.get('digest') != source_digest.of_what_is_built():
        return f'was built from other sources than these ({what.get("commit") or "of no known commit"})'
    built = {word.partition('-')[0] for word in what.get('architectures', [])}
    lacking = sorted({capability.replace('.', '') for capability in capabilities} - built)
    return f'was built for {", ".join(sorted(built))}, and here is a GPU of {", ".join(lacking)}' if lacking else ''


def take(build, capabilities, say):
    """Unpacks an archive of these sources in the folder, once; what it is. None where there is none, or another."""
    archive = path()
    if not os.path.exists(archive):
        if 'TUTTI_GPU_BUILD' in os.environ:
            say(f'there is no {archive}')
        return None
    if os.path.exists(os.path.join(build, 'build.ninja')):
        say(f'{build} was configured here, and goes before {archive}')
        return None
    try:
        what = json.loads(packed_files.first(archive))
        why = refusal(what, capabilities)
        if not why and taken(build) != what:
            unpack(archive, build, what)
    except (*packed_files.DAMAGED, ValueError) as error:
        why = f'cannot be read: {error}'
    if why:
        say(f'{archive} {why}; it is not taken')
        return None
    return what


def unpack(archive, build, what):
    """The mark last: with it all is there."""
    mark = os.path.join(build, MARK)
    if os.path.exists(mark):
        os.remove(mark)
    packed_files.unpack(archive, build)
    compress_images(os.path.join(build, IMAGES))
    with open(mark + '.new', 'w', encoding='utf-8') as file:
        json.dump(what, file)
    os.replace(mark + '.new', mark)


def compress_images(folder):
    """As they are everywhere else."""
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        place = os.path.join(folder, name)
        if not name.endswith('.gz'):
            with open(place, 'rb') as file, gzip.open(place + '.gz', 'wb', compresslevel=1) as written:
                shutil.copyfileobj(file, written)
            os.remove(place)


def use(build):
    """This process, and what it starts, finds the libraries and the images that came with it."""
    packages.add('LD_LIBRARY_PATH', packages.unknown_libraries(os.path.join(build, LIBRARIES)))
    if os.path.isdir(os.path.join(build, IMAGES)):
        os.environ.setdefault('TUTTI_FASHION_MNIST', os.path.abspath(os.path.join(build, IMAGES)))


def listed_tests(build):
    """What tests of the suite gpu say about themselves: as it came with the build, or as Meson has it."""
    if taken(build) is None:
        return listed_by_meson(build)
    with open(os.path.join(build, TESTS), encoding='utf-8') as file:
        text = file.read()
    return json.loads(text.replace(BUILD, os.path.abspath(build)).replace(SOURCES, os.path.abspath('.')))
