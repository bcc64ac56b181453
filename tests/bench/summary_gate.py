#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when summaries for TensorBoard cost more than a hundredth of the smallest model's training.

usage: summary_gate.py SUMMARY_BENCH OPTIMIZATION SANITIZER

Counts with callgrind, which gives the same number on a loaded machine: the instructions of all threads in a run of many
steps less those in one of few, with a summary every 10 steps and without. The model is the smallest, whose step is the
shortest. Skipped without valgrind, optimisation or with a sanitizer.
"""
import os
import re
import subprocess
import sys
import tempfile

from host_code_gate import SKIPPED, skip_reason

BOUND = 0.01
FEW, MANY = 500, 2500


def count(summary_bench, steps, folder, *summaries):
    """Instructions of a training of so many steps."""
    command = ['valgrind', '--tool=callgrind', f'--callgrind-out-file={os.path.join(folder, "counts")}', summary_bench,
               '--train', f'toy:64:{steps}', *summaries]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r'Collected : (\d+)', ran.stderr)
    if ran.returncode != 0 or collected is None:
        sys.exit(f'{" ".join(command)}: {ran.returncode}\n{ran.stdout}{ran.stderr}')
    return int(collected.group(1))


def per_step(summary_bench, folder, *summaries):
    few, many = (count(summary_bench, steps, folder, *summaries) for steps in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main():
    summary_bench, optimization, sanitizer = sys.argv[1:]
    reason = skip_reason(optimization, sanitizer)
    if reason:
        print(f'skipped: {reason}')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, 'run')
        without, with_summaries = per_step(summary_bench, folder), per_step(summary_bench, folder, written)
        names = os.listdir(written)
    share = with_summaries / without - 1
    print(f'{without:.0f} instructions a step, {with_summaries:.0f} with a summary every 10 steps: {100 * share:.2f} % more, '
          f'bound {100 * BOUND:.0f} %')
    if not any('tfevents' in name for name in names):
        print(f'no summaries were written, but {names}')
        return 1
    return 1 if share > BOUND else 0


if __name__ == '__main__':
    sys.exit(main())
