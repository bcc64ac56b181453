#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""profile_peer.py PROGRAM [FOLDER]: reads the profile of a training with xprof, TensorBoard's profile page.

PROGRAM is the command tutti; it trains into FOLDER, by default a new one that is removed. Without PROGRAM ("-") the run
is there already, of tutti train with `profile: {trace: FOLDER/}`. The steps that xprof finds are those of profile.json,
as long, as are waits for input and the times of the dearest layers; its trace viewer has every event. Ends with status
77, and says so, where xprof is missing.
"""
import collections
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    from xprof.convert import raw_to_tool_data
except ImportError as missing:
    print(f'profile_peer.py: {missing}: nothing is read with xprof')
    sys.exit(SKIPPED)


def tables(path, tool):
    """What a tool of the page shows: for each of its tables, rows of values by column."""
    text, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, {'session_path': os.path.dirname(path)})
    found = json.loads(text)
    return [[{column['id']: cell.get('v') for column, cell in zip(table['cols'], row['c'])}
             for row in table.get('rows', [])]
            for table in (found if isinstance(found, list) else [found])]


def close(got, expected, what, tolerance=0.03):
    print(f'{what}: xprof {got:.4g}, report {expected:.4g}')
    if abs(got - expected) > tolerance * abs(expected) + 0.002:
        sys.exit(f'profile_peer.py: {what}')


def check_steps(path, report):
    steps = next(table for table in tables(path, 'overview_page') if table and 'stepTimeMs' in table[0])
    replica = max(report['replicas'], key=lambda one: one['steps'])
    # It leaves the first and the last one out where there are enough of them.
    close(len(steps), replica['steps'] - (2 if replica['steps'] > len(steps) else 0), 'steps')
    if len(report['devices']) > 1:
        return
    close(sum(step['stepTimeMs'] for step in steps) / len(steps), replica['step_ms'], 'ms a step', 0.1)
    if ' on ' not in replica['replica']:  # on a GPU steps have no waits there
        close(sum(step['infeedTimeMs'] for step in steps) / len(steps), replica['input_ms'], 'ms of waiting for input')


def layer_of(op):
    parts = [part for part in op.split('/') if part not in ('gradient', 'update')]
    return parts[0] if parts else op


def check_ops(path, report):
    """The first parts of their names are layers. The trace has more of the first step than the report counts."""
    ops = [op for op in tables(path, 'framework_op_stats')[0] if op['occurrences'] > 0]
    steps = collections.Counter(op['occurrences'] for op in ops).most_common(1)[0][0]
    times = {op['operation']: op['total_self_time'] / 1000 / steps for op in ops}
    layers = {layer['layer']: sum(layer[f'{phase}_ms'] for phase in ('forward', 'backward', 'update'))
              for layer in report['layers']}
    for name in sorted(layers, key=layers.get, reverse=True)[:3]:
        own = sum(time for op, time in times.items() if layer_of(op) == name)
        close(own, layers[name], f'ms of {name} a step', 0.15)


def check_events(path):
    text, _ = raw_to_tool_data.xspace_to_tool_data([path], 'trace_viewer@', {'session_path': os.path.dirname(path)})
    names = [event['name'] for event in json.loads(text)['traceEvents'] if event.get('ph') == 'X']
    steps = [name for name in names if name.startswith('train ')]
    print(f'{len(names)} events in the trace viewer, {len(steps)} of them steps')
    if not steps:
        sys.exit('profile_peer.py: the trace viewer has no step')


def train(program, folder):
    rows = os.path.join(folder, 'rows.csv')
    numbers = random.Random(1)
    with open(rows, 'w', encoding='utf-8') as file:
        file.write('x,y,label\n')
        for _ in range(2048):
            x, y = numbers.random(), numbers.random()
            file.write(f'{x:.6f},{y:.6f},{int(x > y)}\n')
    config = {'data': {'train': {'source': rows, 'label': 'label', 'batch': 512}},
              'model': [{'stack': {'inputs': ['x', 'y'], 'axis': 1}},
                        {'dense': {'units': 500, 'activation': 'relu'}}, {'dense': 300}, {'dense': 2}],
              'loss': 'sparse_softmax_cross_entropy', 'optimizer': {'adam': {'learning_rate': 0.001}},
              'strategy': {'one_device': {'device': 'cpu:0'}},
              'run': {'model_dir': folder, 'max_steps': 60}, 'profile': {'steps': 20, 'trace': folder + '/'}}
    path = os.path.join(folder, 'train.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(config, file)
    subprocess.run([program, 'train', path], check=True)


def read(folder):
    path, = glob.glob(os.path.join(folder, 'plugins', 'profile', '*', '*.xplane.pb'))
    with open(os.path.join(folder, 'profile.json'), encoding='utf-8') as file:
        report = json.load(file)
    check_steps(path, report)
    check_ops(path, report)
    check_events(path)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else temporary
        if program != '-':
            train(program, folder)
        read(folder)


if __name__ == '__main__':
    main()
