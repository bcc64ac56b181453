#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training through the estimator (tests/bench/estimator_soak.c), with the host's and the device's memory as flat at its end as
behind its first tenth. Prints a JSON object.

usage: soak.py PROGRAM BACKEND STEPS DEVICES [IMAGES BATCH [QUERY...]]      QUERY: prints MiB in use of each device
"""
import json
import subprocess
import sys
import tempfile

# What allocators and drivers take and give back in passing.
MOST_HOST_BYTES, MOST_DEVICE_BYTES = 64 << 20, 16 << 20
QUERY = ['nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits']


def device_bytes(query):
    """In use on all GPUs together; None where nothing tells."""
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=False)
        return sum(int(line) for line in answer.stdout.split()) << 20 if answer.returncode == 0 else None
    except (OSError, ValueError):
        return None


def soak(command, query):
    """(exit status, lines of the program that are objects, the device's memory at each but the last)."""
    lines, used = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for text in process.stdout:
            if not text.startswith('{'):
                print(text, end='', flush=True)
                continue
            lines.append(json.loads(text))
            if 'step' in lines[-1]:
                used.append(device_bytes(query))
    return process.returncode, lines, used


def judge(status, lines, used):
    """(whether it holds, the object)."""
    steps = [line for line in lines if 'step' in line]
    ends = [line for line in lines if 'done' in line]
    if status != 0 or len(steps) < 3 or not ends:
        return False, {'error': f'exit status {status} behind {len(steps)} reports', **(ends[-1] if ends else {})}
    host = max(line['resident_bytes'] for line in steps[1:]) - steps[0]['resident_bytes']
    device = None if None in used else max(used[1:]) - used[0]
    row = {'steps': ends[-1]['done'], 'loss': ends[-1]['loss'], 'checkpoints': ends[-1]['checkpoints'], 'host_growth_bytes': host,
           'device_growth_bytes': device}
    if device is None:
        return False, {'error': 'nothing tells how much memory of the device is in use', **row}
    return host <= MOST_HOST_BYTES and device <= MOST_DEVICE_BYTES, row


def main():
    program, backend, steps, devices, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='tutti-soak-') as folder:
        status, lines, used = soak([program, backend, steps, devices, folder, *more[:2]], more[2:] or QUERY)
    if status == 77:
        return 77
    holds, row = judge(status, lines, used)
    print(json.dumps(row), flush=True)
    return 0 if holds else 1


if __name__ == '__main__':
    sys.exit(main())
