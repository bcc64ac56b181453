#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps and predictions on one GPU against PyTorch on the same: blocks of both in turns (A B B A), wall clock
with the device waited for, medians of ratios with a bootstrap interval as in tests/bench/method.py.

usage: compare.py --programs FOLDER [--quadruples N] [--seconds S] [--json PATH] [--markdown PATH] [MODEL ...]
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path.insert(1, BENCH)

# pylint: disable=wrong-import-position
import method  # noqa: E402
import programs  # noqa: E402
from gpu_cases import CASES  # noqa: E402
from report import Report  # noqa: E402


class WallClock:
    """Takes one number of milliseconds from a candidate."""

    spoiled = 0

    def __call__(self, candidate, case, seconds):
        return candidate.measure(case, seconds)['wall_ms']


def gpu():
    answer = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'],
                            capture_output=True, text=True, check=False)
    return answer.stdout.strip().split('\n')[0] or 'unknown GPU'


def compare(case, ours, torch, arguments):
    """The row of one case, or None where either side cannot do it."""
    meter = WallClock()
    peers = [programs.Candidate(torch, words) for words in case.configurations()]
    peer, _ = method.fastest(meter, peers, case, arguments.seconds)
    mine = programs.Candidate(ours, 'bf16' if case.precision == 'bf16' else 'f32')
    first = mine.measure(case, 0)
    if peer is None or first['wall_ms'] == float('inf'):
        return None
    result = method.quadruples(meter, mine, peer, case, arguments.quadruples, arguments.seconds)
    torch.drop()
    compiled = programs.Candidate(torch, case.compiled()).measure(case, arguments.seconds)['wall_ms']
    result.update(case=case.name, peer=peer.name, compiled_ms=compiled, compiled_ratio=compiled / result['ms'],
                  cpu_ms=statistics.median(mine.measure(case, 0.2)['cpu_ms'] for _ in range(3)))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='*', metavar='MODEL')
    parser.add_argument('--programs', required=True)
    parser.add_argument('--quadruples', type=int, default=10)
    parser.add_argument('--seconds', type=float, default=0.5)
    parser.add_argument('--json')
    parser.add_argument('--markdown')
    arguments = parser.parse_args()
    report = Report('gpu', arguments.json, arguments.markdown, None)
    report.say(gpu())
    report.say()
    ours = programs.Program([os.path.join(arguments.programs, 'step_bench'), '--serve', '--backend', 'cuda'])
    torch = programs.Program([sys.executable, os.path.join(BENCH, 'torch_peer.py')])
    report.table('case', 'ms', 'peer ms', 'ratio', '90 % interval', 'gate', 'compiled', 'host CPU ms', 'peer')
    for case in CASES:
        if arguments.cases and case.model not in arguments.cases:
            continue
        result = compare(case, ours, torch, arguments)
        ours.drop()
        torch.drop()
        if result is None:
            report.row({'case': case.name, 'error': 'not run'}, case.name, *['-'] * 8)
            continue
        report.row(result, case.name, f'{result["ms"]:.4g}', f'{result["peer_ms"]:.4g}', f'{result["ratio"]:.2f}',
                   f'{result["low"]:.2f}..{result["high"]:.2f}', f'{case.gate:g}', f'{result["compiled_ratio"]:.2f}',
                   f'{result["cpu_ms"]:.4g}', result['peer'])
    ours.close()
    torch.close()


if __name__ == '__main__':
    main()
