#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What run.sh calls: builds, then does the parts that were asked for and are not done yet. See run.sh."""
import argparse
import concurrent.futures
import datetime
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import must_hold
import packages
import parts as all_parts
import toolkit
from results import DONE, Results

BUILD = os.environ.get('TUTTI_BUILD_DIR', 'build/gpu')
PLUGIN_FOLDER = 'lib/backend/cuda'
TARGETS = [PLUGIN_FOLDER + '/tutti-cuda.so', 'gpu-tests', 'tests/bench/step_bench', 'tests/bench/accuracy_bench',
           'tests/bench/replica_bench', 'tests/bench/estimator_soak']
LEFT, FAILED = 3, 1
TOGETHER = 4
# How often a part that a signal ended is begun again under a debugger.
MOST_DEBUGGED = 4


def digest_of_sources():
    """Of what is built and run, so that results of other sources are not taken for these."""
    digest = hashlib.sha256()
    for top in ('include', 'lib', 'tests', 'meson.build', 'meson_options.txt'):
        paths = [top] if os.path.isfile(top) else sorted(
            os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if not name.endswith('.pyc'))
        for path in paths:
            with open(path, 'rb') as file:
                digest.update(path.encode() + b'\0' + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:12]


class Clock:
    """What is left of --seconds."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds if seconds else None

    def left(self):
        return self.end - time.monotonic() if self.end else float('inf')


def run(command, limit, log, environment, folder='.'):
    """(exit status, None past the limit; seconds). Nothing that it started outlives it."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment,
                          cwd=folder, start_new_session=True) as process:
        try:
            status = process.wait(None if limit == float('inf') else max(limit, 1))
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return status, time.monotonic() - begin


def joined(first, second):
    """Two environments: what the second says goes, and lists of folders are those of both."""
    both = {**first, **second}
    for name in ('LD_LIBRARY_PATH', 'PATH'):
        folders = [one[name] for one in (second, first) if one.get(name)]
        if folders:
            both[name] = ':'.join(folders)
    return both


class Runner:
    """Does parts; several at a time where they may. `gpus`: how many programs find here."""

    def __init__(self, results, clock, environment, gpus=1):
        self.results, self.clock, self.environment, self.gpus = results, clock, environment, gpus
        self.lock = threading.Lock()

    def do(self, part):
        if part.lacks:
            return self.note(part, 'skipped', 0, part.lacks)
        if self.clock.left() < part.expected:
            return None
        limit = min(part.limit, self.clock.left())
        path = self.results.log_path(f'{part.group} {part.name}')
        command = [word.replace('RESULTS/', self.results.folder + '/') for word in part.command]
        environment = joined(self.environment, dict(part.environment))
        with open(path, 'w', encoding='utf-8') as log:
            log.write(shlex.join(command) + '\n')
            log.flush()
            try:
                status, seconds = run(command, limit, log, environment, part.folder)
            except OSError as error:
                return self.note(part, 'failed', 0, str(error))
        if status is not None and status < 0:
            self.find_crash(part, command, environment)
        with open(path, encoding='utf-8', errors='replace') as log:
            output = log.read()
        return self.judge(part, status, seconds, output, limit)

    def find_crash(self, part, command, environment):
        """Where a part that a signal ended was, in its log: what the kernel says, and the stacks of all threads if the debugger
        meets it in a few more runs."""
        with open(self.results.log_path(f'{part.group} {part.name} crash'), 'w', encoding='utf-8') as log:
            for words in (['sh', '-c', 'dmesg | tail -n 5'], *[self.under_debugger(command)] * MOST_DEBUGGED):
                log.write(shlex.join(words) + '\n')
                log.flush()
                begin = log.tell()
                try:
                    run(words, min(part.limit, self.clock.left()), log, environment, part.folder)
                except OSError as error:
                    log.write(f'{error}\n')
                with open(log.name, encoding='utf-8', errors='replace') as written:
                    written.seek(begin)
                    if 'received signal' in written.read():
                        return

    def under_debugger(self, command):
        name = next((name for name in ('cuda-gdb', 'gdb') if shutil.which(name, path=self.environment.get('PATH'))), 'gdb')
        return [name, '-batch', '-ex', 'run', '-ex', 'thread apply all backtrace', '--args', *command]

    def judge(self, part, status, seconds, output, limit):
        says, rows, holds = '', None, True
        if status is None:
            if limit < part.limit:
                return self.note(part, 'cut off', seconds, 'the time was over')
            late = f'did not end within {part.limit:.0f} s'
            # A sanitizer takes its time, and has told until then what it found. What it did not get to is not clean.
            if part.group == 'sanitize' and not all_parts.has_findings(output):
                return self.note(part, 'partial', seconds, late + ', and found nothing until then')
            return self.note(part, 'failed', seconds, late)
        if part.judge and (status == 0 or part.group != 'bench'):
            try:
                holds, says, rows = part.judge(output, self.results.folder)
            except (OSError, ValueError, KeyError) as error:
                holds, says = False, f'no result: {error}'
        if status == all_parts.SKIPPED or holds is None:
            said = [line for line in output.splitlines() if line.startswith('skipped:')]
            says = says or (said[-1].removeprefix('skipped:').strip() if said else 'it did not say why')
            # Here is a GPU: a test that finds none has not proved anything.
            is_failure = part.group == 'tests' and not all_parts.wants_more_gpus(says, self.gpus)
            return self.note(part, 'failed' if is_failure else 'skipped', seconds,
                             f'skipped, which it must not be here: {says}' if is_failure else says)
        if status != 0:
            last = output.strip().splitlines()[-1:] or ['']
            return self.note(part, 'failed', seconds, f'exit status {status}: {says if rows else last[0]}'[:300])
        if holds == all_parts.INCONCLUSIVE:
            return self.note(part, 'partial', seconds, says, rows)
        return self.note(part, 'ok' if holds else 'failed', seconds, says, rows)

    def note(self, part, status, seconds, says, rows=None):
        with self.lock:
            self.results.add(f'{part.group} {part.name}', part.group, status, seconds, says.replace('|', '/'), rows)
            print(f'{status:8} {seconds:6.1f} s  {part.group} {part.name}  {says}', flush=True)

    def do_all(self, parts):
        shared = [part for part in parts if not part.alone]
        if shared:
            # One by itself first: what it makes ready (modules, caches) the others find.
            self.do(shared[0])
            with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
                list(pool.map(self.do, shared[1:]))
        for part in parts:
            if part.alone:
                self.do(part)


def build(results, clock, environment, folder, architectures):
    """Whether all was built; what has a fault does not keep the rest from being built."""
    path = results.log_path('build')
    with open(path, 'w', encoding='utf-8') as log:
        if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
            setup = ['meson', 'setup', BUILD, '--buildtype=release', '-Dcuda=enabled', '-Dtests=enabled', '-Dgo=disabled',
                     '-Djava=disabled', '-Dcsharp=disabled', '-Dhttp=disabled', '-Dhip=disabled',
                     f'-Dgpu_toolkit={folder}', f'-Dgpu_architectures={architectures}',
                     *shlex.split(os.environ.get('TUTTI_SETUP_ARGS', ''))]
            log.write(shlex.join(setup) + '\n')
            log.flush()
            status, _ = run(setup, clock.left(), log, environment)
            if status != 0:
                return False
        status, seconds = run(['ninja', '-C', BUILD, '-k', '0', *TARGETS], clock.left(), log, environment)
    print(f'build: {"ok" if status == 0 else "cut off" if status is None else "failed"} in {seconds:.0f} s', flush=True)
    return status == 0


def make_ready(clock):
    """Fetches what a build lacks, where this machine can; what it lacks still, and the folder of what was fetched."""
    folder = packages.folder()
    packages.use(folder)
    # For what there is only more to test with, the first build alone: what cannot be had is not asked for each time.
    if packages.lacking() or not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with open(folder + '.log', 'w', encoding='utf-8') as log:
            def fetch(command):
                print(f'run.sh: fetches what a build lacks: {shlex.join(command)}', flush=True)
                log.write(shlex.join(command) + '\n')
                log.flush()
                return run(command, min(clock.left(), packages.MOST_SECONDS), log, dict(os.environ))[0] == 0
            packages.fetch(folder, fetch)
    for name in packages.wanting():
        print(f'run.sh: there is less to test without {name}', flush=True)
    return packages.lacking(), folder


def chosen(parts, words):
    known = {*all_parts.GROUPS, 'all'} | {part.name for part in parts} | {f'{part.group} {part.name}' for part in parts}
    for word in words:
        if word not in known:
            sys.exit(f"run.sh: '{word}' is no part: --list prints them")
    if not words or 'all' in words:
        return parts
    return [part for part in parts if {part.group, part.name, f'{part.group} {part.name}'} & set(words)]


def tail(path, lines=40):
    with open(path, encoding='utf-8', errors='replace') as file:
        return '\n'.join(file.read().splitlines()[-lines:])


def conclude(done, gpus):
    """The exit status for what the wanted parts have come to, all of which a machine with more GPUs might add to, and says what
    is missing."""
    states = [part.get('status') for part in done]
    left = sum(1 for state in states if state not in DONE)
    lacking = sorted({part['says'] for part in done
                      if part.get('status') == 'skipped' and not all_parts.wants_more_gpus(part['says'], gpus)})
    if left:
        print(f'{left} parts are left: the same call goes on', flush=True)
    if 'partial' in states:
        print(f'{states.count("partial")} parts did not get to their end in the time they have, or are inconclusive', flush=True)
    for says in lacking:
        print(f'not done here: {says}', flush=True)
    return FAILED if 'failed' in states else LEFT if left or 'partial' in states or lacking else 0


def main():
    parser = argparse.ArgumentParser(prog='run.sh')
    parser.add_argument('words', nargs='*')
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--again', action='store_true')
    parser.add_argument('--no-build', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--requirements', action='store_true')
    arguments = parser.parse_args()
    folder = toolkit.root()
    if arguments.list:
        for part in all_parts.parts(BUILD, folder or ''):
            print(part.group, part.name)
        return 0
    if arguments.requirements:
        print('\n'.join(what for what, _ in must_hold.REQUIREMENTS))
        return 0
    gpus = toolkit.gpus()
    if not gpus:
        sys.exit('run.sh: this machine has no NVIDIA GPU, or no nvidia-smi that tells of one')
    if folder is None:
        sys.exit('run.sh: there is no nvcc, neither in PATH nor in /usr/local/cuda/bin')
    clock = Clock(arguments.seconds)
    if arguments.no_build:
        packages.use(packages.folder())
    else:
        lacking, fetched = make_ready(clock)
        if lacking:
            sys.exit('run.sh: ' + packages.sentence(lacking, fetched))
    environment, missing = toolkit.environment(folder)
    for what in missing:
        print(f'run.sh: {what} is neither in {folder} nor in the packages of {sys.executable}', flush=True)
    name, driver, _ = gpus[0]
    architectures = ','.join(sorted({capability.replace('.', '') + '-real' for _, _, capability in gpus}))
    results = Results(os.path.abspath(os.environ.get('TUTTI_RESULTS', os.path.join(BUILD, 'results'))),
                      {'gpu': name + (f' x {len(gpus)}' if len(gpus) > 1 else ''), 'driver': driver,
                       'cuda': toolkit.release(folder), 'missing': missing, 'sources': digest_of_sources(),
                       'date': datetime.date.today().isoformat()},
                      os.path.abspath(os.path.join(BUILD, 'logs')))
    if not arguments.no_build and not build(results, clock, environment, folder, architectures):
        print(tail(results.log_path('build')), flush=True)
        if clock.left() < 5:
            return LEFT
        # What could be built is tested all the same.
        print('run.sh: not everything was built', flush=True)
    # The plug-in lies in the build tree.
    environment['TUTTI_PLUGIN_PATH'] = os.path.abspath(os.path.join(BUILD, PLUGIN_FOLDER))
    visible = toolkit.visible(len(gpus))
    listed = all_parts.parts(BUILD, folder, visible)
    results.names = [f'{part.group} {part.name}' for part in listed]
    wanted = chosen(listed, arguments.words)
    if not wanted:
        sys.exit('run.sh: nothing could be built that could be run')
    Runner(results, clock, environment, visible).do_all(
        [part for part in wanted if arguments.again or not results.is_done(f'{part.group} {part.name}')])
    results.save()
    print(f'results: {results.path("results.md")}', flush=True)
    return conclude([results.parts.get(f'{part.group} {part.name}', {}) for part in wanted], visible)


if __name__ == '__main__':
    sys.exit(main())
