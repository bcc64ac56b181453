#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_extremes.py [--check] DIRECTORY: writes extremes.json, or compares with it: activations and losses, and their gradients,
of arguments where exp() overflows or vanishes, from formulas in double precision that hold there.

A case is one of make_golden.py with more: "upstream", the gradient of its only output, and "gradient", that of its first
input, with tolerances of their own. A derivative that is a difference of numbers near 1, y * (1 - y), is exact to a unit of
the last place of 1, everything else to a few of its own.
"""
import json
import math
import os
import struct
import sys

SPECIAL = {math.inf: 'Infinity', -math.inf: '-Infinity'}
# What a type holds exactly: relative error allowed, the same next to 1, the smallest that is not flushed to zero, and
# arguments at its limits.
TYPES = {
    'f32': {'relative': 4e-6, 'near_one': 2.4e-7, 'least': 1.2e-38, 'limits': [87.25, 88.5, 89.0, 103.5, 104.5, 150.0, 1e30, 3e38]},
    'f64': {'relative': 1e-13, 'near_one': 4.5e-16, 'least': 2.3e-308, 'limits': [708.0, 709.5, 710.0, 744.5, 746.0, 1e30, 1e300]},
}
PLAIN = [0.0, 0.25, 1.0, 5.5, 9.0, 13.0, 17.5, 20.0, 40.0, 88.0, 1000.0, 1e4]


def rounded(dtype, number):
    if dtype == 'f64' or math.isinf(number):
        return number
    try:
        return struct.unpack('f', struct.pack('f', number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def tensor(dtype, dims, values):
    values = [rounded(dtype, value) if dtype[0] == 'f' else value for value in values]
    return {'dtype': dtype, 'dims': dims, 'values': [SPECIAL.get(value, value) for value in values]}


# ---- functions of one number: (value, derivative) -----------------------------------------------------------------------


def exp(x):
    return math.exp(x) if x < 709.7 else math.inf


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def with_sigmoid(x):
    return sigmoid(x), sigmoid(x) * sigmoid(-x)


def with_tanh(x):
    decay = exp(-2 * abs(x))
    return math.tanh(x), 4 * decay / (1 + decay) ** 2


def softplus(x):
    return max(x, 0) + math.log1p(exp(-abs(x))), sigmoid(x)


def silu(x):
    if x == -math.inf:
        return -0.0, 0.0
    return x * sigmoid(x), sigmoid(x) + (x * sigmoid(x) * sigmoid(-x) if abs(x) < 1e3 else 0)


def gelu(x):
    below = math.erfc(-x / math.sqrt(2)) / 2
    return x * below if below > 0 else -0.0, below + (x * exp(-x * x / 2) / math.sqrt(2 * math.pi) if abs(x) < 50 else 0)


def gelu_tanh(x):
    if abs(x) > 1e3:
        return (x, 1.0) if x > 0 else (-0.0, 0.0)
    factor = math.sqrt(2 / math.pi)
    inner = factor * (x + 0.044715 * x ** 3)
    below = sigmoid(2 * inner)  # (1 + tanh(inner)) / 2
    return x * below, below + x * 2 * below * sigmoid(-2 * inner) * factor * (1 + 3 * 0.044715 * x ** 2)


def elu(x):
    return (x, 1.0) if x > 0 else (math.expm1(x), exp(x))


# Names, attributes, functions, and whether an infinite argument has a value here.
UNARY = [('sigmoid', {}, with_sigmoid, True), ('tanh', {}, with_tanh, True), ('softplus', {}, softplus, True),
         ('silu', {}, silu, False), ('gelu', {}, gelu, False), ('gelu', {'approximate': True}, gelu_tanh, False),
         ('elu', {}, elu, True)]


def attribute(value):
    return {'bool': value} if isinstance(value, bool) else {'i64': value} if isinstance(value, int) else {'f64': value}


def case(op, dtype, inputs, output, upstream, gradient, attributes, **tolerances):
    """Inputs and so on: pairs of dims and values; an input may begin with a dtype of its own."""
    kind = TYPES[dtype]
    usual = {'relative': kind['relative'], 'absolute': kind['least'],
             'gradient_relative': kind['relative'], 'gradient_absolute': kind['near_one']}
    return {'op': op, 'attributes': {name: attribute(value) for name, value in attributes.items()},
            'inputs': [tensor(*one) if len(one) == 3 else tensor(dtype, *one) for one in inputs],
            'outputs': [tensor(dtype, *output)], 'upstream': tensor(dtype, *upstream), 'gradient': tensor(dtype, *gradient),
            **usual, **tolerances}


def both_signs(values):
    return [sign * value for value in values for sign in (1, -1)]


def upstream_of(count):
    return [(0.5, -2.0, 1.0)[i % 3] for i in range(count)]


def unary_cases(dtype):
    kind = TYPES[dtype]
    for op, attributes, function, is_defined_at_infinity in UNARY:
        numbers = both_signs(PLAIN + kind['limits']) + both_signs([math.inf] if is_defined_at_infinity else [])
        x = [rounded(dtype, number) for number in numbers]
        results, dims, dy = [function(one) for one in x], [len(x)], upstream_of(len(x))
        # x times a number that is flushed to zero, or times a sum with 1, 1 + erf(...) and 1 + tanh(...).
        more = {'silu': {'absolute': 1e3 * kind['least']}, 'gelu': {'absolute': 4 * kind['near_one']}}.get(op, {})
        yield case(op, dtype, [(dims, x)], (dims, [y for y, _ in results]), (dims, dy),
                   (dims, [a * slope for a, (_, slope) in zip(dy, results)]), attributes, **more)


# ---- rows of logits -----------------------------------------------------------------------------------------------------


def log_softmax(row):
    top = max(row)
    if math.isinf(top):
        raise ValueError('such a row has no softmax')
    rest = math.log(math.fsum(exp(x - top) for x in row))
    return [x - top - rest for x in row]


def softmax(row):
    return [exp(x) for x in log_softmax(row)]


def rows_of(dtype):
    """Five logits each: far apart, close to each other far from zero, masked, at the limits."""
    large = 1e4 if dtype == 'f32' else 1e9
    high = 1e30
    rows = [
        [1e4, 0, -1e4, 0, 1], [-1e4, -1e4, -1e4, -1e4, -1e4], [1e4, 1e4, 1e4, 1e4, 1e4],
        [large, large - 0.5, large - 1, large - 2, -large], [-large, -large - 0.5, -large - 1, -large - 2, -large - 20],
        [88, 89, 87, -88, 88.5], [-88, -89, -87, -104, -88.5], [high, -high, 0, 1, high], [-high, -high, -high, -high, -high],
        [0, -87, -88, -103, -104], [0, -710, -745, -750, 5], [3e38, 3e38, 1, -1, 0], [0.5, -math.inf, 1.5, -math.inf, 2],
        [-math.inf, -math.inf, 1e4, -math.inf, -math.inf], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5],
    ]
    return [[rounded(dtype, x) for x in row] for row in rows]


def flat(rows):
    return [x for row in rows for x in row]


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def softmax_cases(dtype):
    near_one = TYPES[dtype]['near_one']
    rows = rows_of(dtype)
    upstream = [[0.5, -1.0, 2.0, 0.25, -0.75] for _ in rows]
    shares = [softmax(row) for row in rows]
    inner = [math.fsum(d * p for d, p in zip(*pair)) for pair in zip(upstream, shares)]
    dx = [[p * (d - s) for d, p in zip(ds, ps)] for ds, ps, s in zip(upstream, shares, inner)]
    logs = [log_softmax(row) for row in rows]
    dlogs = [[d - p * math.fsum(ds) for d, p in zip(ds, ps)] for ds, ps in zip(upstream, shares)]
    for axis, turn in ((-1, list), (0, transposed)):
        dims = [len(turn(rows)), len(turn(rows)[0])]
        args = [(dims, flat(turn(rows)))]
        yield case('softmax', dtype, args, (dims, flat(turn(shares))), (dims, flat(turn(upstream))), (dims, flat(turn(dx))),
                   {'axis': axis})
        yield case('log_softmax', dtype, args, (dims, flat(turn(logs))), (dims, flat(turn(upstream))),
                   (dims, flat(turn(dlogs))), {'axis': axis}, absolute=near_one, gradient_absolute=8 * near_one)


def sparse_cases(dtype):
    near_one = TYPES[dtype]['near_one']
    for smoothing in (0.0, 0.1):
        rows = [row for row in rows_of(dtype) if smoothing == 0 or not math.isinf(min(row))]
        if smoothing > 0:  # The mean of logits of 3e38 is none of f32.
            rows = [row for row in rows if max(map(abs, row)) < 1e31]
        for label_dtype in ('i32', 'i64'):
            labels = [(0, 2, 4)[i % 3] for i in range(len(rows))]
            loss, gradient, upstream = [], [], upstream_of(len(rows))
            for row, label, d in zip(rows, labels, upstream):
                target = [(1 - smoothing) * (j == label) + smoothing / 5 for j in range(5)]
                loss.append(-math.fsum(t * z for t, z in zip(target, log_softmax(row)) if t > 0))
                gradient += [d * (p - t) for p, t in zip(softmax(row), target)]
            yield case('sparse_softmax_cross_entropy', dtype,
                       [([len(rows), 5], flat(rows)), (label_dtype, [len(rows)], labels)], ([len(rows)], loss),
                       ([len(rows)], upstream), ([len(rows), 5], gradient), {'label_smoothing': smoothing},
                       absolute=near_one, gradient_absolute=8 * near_one)


def dense_cases(dtype):
    near_one = TYPES[dtype]['near_one']
    rows = [row for row in rows_of(dtype) if not math.isinf(min(row)) and max(map(abs, row)) < 1e31]
    targets = [[0.5, 0.25, 0.125, 0.0625, 0.0625] if i % 2 else [0, 0, 1, 0, 0] for i in range(len(rows))]
    for smoothing in (0.0, 0.1):
        loss, gradient, upstream = [], [], upstream_of(len(rows))
        for row, plain, d in zip(rows, targets, upstream):
            target = [(1 - smoothing) * t + smoothing / 5 for t in plain]
            loss.append(-math.fsum(t * z for t, z in zip(target, log_softmax(row))))
            gradient += [d * (p - t) for p, t in zip(softmax(row), target)]
        yield case('softmax_cross_entropy', dtype, [([len(rows), 5], flat(rows)), ([len(rows), 5], flat(targets))],
                   ([len(rows)], loss), ([len(rows)], upstream), ([len(rows), 5], gradient),
                   {'label_smoothing': smoothing}, absolute=near_one, gradient_absolute=8 * near_one)


def sigmoid_cases(dtype):
    near_one = TYPES[dtype]['near_one']
    x = [rounded(dtype, z) for z in both_signs(PLAIN + TYPES[dtype]['limits'])]
    for target in (0.0, 1.0, 0.25):
        # -t log(s(x)) - (1 - t) log(1 - s(x))
        loss = [target * softplus(-z)[0] + (1 - target) * softplus(z)[0] for z in x]
        dims, dy = [len(x)], upstream_of(len(x))
        gradient = [d * ((1 - target) * sigmoid(z) - target * sigmoid(-z)) for d, z in zip(dy, x)]
        yield case('sigmoid_cross_entropy', dtype, [(dims, x), (dims, [target] * len(x))], (dims, loss), (dims, dy),
                   (dims, gradient), {}, absolute=near_one, gradient_absolute=2 * near_one)


def text():
    cases = [one for dtype in TYPES for make in (unary_cases, softmax_cases, sparse_cases, dense_cases, sigmoid_cases)
             for one in make(dtype)]
    return '[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases) + '\n]\n'


def main(*arguments):
    path = os.path.join(arguments[-1], 'extremes.json')
    if arguments[0] != '--check':
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text())
        return 0
    with open(path, encoding='utf-8') as file:
        if file.read() == text():
            return 0
    print(f'{path} is not what make_extremes.py writes')
    return 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
