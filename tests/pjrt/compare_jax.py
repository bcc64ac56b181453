#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on a PJRT plug-in beside those of JAX on the same machine, in turns.

usage: compare_jax.py PYTHON_WITH_JAX [--rounds N] [--seconds S] [MODEL:BATCH ...]

In a folder that tests/run.sh has built; TUTTI_PJRT_PLUGIN names the plug-in. For each network: the median of the ratios
tutti / JAX of the rounds, with the middle half of them.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build', 'test', 'tests')


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.greeting = self.process.stdout.readline().strip()

    def measure(self, model, batch, seconds):
        self.process.stdin.write(f'measure training {model} {batch} 2 f32 {seconds}\n')
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if 'error' in answer:
            sys.exit(f'compare_jax.py: {model}:{batch}: {answer["error"]}')
        return answer['wall_ms']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('python')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('cases', nargs='*', default=['mlp:64', 'cnn:64', 'resnet20:128'])
    options = parser.parse_args()
    if 'TUTTI_PJRT_PLUGIN' not in os.environ:
        sys.exit('compare_jax.py: TUTTI_PJRT_PLUGIN names no plug-in')
    tutti = Server([os.path.join(BUILD, 'bench', 'step_bench'), '--backend',
                    os.path.join(BUILD, 'backend', 'pjrt', 'tutti-pjrt.so'), '--serve'])
    peer = Server([options.python, os.path.join(ROOT, 'tests', 'pjrt', 'jax_peer.py')])
    print(f'{tutti.greeting}\n{peer.greeting}')
    for case in options.cases:
        model, batch = case.split(':')
        tutti.measure(model, batch, 0.1), peer.measure(model, batch, 0.1)
        pairs = []
        for number in range(options.rounds):
            order = [tutti, peer] if number % 2 == 0 else [peer, tutti]
            times = {server: server.measure(model, batch, options.seconds) for server in order}
            pairs.append((times[tutti], times[peer]))
        ratios = sorted(own / other for own, other in pairs)
        quarter = len(ratios) // 4
        own, other = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        print(f'{case:14s} {own:8.3f} ms, JAX {other:8.3f} ms, ratio {statistics.median(ratios):.3f} '
              f'({ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f})', flush=True)


if __name__ == '__main__':
    main()
