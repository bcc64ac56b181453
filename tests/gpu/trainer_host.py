#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Microseconds that a training step through the C API takes of the host's processors, all threads together: those that drive
devices, read ahead and wait. (What a replayed step alone takes of its thread stands beside each comparison.) Prints a JSON object.

usage: trainer_host.py REPLICA_BENCH BACKEND MODEL:BATCH ...
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, '..', 'bench'))

# pylint: disable=wrong-import-position
import programs  # noqa: E402


def main():
    command, row = sys.argv[1:3], {}
    for case in sys.argv[3:]:
        program = programs.Program(command)
        model, batch = case.split(':')
        answer = program.ask('measure', 'training', model, batch, 1, 'one_device', 1)
        program.close()
        if 'error' in answer:
            sys.exit(f'{case}: {answer["error"]}')
        row[f'{model} b{batch} host_us'] = round(answer['cpu_ms'] * 1e3, 1)
        row[f'{model} b{batch} wall_us'] = round(answer['wall_ms'] * 1e3, 1)
    print(json.dumps(row))


if __name__ == '__main__':
    main()
