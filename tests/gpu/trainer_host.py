#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Microseconds of the host's processors that a training through the C API takes for a step, at its steady pace: of the thread
that takes most, which drives the device, by its own clock (thread_cputime); and of all threads together, which read ahead and
wait, too. Where a thread waits for the device in a loop instead of sleeping, as drivers do, that counts. (What replaying a step
takes of a thread that does nothing else stands beside each comparison.) Medians of blocks, of one case after the other.

usage: trainer_host.py --program REPLICA_BENCH --backend BACKEND [--gate US] [--json PATH] MODEL:BATCH ...

The gate is the first case's, of the one thread; the others stand beside it.
"""
import argparse
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, '..', 'bench'))

# pylint: disable=wrong-import-position
import programs  # noqa: E402
from gpu_cases import MOST_ISSUE_US  # noqa: E402


def measure(arguments, model, batch):
    """Medians, in microseconds, by what they are of; {'error'} where it cannot be done."""
    program = programs.Program([arguments.program, arguments.backend])
    blocks = []
    for _ in range(arguments.blocks):
        blocks.append(program.ask('measure', 'training', model, batch, 1, 'one_device', arguments.seconds))
        if 'error' in blocks[-1]:
            return blocks[-1]
    program.close()
    if any(block['thread_ms'] < 0 for block in blocks):
        return {'error': 'nothing tells what a thread takes'}
    return {key: statistics.median(block[key + '_ms'] for block in blocks) * 1e3 for key in ('thread', 'cpu', 'wall')}


def judge(case, times, gate):
    """The row of a case; a gate of None is none."""
    name = f'a training through the C API, {case}'
    if 'error' in times:
        return {'case': name, 'holds': False, 'says': times['error']}
    holds = gate is None or times['thread'] <= gate
    says = (f'host {times["thread"]:.1f} us of the thread that takes most' + (f', gate {gate:g}' if gate is not None else '')
            + f'; {times["cpu"]:.1f} us of all; step {times["wall"]:.1f} us')
    return {'case': name, 'holds': holds, 'thread_us': times['thread'], 'process_us': times['cpu'], 'wall_us': times['wall'],
            'gate_us': gate, 'says': says}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='+', metavar='MODEL:BATCH')
    parser.add_argument('--program', required=True)
    parser.add_argument('--backend', required=True)
    parser.add_argument('--gate', type=float, default=MOST_ISSUE_US)
    parser.add_argument('--blocks', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=0.25)
    parser.add_argument('--json')
    arguments = parser.parse_args()
    rows = []
    for words in arguments.cases:
        model, batch = words.split(':')
        rows.append(judge(f'{model} b{batch}', measure(arguments, model, batch), None if rows else arguments.gate))
        print(f'{rows[-1]["case"]}: {rows[-1]["says"]}', flush=True)
    if arguments.json:
        with open(arguments.json, 'w', encoding='utf-8') as file:
            json.dump({'rows': rows}, file)
    return 0 if arguments.json or all(row['holds'] for row in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
