#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and prediction through the C API on all devices against one of them, with as many rows for each: rows a second on
all of them over those on one times their number. In turns (A B B A), medians as in tests/bench/method.py; and what share of a
training's steps went into communication. All devices belong to one process, or with --engine each to a process of its own,
which trains with the others as a worker.

usage: scaling.py --program REPLICA_BENCH --backend PLUGIN --devices N [--engine TUTTI_GLOO] [--json PATH] FORM:MODEL:BATCH ...
BATCH: rows for each device.
"""
import argparse
import dataclasses
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path.insert(1, BENCH)

# pylint: disable=wrong-import-position
import method  # noqa: E402
import programs  # noqa: E402

# Of as many times the rows as there are devices.
LEAST_SHARE = 0.9
# Of workers, before it is known how long a step takes; and how long they have to end.
FIRST_STEPS, LAST_SECONDS = 4, 30
# With fewer than these a row says so.
USUAL_QUADRUPLES = 10
# Processors have no numbers to be told apart by.
OF_PROCESSORS = ('cpu', 'reference')


@dataclasses.dataclass(frozen=True)
class Case:
    form: str
    model: str
    batch: int


class CannotBeDone(Exception):
    """With the sentence that says why."""


class WallClock:
    """Takes one number of milliseconds from a candidate."""

    spoiled = 0

    def __call__(self, candidate, case, seconds):
        return candidate.measure(case, seconds)['wall_ms']


def connected(arguments, devices):
    """The environment in which GPUs add up gradients from one to the other, or it is an error."""
    return {'TUTTI_GROUP': 'device'} if devices > 1 and arguments.backend not in OF_PROCESSORS else {}


class OneProcess:
    """A candidate: so many devices of one process, with the rows that all of them take."""

    def __init__(self, arguments, devices):
        self.program = programs.Program([arguments.program, arguments.backend], **connected(arguments, devices))
        self.devices = devices
        self.words = ('two_devices' if devices > 1 else 'one_device') + ('+bf16' if arguments.bf16 else '')

    def measure(self, case, seconds):
        answer = self.program.ask('measure', case.form, case.model, case.batch * self.devices, self.devices, self.words, seconds)
        if 'error' in answer:
            raise CannotBeDone(answer['error'])
        return answer

    def report(self):
        return self.program.ask('report')

    def close(self):
        self.program.close()


def free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


class Workers:
    """A candidate: a process for each device, all of them workers of one training. What one is asked all are, at the same time,
    for the same number of steps."""

    def __init__(self, arguments, devices):
        self.devices, self.words = devices, 'worker' + ('+bf16' if arguments.bf16 else '')
        self.step_ms = None
        where = {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port()), 'WORLD_SIZE': str(devices), 'TF_CONFIG': '',
                 'TUTTI_PLUGIN_PATH': os.path.dirname(os.path.abspath(arguments.engine)), **connected(arguments, devices)}
        self.workers = []
        for rank in range(devices):
            own = {'RANK': str(rank), **({} if arguments.backend in OF_PROCESSORS else {'LOCAL_RANK': str(rank)})}
            self.workers.append(programs.Program([arguments.program, arguments.backend], **where, **own))

    def ask(self, *words):
        """The answers of all."""
        for worker in self.workers:
            worker.process.stdin.write(' '.join(str(word) for word in words) + '\n')
            worker.process.stdin.flush()
        answers = [worker.answer(words) for worker in self.workers]
        errors = [answer['error'] for answer in answers if 'error' in answer]
        if errors:
            raise CannotBeDone(errors[0])
        return answers

    def measure(self, case, seconds):
        count = max(FIRST_STEPS, int(seconds * 1e3 / self.step_ms)) if self.step_ms else FIRST_STEPS
        answers = self.ask('steps', case.form, case.model, case.batch * self.devices, 1, self.words, count)
        self.step_ms = max(answer['wall_ms'] for answer in answers)
        return {'wall_ms': self.step_ms}

    def report(self):
        """Of the one that waits most."""
        return max(self.ask('report'), key=lambda answer: answer['communication'])

    def close(self):
        for worker in self.workers:
            worker.process.stdin.close()
        for worker in self.workers:
            try:
                worker.process.wait(LAST_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


def scale(arguments, case):
    """The row of a case: a step on all devices has as many times the rows, and should take as long."""
    each = ', a process each' if arguments.engine else ''
    name = f'{case.form} {case.model} {case.batch} rows for each of {arguments.devices}{each}'
    on_all = (Workers if arguments.engine else OneProcess)(arguments, arguments.devices)
    alone = OneProcess(arguments, 1)
    try:
        result = method.quadruples(WallClock(), on_all, alone, case, arguments.quadruples, arguments.seconds)
        report = on_all.report() if case.form == 'training' else {}
    except CannotBeDone as error:
        return {'case': name, 'holds': False, 'says': f'cannot be done: {error}'}
    finally:
        on_all.close()
        alone.close()
    rows = case.batch * arguments.devices / result['ms'] * 1e3
    says = (f'{rows:.0f} rows a second on {arguments.devices} devices, {result["ratio"]:.3f} '
            f'({result["low"]:.3f}..{result["high"]:.3f}) of {arguments.devices} times one, gate {arguments.gate:g}')
    if 'communication' in report:
        result['communication'] = report['communication']
        says += f', communication {report["communication"]:.1%}'
    if arguments.quadruples < USUAL_QUADRUPLES:
        says += f', of {arguments.quadruples} quadruples'
    return {'case': name, **result, 'rows_per_second': rows, 'holds': result['ratio'] >= arguments.gate, 'says': says}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='+', metavar='FORM:MODEL:BATCH')
    parser.add_argument('--program', required=True)
    parser.add_argument('--backend', required=True)
    parser.add_argument('--devices', type=int, required=True)
    parser.add_argument('--engine', help='what carries messages between processes; --backend is a path then, or of processors')
    parser.add_argument('--bf16', action='store_true')
    parser.add_argument('--gate', type=float, default=LEAST_SHARE)
    parser.add_argument('--quadruples', type=int, default=USUAL_QUADRUPLES)
    parser.add_argument('--seconds', type=float, default=0.5)
    parser.add_argument('--json')
    arguments = parser.parse_args()
    rows = []
    for words in arguments.cases:
        form, model, batch = words.split(':')
        rows.append(scale(arguments, Case(form, model, int(batch))))
        print(f'{rows[-1]["case"]}: {rows[-1]["says"]}', flush=True)
    if arguments.json:
        with open(arguments.json, 'w', encoding='utf-8') as file:
            json.dump({'rows': rows}, file)
    return 0 if arguments.json or all(row['holds'] for row in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
