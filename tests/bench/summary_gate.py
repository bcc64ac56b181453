#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when summaries for TensorBoard cost more than a hundredth of the smallest model's training.

usage: summary_gate.py SUMMARY_BENCH OPTIMIZATION SANITIZER

Counts with callgrind: the instructions of what takes and writes a summary every 10 steps, in a run of many steps less
those in one of few, beside all of a step without. What is done about once a second is left out: it is rare beside steps
that nothing slows down. The model is the smallest, whose step is the shortest. Skipped without valgrind, optimisation or
with a sanitizer.
"""
import os
import sys
import tempfile

from host_code_gate import SKIPPED, callgrind, skip_reason

BOUND = 0.01
FEW, MANY = 500, 2500
SUMMARIES = ('TrainSession::write_summaries(long, long)', 'Replica::sample(tutti::impl::distribute::Run&)')
ONCE_A_SECOND = ('RunSummaries::add_memory()', 'RunSummaries::flush_if_due()', 'TrainSession::write_device_use()')


def count(summary_bench, steps, folder, *summaries):
    """Instructions of a training of so many steps: all, and those of summaries."""
    return counted(callgrind(folder, [], [summary_bench, '--train', f'toy:64:{steps}', *summaries]))


def counted(lines):
    """From callgrind's file: the line behind "calls=" is what a called function, "cfn=", cost with all that it called."""
    total, of_summaries, is_call, called = 0, 0, False, ''
    for line in lines:
        if line.startswith('cfn='):
            called = line[4:].strip()
        elif line.startswith('calls='):
            is_call = True
        elif line[:1].isdigit():
            cost = int(line.split()[1])
            if not is_call:
                total += cost
            elif called.endswith(SUMMARIES):
                of_summaries += cost
            elif called.endswith(ONCE_A_SECOND):
                of_summaries -= cost
            is_call = False
    return total, of_summaries


def per_step(summary_bench, folder, *summaries):
    few, many = (count(summary_bench, steps, folder, *summaries) for steps in (FEW, MANY))
    return [(high - low) / (MANY - FEW) for low, high in zip(few, many)]


def main():
    summary_bench, optimization, sanitizer = sys.argv[1:]
    reason = skip_reason(optimization, sanitizer)
    if reason:
        print(f'skipped: {reason}')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, 'run')
        step, _ = per_step(summary_bench, folder)
        _, of_summaries = per_step(summary_bench, folder, written)
        names = os.listdir(written)
    share = of_summaries / step
    print(f'{step:.0f} instructions a step, and {of_summaries:.0f} for a summary every 10 steps: {100 * share:.2f} %, '
          f'bound {100 * BOUND:.0f} %')
    if of_summaries <= 0:
        print('what writes summaries was not found')
        return 1
    if not any('tfevents' in name for name in names):
        print(f'no summaries were written, but {names}')
        return 1
    return 1 if share > BOUND else 0


if __name__ == '__main__':
    sys.exit(main())
