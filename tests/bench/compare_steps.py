#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares training steps with PyTorch: interleaved blocks on one thread, CPU time, medians of ratios.

usage: compare_steps.py STEP_BENCH [--quadruples N] [--seconds S] [--json FILE] [--python PATH]... [CASE ...]

Each quadruple is ours, theirs, theirs, ours; its ratio is the sum of theirs over the sum of ours (above 1: we are ahead).
Printed are the median over the quadruples, a bootstrap 90 % interval of the median, and the peer's configuration, which is
the fastest of a listed few, chosen beforehand on the same machine. Wider than +-5 % is called inconclusive. Each
--python names an interpreter with a PyTorch of its own (the system's without any); the fastest of all of them is the peer.
Their compiled form is not among the listed: its own ratio stands in the last column, where it works.
"""
import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys

# our model, their model, batch
CASES = {'toy': ('A', 64), 'mlp': ('B', 64), 'cnn': ('C', 64), 'resnet20': ('D', 128), 'separable': ('E', 128)}
CONFIGURATIONS = {'toy': ['eager', 'eager+fused'], 'mlp': ['eager', 'eager+fused']}
IMAGE_CONFIGURATIONS = ['eager', 'eager+fused', 'channels_last', 'channels_last+fused']
COMPILED = {'toy': 'eager+compiled', 'mlp': 'eager+compiled'}
# An OpenBLAS may not know its processor; the other kernels are tried too.
CORE_TYPES = ['SkylakeX', 'Zen', 'Haswell', '']


class Peer:
    """A PyTorch process that answers with milliseconds per step."""

    def __init__(self, python, core_type):
        self.core_type = core_type
        environment = dict(os.environ, OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1')
        if core_type:
            environment['OPENBLAS_CORETYPE'] = core_type
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_peer.py')
        self.process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.version, self.blas = self.read().split()

    def name(self, configuration):
        core = f', {self.blas} as {self.core_type}' if self.core_type else f', {self.blas}'
        return f'PyTorch {self.version} {configuration}{core}'

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit('the PyTorch process ended; is it installed for this interpreter?')
        return line.strip()

    def measure(self, case, configuration, seconds):
        self.process.stdin.write(f'{case} {configuration} {seconds}\n')
        self.process.stdin.flush()
        return float(self.read())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(step_bench, case, seconds):
    model, batch = CASES[case]
    text = subprocess.run([step_bench, '--seconds', str(seconds), f'{model}:{batch}'], capture_output=True, text=True,
                          check=True).stdout
    found = re.search(r'([\d.]+) ms/step', text)
    if not found:
        sys.exit(f'{step_bench}: {text.strip()}')
    return float(found.group(1)), text.strip()


def best_peer(peers, case, seconds):
    """The fastest listed configuration, and what each took; infinity for one that does not work."""
    tried = {}
    for peer in peers:
        for configuration in CONFIGURATIONS.get(case, IMAGE_CONFIGURATIONS):
            tried[peer, configuration] = peer.measure(case, configuration, seconds)
    return min(tried, key=tried.get), tried


def interval(ratios, draws=2000):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[draws // 20], medians[-draws // 20 - 1]


def compare(step_bench, peers, case, quadruples, seconds):
    (peer, configuration), tried = best_peer(peers, case, seconds)
    ratios, mine, theirs = [], [], []
    for _ in range(quadruples):
        block = [ours(step_bench, case, seconds)[0], peer.measure(case, configuration, seconds),
                 peer.measure(case, configuration, seconds), ours(step_bench, case, seconds)[0]]
        mine += [block[0], block[3]]
        theirs += block[1:3]
        ratios.append((block[1] + block[2]) / (block[0] + block[3]))
    low, high = interval(ratios)
    middle = statistics.median(ratios)
    compiled = min(each.measure(case, COMPILED.get(case, 'channels_last+compiled'), seconds) for each in peers)
    return {'case': case, 'ratio': middle, 'low': low, 'high': high, 'conclusive': (high - low) / middle < 0.1,
            'ms': statistics.median(mine), 'peer_ms': statistics.median(theirs),
            'compiled_ratio': None if compiled == math.inf else compiled / statistics.median(mine),
            'peer': peer.name(configuration),
            'tried': {p.name(c): None if ms == math.inf else ms for (p, c), ms in tried.items()}}


def open_peers(pythons):
    peers = []
    for python in pythons:
        for core_type in CORE_TYPES:
            peers.append(Peer(python, core_type))
            if peers[-1].blas != 'openblas':
                peers[-1].core_type = ''
                break
    return peers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('step_bench')
    parser.add_argument('--quadruples', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=1.0)
    parser.add_argument('--json')
    parser.add_argument('--python', action='append', default=[])
    parser.add_argument('cases', nargs='*', choices=[[], *CASES])
    arguments = parser.parse_args()
    peers = open_peers(arguments.python or ['/usr/bin/python3'])
    results = []
    print(f'{"case":10} {"tutti ms":>10} {"PyTorch ms":>11} {"ratio":>7}  90 % interval      compiled   peer (best of the list)')
    for case in arguments.cases or CASES:
        result = compare(arguments.step_bench, peers, case, arguments.quadruples, arguments.seconds)
        results.append(result)
        verdict = '' if result['conclusive'] else '  inconclusive'
        compiled = f'{result["compiled_ratio"]:.2f}' if result['compiled_ratio'] else '-'
        print(f'{case:10} {result["ms"]:10.4f} {result["peer_ms"]:11.4f} {result["ratio"]:7.2f}  '
              f'[{result["low"]:.2f}, {result["high"]:.2f}]{verdict:>14} {compiled:>8}   {result["peer"]}', flush=True)
    for peer in peers:
        peer.close()
    if arguments.json:
        with open(arguments.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=2)


if __name__ == '__main__':
    main()
