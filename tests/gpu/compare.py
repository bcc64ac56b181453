#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps and predictions on one GPU against PyTorch on the same: blocks of both in turns (A B B A), wall clock
with the device waited for, medians of ratios with a bootstrap interval as in tests/bench/method.py. Beside that what a
step takes of the host's thread, and the device's memory against PyTorch as it is written.

usage: compare.py --programs FOLDER [--quadruples N] [--seconds S] [--json PATH] [--markdown PATH] [CASE or MODEL ...]
"""
import argparse
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path.insert(1, BENCH)

# pylint: disable=wrong-import-position
import method  # noqa: E402
import programs  # noqa: E402
import gpu_cases  # noqa: E402
from report import Report  # noqa: E402
from toolkit import gpus  # noqa: E402

# Of the interval of a ratio, to either side of it.
MOST_SPREAD = 0.02
# With fewer than these a row says so.
USUAL_QUADRUPLES = 10


class WallClock:
    """Takes one number of milliseconds from a candidate, and remembers the whole answer of each."""

    spoiled = 0

    def __init__(self):
        self.answers = {}

    def __call__(self, candidate, case, seconds):
        answer = candidate.measure(case, seconds)
        self.answers[candidate.name] = answer
        return answer['wall_ms']


def number(value):
    return None if value is None or not math.isfinite(value) else value


def compare(case, ours, torch, arguments):
    """The row of one case; with 'error' where either side cannot do it."""
    meter = WallClock()
    mine = programs.Candidate(ours, case.ours())
    if case.bucketed:
        peer, tried = programs.Candidate(torch, case.precision), {}
    else:
        peer, tried = method.fastest(meter, [programs.Candidate(torch, words) for words in case.configurations()], case,
                                     arguments.seconds)
    if mine.measure(case, 0)['wall_ms'] == math.inf:
        return {'error': 'tutti cannot do it'}
    if peer is None:
        return {'error': 'PyTorch cannot do it'}
    result = method.quadruples(meter, mine, peer, case, arguments.quadruples, arguments.seconds)
    result.update(peer=peer.name, tried=tried, issue_us=meter.answers[mine.name]['issue_us'],
                  device_mb=meter.answers[mine.name]['device_mb'])
    if case.latency and any(answer['waits'] < answer['steps'] for answer in meter.answers.values()):
        return {'error': 'not each prediction was waited for'}
    eager = meter.answers.get(programs.Candidate(torch, case.eager()).name, {})
    if 'device_mb' in eager:
        result['memory_share'] = result['device_mb'] / eager['device_mb']
    return result


def judge(case, result):
    """Adds whether the row holds what it must, and a sentence."""
    if 'error' in result:
        return {**result, 'holds': False, 'says': result['error']}
    failures = []
    if result['ratio'] < case.gate:
        failures.append(f'ratio below {case.gate:.3g}')
    if result['issue_us'] > gpu_cases.MOST_ISSUE_US:
        failures.append(f'host more than {gpu_cases.MOST_ISSUE_US} us a step')
    if result.get('memory_share', 0) > gpu_cases.MOST_MEMORY_SHARE:
        failures.append(f'memory above {gpu_cases.MOST_MEMORY_SHARE} of PyTorch as it is written')
    per_second, what = case.speed(result['ms'])
    says = (f'{per_second:.4g} {what} a second, {result["ms"]:.4g} ms, peer {result["peer_ms"]:.4g} ms ({result["peer"]}), '
            f'ratio {result["ratio"]:.2f} ({result["low"]:.2f}..{result["high"]:.2f}), gate {case.gate:.3g}, '
            f'host {result["issue_us"]:.0f} us')
    if len(result.get('ratios', ())) in range(1, USUAL_QUADRUPLES):
        says += f', of {len(result["ratios"])} quadruples'
    if 'memory_share' in result:
        says += f', memory {result["memory_share"]:.2f}'
    # Of two sides that hardly stand still nothing is proved; what misses its gate all the same has missed it.
    spread = max(result['high'] - result['ratio'], result['ratio'] - result['low']) / result['ratio']
    inconclusive = not failures and spread > MOST_SPREAD
    if inconclusive:
        failures.append(f'inconclusive: more than {MOST_SPREAD:.0%} to either side')
    return {**result, f'{what}_per_second': per_second, 'gate': case.gate, 'holds': not failures, 'inconclusive': inconclusive,
            'says': '; '.join([says, *failures])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='*', metavar='CASE')
    parser.add_argument('--programs', required=True)
    parser.add_argument('--backend', default='cuda')
    parser.add_argument('--peer', default=os.path.join(BENCH, 'torch_peer.py'), help='a script that serves PyTorch')
    parser.add_argument('--quadruples', type=int, default=USUAL_QUADRUPLES)
    parser.add_argument('--seconds', type=float, default=0.4)
    parser.add_argument('--json')
    parser.add_argument('--markdown')
    arguments = parser.parse_args()
    report = Report('gpu', arguments.json, arguments.markdown, None)
    report.say(', '.join(name for name, _, _ in gpus()) or 'unknown GPU')
    report.say()
    serve = [os.path.join(arguments.programs, 'step_bench'), '--serve', '--backend', arguments.backend]
    report.table('case', 'holds', '')
    for case in gpu_cases.CASES:
        if arguments.cases and case.model not in arguments.cases and case.name not in arguments.cases:
            continue
        ours = programs.Program(serve)
        peer = programs.Program(serve if case.bucketed else [sys.executable, arguments.peer])
        row = {'case': case.name, **judge(case, compare(case, ours, peer, arguments))}
        ours.close()
        peer.close()
        report.row({key: number(value) if isinstance(value, float) else value for key, value in row.items()}, case.name,
                   'yes' if row['holds'] else 'no', row['says'])


if __name__ == '__main__':
    main()
