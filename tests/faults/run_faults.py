#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets each system call of a small program fail, one in each run: the result is right or the error is clean.

usage: run_faults.py INJECTOR PROGRAM [--part PART ...] [--kind KIND ...] [--backend B] [--most N | --places | --all]
                     [--only N]

INJECTOR is preloaded (fault_injector.c), PROGRAM is faulted_program. Of each part and kind as many calls as --most says
are chosen, evenly, and always the same; --places takes the first one from each place in the code, with what called it;
--all takes every one, which is hours. A run is right if it prints what a run without faults prints; clean, if it ends
with an error (of memory: RESOURCE_EXHAUSTED) and leaves no object behind, or reads an older checkpoint and says so. The
C library ends the process itself where a thread first uses variables of its own in a module that was loaded late and
there is no memory for them, and the run-time library of OpenMP does where it has none: such runs are counted apart. A
signal, other results, a hang, an error without a text where there is memory are faults, and what AddressSanitizer tells
in a build with it: memory that is left behind, for instance. They are printed with the words that repeat them.
"""
import argparse
import collections
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

PARTS = ['pipeline', 'train', 'checkpoint']
KINDS = ['malloc', 'open', 'read', 'write', 'fsync', 'rename', 'mmap', 'thread', 'driver']
GOOD = ['right', 'clean', 'ended']
# Of the codes of the program.
ERROR = 3
OF_PROGRAM = range(6)
LIMIT_S = 60
# What libraries say before they end a process by themselves: the C library, that of OpenMP, and a sanitizer at the start
# of a thread.
LIBRARY_ENDED = ['cannot allocate memory for thread-local data', 'libgomp: Out of memory',
                 'AddressSanitizer: CHECK failed: sanitizer_linux_libcdep.cpp']
# The injector stands in front of the sanitizer, and asks it for memory.
SANITIZER = 'verify_asan_link_order=0:detect_leaks=1:exitcode=23'
ROWS = 'x,y\n' + ''.join(f'{i / 8},{i % 5}\n' for i in range(12))


class Runs:
    def __init__(self, arguments):
        self.arguments = arguments

    def once(self, part, kind, number, count_path=''):
        """(status or None where it hung, what it printed)"""
        with tempfile.TemporaryDirectory(prefix='tutti-faults-') as folder:
            for name in ('rows-0.csv', 'rows-1.csv'):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(ROWS)
            environment = {**os.environ, 'LD_PRELOAD': self.arguments.injector, 'TUTTI_FAULT': f'{kind}:{number}',
                           'TUTTI_FAULT_COUNT': count_path, 'TUTTI_CACHE_DIR': os.path.join(folder, 'cache'),
                           'ASAN_OPTIONS': ':'.join(filter(None, [os.environ.get('ASAN_OPTIONS'), SANITIZER]))}
            command = [self.arguments.program, part, folder] + ([self.arguments.backend] if self.arguments.backend else [])
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                                      errors='replace')
            except subprocess.TimeoutExpired:
                return None, ''
            said = done.stdout if done.returncode in OF_PROGRAM else done.stderr
            return done.returncode, said.replace(folder, 'FOLDER') or done.stderr

    def count(self, part, kind):
        """How many calls there are without a fault, the first from each place, and what is printed."""
        with tempfile.NamedTemporaryFile(mode='r', suffix='.count') as file:
            status, said = self.once(part, kind, 0, file.name)
            if status != 0:
                sys.exit(f'{part} fails without a fault: status {status}: {said}')
            counted = [int(line) for line in file]
            if not counted:
                sys.exit(f'{self.arguments.injector} was not there in {self.arguments.program}')
            return counted[0], sorted(counted[1:]), said

    def judge(self, part, kind, number, right):
        """'right', 'clean', 'ended' (by a library), or what is wrong."""
        status, said = self.once(part, kind, number)
        if status == 0:
            # What cannot be read may be replaced by something older, if that is told.
            told = kind == 'read' and said != right and 'told: falling back' in said
            return 'right' if said == right else 'clean' if told else f'other results: {said.strip()[-300:]}'
        if status == ERROR and (kind != 'malloc' or 'error RESOURCE_EXHAUSTED' in said):
            return 'clean'
        if status is not None and kind == 'malloc' and any(text in said for text in LIBRARY_ENDED):
            return 'ended'
        if status is None:
            return f'hangs for {LIMIT_S} s'
        return f'status {status}: {said.strip()[-300:]}'


def chosen(count, places, arguments):
    if arguments.only:
        return [arguments.only]
    if arguments.places:
        return places
    if arguments.all or count <= arguments.most:
        return list(range(1, count + 1))
    return sorted({1 + i * (count - 1) // (arguments.most - 1) for i in range(arguments.most)})


def summary(seen):
    ended = f'{seen["ended"]} ended by a library, ' if seen['ended'] else ''
    return f'{seen["right"]} right, {seen["clean"]} clean, {ended}{seen["wrong"]} wrong'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('injector')
    parser.add_argument('program')
    parser.add_argument('--part', action='append', choices=PARTS)
    parser.add_argument('--kind', action='append', choices=KINDS)
    parser.add_argument('--backend', default='')
    parser.add_argument('--most', type=int, default=20)
    parser.add_argument('--places', action='store_true')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--only', type=int)
    arguments = parser.parse_args()
    if not shutil.which(arguments.program):
        sys.exit(f'there is no {arguments.program}')
    runs, faults, total = Runs(arguments), 0, collections.Counter()
    for part in arguments.part or PARTS:
        for kind in arguments.kind or KINDS:
            count, places, right = runs.count(part, kind)
            numbers, seen = chosen(count, places, arguments), collections.Counter()
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                answers = pool.map(lambda number: runs.judge(part, kind, number, right), numbers)
            for number, answer in zip(numbers, answers):
                seen[answer if answer in GOOD else 'wrong'] += 1
                if answer not in GOOD:
                    print(f'--part {part} --kind {kind} --only {number}: {answer}', flush=True)
            total.update(seen)
            faults += seen['wrong']
            print(f'{part} {kind}: {len(numbers)} of {count} calls failed: {summary(seen)}', flush=True)
    if not total:
        sys.exit('nothing failed: there was no call of these kinds')
    print(f'{sum(total.values())} runs: {summary(total)}')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
