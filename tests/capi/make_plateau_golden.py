#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_plateau_golden.py: prints plateau_golden.h, what ReduceLROnPlateau of PyTorch does to a small training, for
plateau_test.c. The file is kept in the tree, after clang-format.

Needs PyTorch; building and testing do not.
"""
import json

import torch

X = [-1.25, -0.5, 0.25, 0.75, 1.5, 2.0]
Y = [0.5, -1.0, 2.0, 1.25, -0.75, 3.0]
START = [2.0, 0.5, -0.25]
RATES = [0.7, 0.35, 0.05]
STEPS = 24
EVERY = 2

CASES = [
    ('steps', {'plateau_metric': 'loss', 'plateau_every_steps': 1, 'plateau_patience': 2, 'plateau_factor': 0.5,
               'plateau_threshold': 0.03, 'plateau_cooldown': 1}),
    ('minimum', {'plateau_metric': 'loss', 'plateau_every_steps': 1, 'plateau_patience': 0, 'plateau_factor': 0.3,
                 'plateau_threshold': 0.12, 'plateau_minimum_factor': 0.05}),
    ('default_threshold', {'plateau_metric': 'loss', 'plateau_every_steps': 3, 'plateau_patience': 1}),
    ('evaluations', {'plateau_metric': 'closeness', 'plateau_higher_is_better': True, 'plateau_patience': 1,
                     'plateau_factor': 0.4, 'plateau_threshold': 0.02, 'plateau_cooldown': 2}),
]


def run(options):
    parameters = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in START]
    optimizer = torch.optim.SGD([{'params': [p], 'lr': rate} for p, rate in zip(parameters, RATES)])
    higher = options.get('plateau_higher_is_better', False)
    threshold = options.get('plateau_threshold', 1e-4)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode='max' if higher else 'min', factor=options.get('plateau_factor', 0.1),
        patience=options.get('plateau_patience', 10), threshold=threshold, threshold_mode='rel',
        cooldown=options.get('plateau_cooldown', 0),
        min_lr=[options.get('plateau_minimum_factor', 0) * rate for rate in RATES], eps=0)
    x, y = torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)

    def loss():
        return ((parameters[0] * x + parameters[1] + parameters[2] * x * x - y) ** 2).mean()

    def check(value):
        bound = schedule.best * (1 + threshold if higher else 1 - threshold)
        assert bound in (float('inf'), -float('inf')) or abs(value / bound - 1) > 2e-5, (value, bound)  # no tie
        schedule.step(value)

    used = []
    every = options.get('plateau_every_steps', 0)
    for step in range(1, STEPS + 1):
        used.append(optimizer.param_groups[0]['lr'])
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        if every and step % every == 0:
            check(value.item())
        if not every and step % EVERY == 0:
            check(1 / (1 + loss().item()))
    return used, [p.item() for p in parameters]


def numbers(values):
    return '{' + ', '.join(repr(float(value)) for value in values) + '}'


def main():
    print('/* SPDX-License-Identifier: Apache-2.0\n * Made by make_plateau_golden.py. */')
    print('#ifndef TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_\n#define TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_\n')
    print(f'enum {{ PLATEAU_ROWS = {len(X)}, PLATEAU_STEPS = {STEPS}, PLATEAU_EVERY = {EVERY} }};\n')
    print(f'static const float plateau_x[] = {numbers(X)}, plateau_y[] = {numbers(Y)};')
    print(f'static const double plateau_start[] = {numbers(START)}, plateau_rates[] = {numbers(RATES)};\n')
    print('/* Options of schema train, the learning rate of each step, and w, b and c behind the last one. */')
    print('static const struct plateau_case {\n  const char *options;\n  int at_evaluations;')
    print('  double rates[PLATEAU_STEPS], parameters[3];\n} plateau_cases[] = {')
    for name, options in CASES:
        used, parameters = run(options)
        text = json.dumps(json.dumps(options)[1:-1])
        print(f'{{/* {name} */ {text}, {int("plateau_every_steps" not in options)}, {numbers(used)}, '
              f'{numbers(parameters)}}},')
    print('};\n\n#endif /* TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_ */')


if __name__ == '__main__':
    main()
