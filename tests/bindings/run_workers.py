#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios of several workers, each worker a process, and compares what each prints with what they say.

usage: run_workers.py [--also-alone] SCENARIOS -- PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

A PROGRAM without arguments is one that takes a file of scenarios and prints them with their results; one with arguments
makes such a program, in the folder that it gets as its last argument, and prints its path. Worker w of scenario s is
program (s + w) modulo their number: with those of several languages each scenario is one of a pair of languages.

--also-alone: then one process, which has the devices of all workers. It must give what all of them give, at determinism
invariant to the last bit.

To write new results after a change that may change them: run it, and look at every difference.
"""
import difflib
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
LIMIT_SECONDS = 60
RESULT = re.compile(r'=(\d*) ')


def free_ports(count):
    """Ports of the loopback that nobody listens at just now, and that the system gives to nobody before a worker does."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as given:
        first = int(given.read().split()[0])
    sockets = []
    while len(sockets) < count:
        sockets.append(socket.socket())
        try:
            sockets[-1].bind(('127.0.0.1', random.randrange(10000, first) if first > 10000 else 0))
        except OSError:
            sockets.pop().close()
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def scenarios_of(path):
    """Lists of lines, each from "scenario" on."""
    with open(path, encoding='utf-8') as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith('#')]
    starts = [i for i, line in enumerate(lines) if line.startswith('scenario ')] + [len(lines)]
    return [lines[begin:end] for begin, end in zip(starts, starts[1:])]


def words_after(command, lines):
    return next((line.split()[1:] for line in lines if line.split()[0] == command), None)


def lost_worker(lines):
    """The worker that does not come to the end, or None."""
    fault = words_after('fault', lines)
    return int(fault[0]) if fault and fault[2] in ('kill', 'hang') else None


def expected_of(lines, worker):
    """What a worker prints; None: one process for all of them."""
    expected = []
    for line in lines:
        result = RESULT.match(line)
        if not result:
            expected.append(line)
        elif worker is None or result.group(1) in ('', str(worker)):
            expected.append('= ' + line[result.end():])
        if worker is not None and worker == lost_worker(lines) and line.startswith('train '):
            break
    return expected


class Worker:
    def __init__(self, program, file, folder, number, environment):
        self.number, self.path = number, os.path.join(folder, f'output{number}')
        with open(self.path, 'wb') as output:
            self.process = subprocess.Popen([program, file], stdout=output, env=environment)

    def ends(self):
        return self.process.poll() is not None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lines(self, ports):
        with open(self.path, encoding='utf-8', errors='replace') as file:
            text = file.read()
        for number, port in enumerate(ports):
            text = text.replace(f':{port}', f':PORT{number}')
        return [line for line in text.splitlines() if line]


def environment_of(worker, ports):
    cluster = {'cluster': {'worker': [f'127.0.0.1:{port}' for port in ports]}, 'task': {'type': 'worker', 'index': worker}}
    return {**os.environ, 'TF_CONFIG': json.dumps(cluster)}


def start(lines, programs, folder, ports):
    file = os.path.join(folder, 'scenario')
    with open(file, 'w', encoding='utf-8') as text:
        text.write(''.join(line + '\n' for line in lines if not RESULT.match(line)))
    if not ports:
        environment = {key: value for key, value in os.environ.items() if key != 'TF_CONFIG'}
        return [Worker(programs[0], file, folder, None, environment)]
    return [Worker(programs[w % len(programs)], file, folder, w, environment_of(w, ports)) for w in range(len(ports))]


def wait(workers, lost):
    """Complaints. A worker that is lost has until the others end."""
    end = time.monotonic() + LIMIT_SECONDS
    complaints = []
    for worker in (one for one in workers if lost is None or one.number != lost):
        while not worker.ends() and time.monotonic() < end:
            time.sleep(0.01)
        if not worker.ends():
            complaints.append(f'worker {worker.number} did not end within {LIMIT_SECONDS} s')
        elif worker.process.returncode != 0:
            complaints.append(f'worker {worker.number} ended with {worker.process.returncode}')
    if lost is not None and workers[lost].process.poll() == 0:
        complaints.append(f'worker {lost} came to the end')
    return complaints


def compare(expected, got, stars, title):
    """The difference. "..." stands for anything, a word "*" for one that is the same in all that are compared."""
    filled, number = [], itertools.count()
    for line, other in itertools.zip_longest(expected, got[:len(expected)], fillvalue=''):
        words, others = line.split(), other.split()
        if '...' in line and re.fullmatch('.*'.join(map(re.escape, line.split('...'))), other):
            line = other
        elif '*' in words and len(words) == len(others):
            line = ' '.join(stars.setdefault(next(number), other) if word == '*' else word for word, other in zip(words, others))
        filled.append(line)
    return list(difflib.unified_diff(filled, got, title + ': wanted', 'got', lineterm='', n=8))


def run(lines, programs, stars, alone=False):
    count = int(words_after('workers', lines)[0])
    ports = [] if alone else free_ports(count)
    lost = lost_worker(lines)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        workers = start(lines, programs, folder, ports)
        try:
            differences = wait(workers, lost)
        finally:
            for worker in workers:
                worker.kill()
        for worker in workers:
            expected = expected_of(lines, worker.number)
            title = 'one process' if alone else f'worker {worker.number}'
            differences += compare(expected, worker.lines(ports), stars, title)
        print(f'{lines[0]}: {time.monotonic() - begin:.1f} s', 'different' if differences else 'the same', flush=True)
    return differences


def made(command, folder):
    """The program that a command makes, or None with the reason printed."""
    if len(command) == 1:
        return command[0]
    done = subprocess.run([*command, folder], stdout=subprocess.PIPE, text=True, check=False)
    words = done.stdout.strip().splitlines() or ['']
    if done.returncode == SKIPPED:
        print(words[-1])
        return None
    done.check_returncode()
    return words[-1]


def main(*arguments):
    also_alone = arguments[0] == '--also-alone'
    path, *rest = arguments[also_alone:]
    commands = [[]]
    for word in rest[1:]:
        if word == '--':
            commands.append([])
        else:
            commands[-1].append(word)
    with tempfile.TemporaryDirectory() as folder:
        programs = [program for program in (made(command, folder) for command in commands) if program]
        if not programs:
            return SKIPPED
        differences = []
        for number, lines in enumerate(scenarios_of(path)):
            turn, stars = number % len(programs), {}
            differences += run(lines, programs[turn:] + programs[:turn], stars)
            if also_alone:
                is_exact = 'run determinism invariant' in lines
                differences += run(lines, programs, stars if is_exact else {}, alone=True)
    print('\n'.join(differences))
    return 1 if differences else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
