#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and prediction through the C API on all GPUs against one of them, with as many rows for each: rows a second on all of
them over those on one times their number. Two processes in turns (A B B A), medians as in tests/bench/method.py.

usage: scaling.py --program REPLICA_BENCH --backend PLUGIN --devices N [--json PATH] FORM:MODEL:BATCH ...
BATCH: rows for each device.
"""
import argparse
import dataclasses
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path.insert(1, BENCH)

# pylint: disable=wrong-import-position
import method  # noqa: E402
import programs  # noqa: E402

# Of as many times the rows as there are devices.
LEAST_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Case:
    form: str
    model: str
    batch: int


class WallClock:
    """Takes one number of milliseconds from a candidate."""

    spoiled = 0

    def __call__(self, candidate, case, seconds):
        return candidate.measure(case, seconds)['wall_ms']


class On:
    """A candidate with the rows that so many devices take."""

    def __init__(self, candidate, devices):
        self.candidate, self.devices, self.name = candidate, devices, candidate.name

    def measure(self, case, seconds):
        return self.candidate.measure(dataclasses.replace(case, batch=case.batch * self.devices), seconds)


def scale(arguments, case):
    """The row of a case: a step on all devices has as many times the rows, and should take as long."""
    command = [arguments.program, arguments.backend]
    words = '+bf16' if arguments.bf16 else ''
    everything, one = programs.Program(command), programs.Program(command)
    name = f'{case.form} {case.model} {case.batch} rows for each of {arguments.devices}'
    try:
        on_all = On(programs.Candidate(everything, 'two_devices' + words, (), arguments.devices), arguments.devices)
        alone = On(programs.Candidate(one, 'one_device' + words, (), 1), 1)
        if math.inf in (on_all.measure(case, 0)['wall_ms'], alone.measure(case, 0)['wall_ms']):
            return {'case': name, 'holds': False, 'says': 'cannot be done'}
        result = method.quadruples(WallClock(), on_all, alone, case, arguments.quadruples, arguments.seconds)
    finally:
        everything.close()
        one.close()
    rows = case.batch * arguments.devices / result['ms'] * 1e3
    return {'case': name, **result, 'rows_per_second': rows, 'holds': result['ratio'] >= arguments.gate,
            'says': f'{rows:.0f} rows a second on {arguments.devices} devices, {result["ratio"]:.3f} '
                    f'({result["low"]:.3f}..{result["high"]:.3f}) of {arguments.devices} times one, gate {arguments.gate:g}'}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='+', metavar='FORM:MODEL:BATCH')
    parser.add_argument('--program', required=True)
    parser.add_argument('--backend', required=True)
    parser.add_argument('--devices', type=int, required=True)
    parser.add_argument('--bf16', action='store_true')
    parser.add_argument('--gate', type=float, default=LEAST_SHARE)
    parser.add_argument('--quadruples', type=int, default=10)
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
