# SPDX-License-Identifier: Apache-2.0
"""Which sources something was built from, or ran with: a word that differs where they do. What is only read counts for nothing,
and neither does what a compiler or Python leaves beside the sources."""
import fnmatch
import hashlib
import os
import subprocess

TOPS = ('include', 'lib', 'tests', 'meson.build', 'meson_options.txt')
NOT_A_SOURCE = ('*.md', '*.pyc', '*.o', '*.so', '*.o.d')
# The scripts of this folder are run, and built into nothing.
SCRIPTS = os.path.join('tests', 'gpu', '*.py'), os.path.join('tests', 'gpu', '*.sh')


def files(top):
    if os.path.isfile(top):
        return [top]
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)


def digest_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, 'rb') as file:
            digest.update(path.encode() + b'\0' + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:12]


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def sources():
    return [path for top in TOPS for path in files(top) if not matches(path, NOT_A_SOURCE)]


def of_what_is_run():
    """So that results of other sources are not taken for these."""
    return digest_of(sources())


def of_what_is_built():
    """So that a build of other sources is not taken for one of these."""
    return digest_of(path for path in sources() if not matches(path, SCRIPTS))


def of_kernels(patterns):
    """Of those files of the backend whose names match."""
    return digest_of(path for folder in ('gpu', 'cuda') for path in files(os.path.join('lib', 'backend', folder))
                     if matches(os.path.basename(path), patterns) and not matches(path, NOT_A_SOURCE))


def commit():
    """The commit that they come from, with a "+" where they have changed since; "" where nothing tells."""
    try:
        answer = subprocess.run(['git', 'describe', '--always', '--abbrev=12', '--exclude=*', '--dirty=+'], capture_output=True,
                                text=True, check=False)
    except OSError:
        return ''
    return answer.stdout.strip() if answer.returncode == 0 else ''
