#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a program makes of the scenarios with what they say.

usage: run_scenarios.py SCENARIOS PROGRAM [ARGUMENT...]     the file is the program's last argument

To write new results after a change that may change them: PROGRAM SCENARIOS > NEW, and look at every difference.
"""
import difflib
import subprocess
import sys


def main(scenarios, *command):
    with open(scenarios, encoding='utf-8') as file:
        wanted = file.read()
    run = subprocess.run([*command, scenarios], stdout=subprocess.PIPE, encoding='utf-8', check=False)
    if run.returncode != 0:
        print(f'{command[0]} ended with {run.returncode}')
    difference = list(difflib.unified_diff(wanted.splitlines(), run.stdout.splitlines(), 'wanted', 'got', lineterm='', n=8))
    print('\n'.join(difference) or 'the same')
    return 1 if difference or run.returncode != 0 else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
