#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST from each language against C: examples per second of training, in turns, and processor time of the process.

usage: language_bench.py PROGRAM [--epochs N] [--turns N] NAME=COMMAND...

PROGRAM is language_bench; each COMMAND, split at spaces, runs examples/<language>/fashion_mnist and gets the same arguments:
DATASET OUTPUT EPOCHS. A ratio is C's figure and the language's from one turn, above 1 when the language is ahead.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

DATASET = '/usr/share/datasets/fashion-mnist'


def run(command, epochs):
    """Examples per second, and seconds of the processor."""
    with tempfile.TemporaryDirectory() as output:
        before = os.times()
        done = subprocess.run([*command, DATASET, output, str(epochs)], stdout=subprocess.PIPE, text=True, check=True)
        after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout.strip().split('\n')[-1])['examples_per_second'], seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('languages', nargs='+')
    arguments = parser.parse_args()
    commands = {'C': [arguments.program, 'fashion_mnist']}
    commands.update((name, command.split()) for name, command in (one.split('=', 1) for one in arguments.languages))
    speeds, seconds = {name: [] for name in commands}, {name: [] for name in commands}
    for turn in range(arguments.turns):
        for name in commands if turn % 2 == 0 else reversed(commands):
            speed, processor = run(commands[name], arguments.epochs)
            speeds[name].append(speed)
            seconds[name].append(processor)
            time.sleep(0.2)
    print('| language | examples/s | of C | extremes | processor s | C over it |\n|---|---|---|---|---|---|')
    for name in commands:
        ratios = [own / c for own, c in zip(speeds[name], speeds['C'])]
        costs = [c / own for own, c in zip(seconds[name], seconds['C'])]
        print(f'| {name} | {statistics.median(speeds[name]):.0f} | {statistics.median(ratios):.3f} | {min(ratios):.3f}..{max(ratios):.3f} '
              f'| {statistics.median(seconds[name]):.2f} | {statistics.median(costs):.3f} |')


if __name__ == '__main__':
    main()
