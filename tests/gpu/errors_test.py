#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that measure say why they cannot: with a backend that is nowhere.

usage: errors_test.py REPLICA_BENCH ESTIMATOR_SOAK
"""
import json
import subprocess
import sys
import tempfile

NOWHERE = '/nowhere/tutti-"x".so'


def main():
    replica_bench, estimator_soak = sys.argv[1:]
    answer = subprocess.run([replica_bench, NOWHERE], input='measure training toy 8 1 one_device 0.1\n', capture_output=True,
                            text=True, check=False)
    error = json.loads(answer.stdout.splitlines()[-1])['error']
    assert '/nowhere/tutti-' in error, error
    with tempfile.TemporaryDirectory(prefix='tutti-errors-') as folder:
        answer = subprocess.run([estimator_soak, NOWHERE, '10', '1', folder], capture_output=True, text=True, check=False)
    assert answer.stdout.startswith('context: ') and '/nowhere/tutti-' in answer.stdout, answer.stdout
    assert answer.returncode == 1, answer.returncode


if __name__ == '__main__':
    main()
