#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What run.sh calls: builds, then does the parts that were asked for and are not done yet. See run.sh."""
import argparse
import concurrent.futures
import datetime
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import carried_build
import carried_plans
import must_hold
import packages
import parts as all_parts
import source_digest
import toolkit
import worth
from results import DONE, Results

BUILD = os.environ.get('TUTTI_BUILD_DIR', 'build/gpu')
PLUGIN_FOLDER = 'lib/backend/cuda'
PROGRAMS = [PLUGIN_FOLDER + '/tutti-cuda.so', 'tests/bench/step_bench', 'tests/bench/accuracy_bench',
            'tests/bench/replica_bench', 'tests/bench/estimator_soak']
TARGETS = [*PROGRAMS, 'gpu-tests']
# What no part needs, with libraries that would have to be carried.
NOT_CARRIED = ('-Dcpu=disabled', '-Djpeg=disabled', '-Dpng=disabled')
USUAL_ARCHITECTURE = '90-real'
NO_TOOLKIT = 'run.sh: there is no nvcc, neither in PATH nor in /usr/local/cuda/bin'
# Where minutes count, a test gets so many times what it is expected to take, and so many seconds at least: figures wait for it.
PATIENCE, LEAST_PATIENCE = 3, 90
# Of --minutes, seconds to write down what there is.
KEEPING = 5
LEFT, FAILED = 3, 1
TOGETHER = 4
# How often a part that a signal ended is begun again under a debugger; where minutes count once, for so many seconds.
MOST_DEBUGGED, BRIEFLY = 4, 60


class Clock:
    """What is left of --minutes."""

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
        expected = worth.expected(part, self.results.last.get(worth.name_of(part)))
        if self.clock.left() < expected:
            return None
        limit = min(part.limit, self.clock.left())
        if self.clock.end and part.group == 'tests':
            limit = min(limit, max(PATIENCE * expected, LEAST_PATIENCE))
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
        often, longest = (1, min(part.limit, BRIEFLY)) if self.clock.end else (MOST_DEBUGGED, part.limit)
        with open(self.results.log_path(f'{part.group} {part.name} crash'), 'w', encoding='utf-8') as log:
            for words in (['sh', '-c', 'dmesg | tail -n 5'], *[self.under_debugger(command)] * often):
                log.write(shlex.join(words) + '\n')
                log.flush()
                begin = log.tell()
                try:
                    run(words, min(longest, self.clock.left()), log, environment, part.folder)
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
                return self.note(part, 'cut off', seconds, 'the time was over' if self.clock.left() < 1 else
                                 'it takes longer than was thought, and goes on behind what is short')
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
            self.results.add(worth.name_of(part), part.group, status, seconds, says.replace('|', '/'), rows,
                             all_parts.digest_of_kernels(part))
            print(f'{status:8} {seconds:6.1f} s  {part.group} {part.name}  {says}', flush=True)

    def do_all(self, parts):
        """In this order; those that may be are several at a time, between two that have the GPU for themselves."""
        is_first = True
        for is_alone, some in itertools.groupby(parts, lambda part: part.alone):
            listed = list(some)
            if not is_alone and is_first:
                # One by itself first: what it makes ready (modules, caches) the others find.
                self.do(listed.pop(0))
                is_first = False
            with concurrent.futures.ThreadPoolExecutor(1 if is_alone else TOGETHER) as pool:
                list(pool.map(self.do, listed))


def build(path, clock, environment, options):
    """Whether all was built; what has a fault does not keep the rest from being built. `path`: of the log; `options`: with
    which the folder is configured."""
    with open(path, 'w', encoding='utf-8') as log:
        if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
            setup = ['meson', 'setup', BUILD, '--buildtype=release', '-Dcuda=enabled', '-Dtests=enabled', '-Dgo=disabled',
                     '-Djava=disabled', '-Dcsharp=disabled', '-Dhttp=disabled', '-Dhip=disabled',
                     *options, *shlex.split(os.environ.get('TUTTI_SETUP_ARGS', ''))]
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


def parsed(words=None):
    parser = argparse.ArgumentParser(prog='run.sh')
    parser.add_argument('words', nargs='*')
    parser.add_argument('--minutes', type=float)
    parser.add_argument('--again', action='store_true')
    parser.add_argument('--no-build', action='store_true')
    parser.add_argument('--archive', nargs='?', const=os.path.join('build', 'gpu-build.tar.xz'))
    parser.add_argument('--architectures')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--requirements', action='store_true')
    return parser.parse_args(words)


def say(sentence):
    print(f'run.sh: {sentence}', flush=True)


def configured(option):
    """What the build folder was configured with."""
    answer = subprocess.run(['meson', 'introspect', '--buildoptions', BUILD], capture_output=True, text=True, check=False)
    listed = json.loads(answer.stdout) if answer.returncode == 0 else []
    return next((known['value'] for known in listed if known['name'] == option), [])


def options_of(folder, architectures):
    return [f'-Dgpu_toolkit={folder}', f'-Dgpu_architectures={architectures}']


def configure_anew(architectures):
    """A folder that was configured for others, where they are named; whether that went well."""
    if not architectures or not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        return True
    return subprocess.run(['meson', 'configure', BUILD, f'-Dgpu_architectures={architectures}'], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def archive(arguments, clock):
    """Builds without a GPU, and packs what another machine needs to do all parts."""
    toolkit_folder = toolkit.root()
    if toolkit_folder is None:
        sys.exit(NO_TOOLKIT)
    if arguments.no_build:
        packages.use(packages.folder())
    else:
        require(make_ready(clock))
    environment, missing = toolkit.environment(toolkit_folder)
    digest = source_digest.of_what_is_built()
    if not arguments.no_build:
        log = os.path.abspath(os.path.join(BUILD, 'logs', 'build.log'))
        os.makedirs(os.path.dirname(log), exist_ok=True)
        options = options_of(toolkit_folder, arguments.architectures or USUAL_ARCHITECTURE)
        if not configure_anew(arguments.architectures) or not build(log, clock, environment, [*options, *NOT_CARRIED]):
            print(tail(log), flush=True)
            sys.exit('run.sh: not everything was built: nothing is packed')
        if source_digest.of_what_is_built() != digest:
            sys.exit('run.sh: sources changed while they were built: nothing is packed, and the same call goes on')
    what = {'digest': digest, 'commit': source_digest.commit(), 'architectures': configured('gpu_architectures'),
            'cuda': toolkit.release(toolkit_folder), 'missing': [one for one in missing if toolkit.is_header(one)]}
    begin = time.monotonic()
    files, tests = carried_build.pack(arguments.archive, BUILD, PROGRAMS, what, environment)
    say(f'{arguments.archive}: {os.path.getsize(arguments.archive) / 1e6:.1f} MB, {files} files, {tests} tests, for '
        f'{", ".join(what["architectures"])}, packed in {time.monotonic() - begin:.0f} s')
    return 0


def require(made_ready):
    lacking, fetched = made_ready
    if lacking:
        sys.exit('run.sh: ' + packages.sentence(lacking, fetched))


def brought(arguments, gpus):
    """What a build is that was made elsewhere; None where it is to be made here."""
    if arguments.no_build:
        what = carried_build.taken(BUILD)
    else:
        what = carried_build.take(BUILD, {capability for _, _, capability in gpus}, say)
    if what:
        carried_build.use(BUILD)
    return what


def head_of(gpus, folder, carried, missing):
    """What the results are of."""
    name, driver, _ = gpus[0]
    return {'gpu': name + (f' x {len(gpus)}' if len(gpus) > 1 else ''), 'driver': driver,
            'cuda': carried['cuda'] if carried else toolkit.release(folder), 'missing': missing,
            'sources': source_digest.of_what_is_run(), 'commit': carried['commit'] if carried else source_digest.commit(),
            'date': datetime.date.today().isoformat()}


def do(arguments, runner, folder):
    """The parts that were asked for; the exit status."""
    results, environment = runner.results, runner.environment
    listed = all_parts.parts(BUILD, folder, runner.gpus, is_brief=arguments.minutes is not None)
    results.names = [worth.name_of(part) for part in listed]
    wanted = chosen(listed, arguments.words)
    if not wanted:
        sys.exit('run.sh: nothing could be built that could be run')
    with carried_plans.carried(os.path.join(BUILD, 'plans'), results.folder, environment, say):
        runner.do_all(left_of(wanted, arguments, results))
    results.save()
    print(f'results: {results.path("results.md")}', flush=True)
    return conclude([results.parts.get(worth.name_of(part), {}) for part in wanted], runner.gpus)


def left_of(wanted, arguments, results):
    """In the order in which they are done."""
    if arguments.again:
        return worth.by_worth(wanted, results) if arguments.minutes else wanted
    if arguments.minutes:
        return worth.left(wanted, results)
    return worth.not_done(wanted, results)


def main():
    arguments = parsed()
    folder = toolkit.root()
    if arguments.list:
        for part in all_parts.parts(BUILD, folder or ''):
            print(part.group, part.name)
        return 0
    if arguments.requirements:
        print('\n'.join(what for what, _ in must_hold.REQUIREMENTS))
        return 0
    clock = Clock(arguments.minutes and arguments.minutes * 60 - KEEPING)
    if arguments.archive:
        return archive(arguments, clock)
    gpus = toolkit.gpus()
    if not gpus:
        sys.exit('run.sh: this machine has no NVIDIA GPU, or no nvidia-smi that tells of one')
    carried = brought(arguments, gpus)
    if folder is None and carried is None:
        sys.exit(NO_TOOLKIT)
    folder = folder or toolkit.USUAL
    if carried or arguments.no_build:
        packages.use(packages.folder())
    else:
        require(make_ready(clock))
    environment, missing = toolkit.environment(folder)
    if carried:
        missing = carried['missing'] + [what for what in missing if not toolkit.is_header(what)]
    for what in missing:
        say(f'{what} is neither in {folder} nor in the packages of {sys.executable}')
    results = Results(os.path.abspath(os.environ.get('TUTTI_RESULTS', os.path.join(BUILD, 'results'))),
                      head_of(gpus, folder, carried, missing), os.path.abspath(os.path.join(BUILD, 'logs')))
    if not (arguments.no_build or carried) and not made(results, clock, environment, folder, gpus):
        return LEFT
    # The plug-in lies in the build tree.
    environment['TUTTI_PLUGIN_PATH'] = os.path.abspath(os.path.join(BUILD, PLUGIN_FOLDER))
    return do(arguments, Runner(results, clock, environment, toolkit.visible(len(gpus))), folder)


def made(results, clock, environment, folder, gpus):
    """Builds here; whether there is time left for parts."""
    architectures = ','.join(sorted({capability.replace('.', '') + '-real' for _, _, capability in gpus}))
    if build(results.log_path('build'), clock, environment, options_of(folder, architectures)):
        return True
    print(tail(results.log_path('build')), flush=True)
    if clock.left() < 5:
        return False
    # What could be built is tested all the same.
    say('not everything was built')
    return True


if __name__ == '__main__':
    sys.exit(main())
