#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the host code of a training step has grown: what runs beside the vector kernels, in instructions.

usage: host_code_gate.py STEP_BENCH BASELINE OPTIMIZATION SANITIZER

Counts with callgrind, which gives the same number on a loaded machine: a run of many steps less one of few, divided by
the difference, for each function; those of the vector kernels (compiled once for each instruction set, in a namespace
N_...) and what they call in the C library are left out. The model is the smallest, where the host code weighs most.
BASELINE holds the instructions of one step; more than BOUND times as many fail. Compilers and library versions differ by
less than the bound.

Write what is printed into BASELINE when a change is meant. Skipped without valgrind, optimisation or with a sanitizer.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BOUND = 1.25
FEW, MANY = 20, 120
KERNEL = re.compile(r'\bN_[A-Z0-9_]+::|^_*(?:ieee754_)?(?:mem[a-z]+|logf?|expf?|powf?|tanhf?|fmaxf?)(?:_|@|$)')
# What is counted: what this function calls.
STEP = 'tutti::testing::StepTrainer::step()'
SKIPPED = 77


def callgrind(folder, options, program):
    """The lines that callgrind writes of a run of a program, a list of words."""
    path = os.path.join(folder, 'counts')
    command = ['valgrind', '--tool=callgrind', '--compress-strings=no', '--compress-pos=no',
               f'--callgrind-out-file={path}', *options, *program]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f'{" ".join(command)}: {ran.returncode}\n{ran.stdout}{ran.stderr}')
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.readlines()


def count(step_bench, steps, folder):
    """Instructions of each function itself."""
    return self_costs(callgrind(folder, ['--collect-atstart=no', f'--toggle-collect={STEP}'],
                                [step_bench, '--loop', str(steps), 'toy:64']))


def self_costs(lines):
    """From callgrind's file: the line behind "calls=" is the cost of what was called, every other one of the function."""
    costs, function, called = collections.Counter(), '', False
    for line in lines:
        if line.startswith('fn='):
            function = line[3:].strip()
        elif line.startswith('calls='):
            called = True
        elif line[:1].isdigit():
            if not called:
                costs[function] += int(line.split()[1])
            called = False
    return costs


def per_step(step_bench):
    with tempfile.TemporaryDirectory() as folder:
        few, many = (count(step_bench, steps, folder) for steps in (FEW, MANY))
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in many if many[name] != few[name]}


def skip_reason(optimization, sanitizer):
    if shutil.which('valgrind') is None:
        return 'there is no valgrind'
    if sanitizer != 'none':
        return f'the build has the sanitizer {sanitizer}'
    if optimization not in ('2', '3'):
        return f'the build is optimised at level {optimization}'
    return None


def main():
    step_bench, baseline, optimization, sanitizer = sys.argv[1:]
    reason = skip_reason(optimization, sanitizer)
    if reason:
        print(f'skipped: {reason}')
        return SKIPPED
    costs = per_step(step_bench)
    host = {name: cost for name, cost in costs.items() if not KERNEL.search(name)}
    total = sum(host.values())
    with open(baseline, encoding='utf-8') as file:
        expected = json.load(file)['host_instructions_of_a_toy_step']
    for name, cost in sorted(host.items(), key=lambda item: -item[1])[:15]:
        print(f'{cost:9.1f}  {name[:150]}')
    print(f'kernels {sum(costs.values()) - total:.0f} instructions a step, host code {total:.0f}, baseline {expected}, '
          f'bound {BOUND * expected:.0f}')
    if not host or len(host) == len(costs):
        print('kernels and host code were not told apart')
        return 1
    return 1 if total > BOUND * expected else 0


if __name__ == '__main__':
    sys.exit(main())
