# SPDX-License-Identifier: Apache-2.0
"""The optimizers of the model "optimizers" of scenarios.txt for training_models.py: each rule as its paper has it, with doubles
and without the library. A rule is a function of a variable's weights and gradient, of what it has kept from update to update
(a dictionary that is empty at first), and of the number of the update, from 1. It gives the new weights.
"""
import math


def norm(numbers):
    return math.sqrt(sum(x * x for x in numbers))


def sign(x):
    return (x > 0) - (x < 0)


def kept(state, name, size, first=0.0):
    return state.setdefault(name, [first] * size)


def mean(state, name, share, numbers):
    """A moving average of each number, which begins at 0 and keeps a share of the old one."""
    old = kept(state, name, len(numbers))
    old[:] = [share * m + (1 - share) * x for m, x in zip(old, numbers)]
    return old


def decayed(gradient, weights, decay):
    return [g + decay * w for g, w in zip(gradient, weights)]


def moments(state, gradient, beta1, beta2, t):
    """The means of the gradient and of its square, without the weight of their beginning."""
    m = mean(state, 'm', beta1, gradient)
    v = mean(state, 'v', beta2, [g * g for g in gradient])
    return [x / (1 - beta1 ** t) for x in m], [x / (1 - beta2 ** t) for x in v]


def sgd(w, g, state, _):
    g = decayed(g, w, 0.1)
    velocity = kept(state, 'velocity', len(w))
    velocity[:] = [0.9 * v + x for v, x in zip(velocity, g)]
    return [a - 0.25 * (x + 0.9 * v) for a, x, v in zip(w, g, velocity)]


def amsgrad(decay):
    def rule(w, g, state, t):
        m = mean(state, 'm', 0.8, g)
        largest = kept(state, 'largest', len(w))
        largest[:] = [max(old, v) for old, v in zip(largest, mean(state, 'v', 0.5, [x * x for x in g]))]
        steps = [x / (1 - 0.8 ** t) / (math.sqrt(v / (1 - 0.5 ** t)) + 0.01) for x, v in zip(m, largest)]
        return [a - 0.25 * (step + decay * a) for a, step in zip(w, steps)]
    return rule


def adagrad(rate, rate_decay, first, epsilon, decay):
    def rule(w, g, state, t):
        g = decayed(g, w, decay)
        sums = kept(state, 'sum', len(w), first)
        sums[:] = [s + x * x for s, x in zip(sums, g)]
        return [a - rate / (1 + rate_decay * (t - 1)) * x / (math.sqrt(s) + epsilon) for a, x, s in zip(w, g, sums)]
    return rule


def adadelta(w, g, state, _):
    g = decayed(g, w, 0.1)
    squares = mean(state, 'squares', 0.8, [x * x for x in g])
    steps = [math.sqrt(old + 0.01) / math.sqrt(s + 0.01) * x for old, s, x in zip(kept(state, 'steps', len(w)), squares, g)]
    mean(state, 'steps', 0.8, [step * step for step in steps])
    return [a - 2 * step for a, step in zip(w, steps)]


def rmsprop(w, g, state, _):
    g = decayed(g, w, 0.1)
    squares, means = mean(state, 'squares', 0.8, [x * x for x in g]), mean(state, 'means', 0.8, g)
    velocity = kept(state, 'velocity', len(w))
    velocity[:] = [0.5 * v + x / (math.sqrt(s - m * m) + 0.01) for v, x, s, m in zip(velocity, g, squares, means)]
    return [a - 0.125 * v for a, v in zip(w, velocity)]


def adamax(w, g, state, t):
    g = decayed(g, w, 0.1)
    m, u = mean(state, 'm', 0.8, g), kept(state, 'u', len(w))
    u[:] = [max(0.5 * old, abs(x) + 0.01) for old, x in zip(u, g)]
    return [a - 0.25 / (1 - 0.8 ** t) * x / y for a, x, y in zip(w, m, u)]


def nadam(w, g, state, t):
    g = decayed(g, w, 0.1)
    momentum, following = (0.8 * (1 - 0.5 * 0.96 ** (2 * k)) for k in (t, t + 1))
    product = state['product'] = state.get('product', 1) * momentum
    _, v = moments(state, g, 0.8, 0.5, t)
    steps = [(1 - momentum) * x / (1 - product) + following * m / (1 - product * following) for x, m in zip(g, state['m'])]
    return [a - 0.25 * step / (math.sqrt(y) + 0.01) for a, step, y in zip(w, steps, v)]


def lion(w, g, state, _):
    steps = [sign(0.8 * m + (1 - 0.8) * x) for m, x in zip(kept(state, 'm', len(w)), g)]
    mean(state, 'm', 0.5, g)
    return [a - 0.125 * (step + 0.1 * a) for a, step in zip(w, steps)]


def ftrl(w, g, state, _):
    sums, linear = kept(state, 'sum', len(w), 0.2), kept(state, 'linear', len(w))
    new = []
    for i, (a, x) in enumerate(zip(w, g)):
        old, sums[i] = sums[i] ** 0.25, sums[i] + x * x
        power = sums[i] ** 0.25
        linear[i] += x + 2 * 0.02 * a - (power - old) / 0.5 * a
        size = max(abs(linear[i]) - 0.05, 0)
        new.append(-sign(linear[i]) * size / ((power + 0.5) / 0.5 + 2 * 0.1))
    return new


def lamb(w, g, state, t):
    m, v = moments(state, g, 0.8, 0.5, t)
    steps = [x / (math.sqrt(y) + 0.01) + 0.1 * a for x, y, a in zip(m, v, w)]
    ratio = norm(w) / norm(steps) if norm(w) > 0 and norm(steps) > 0 else 1
    return [a - 0.25 * ratio * step for a, step in zip(w, steps)]


def lars(w, g, state, _):
    ratio = 0.1 * norm(w) / (norm(g) + 0.1 * norm(w) + 0.01) if norm(w) > 0 and norm(g) > 0 else 1
    velocity, g = kept(state, 'velocity', len(w)), [ratio * x for x in decayed(g, w, 0.1)]
    velocity[:] = [0.5 * v + x for v, x in zip(velocity, g)]
    return [a - (x + 0.5 * v) for a, x, v in zip(w, g, velocity)]


def adamw(rate, decay, beta1, beta2, epsilon):
    def rule(w, g, state, t):
        m, v = moments(state, g, beta1, beta2, t)
        return [a - rate * (x / (math.sqrt(y) + epsilon) + decay * a) for a, x, y in zip(w, m, v)]
    return rule


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def combined(*terms):
    """The sum of matrices, each times a number."""
    return [[sum(c * x for (c, _), x in zip(terms, entries)) for entries in zip(*rows)] for rows in zip(*(m for _, m in terms))]


def muon(w, g, state, _):
    """Of a matrix with three columns and more rows."""
    m = mean(state, 'm', 0.8, g)
    y = [[x / norm(m) for x in m[i:i + 3]] for i in range(0, len(m), 3)]
    for _ in range(3):
        square = product([*zip(*y)], y)
        y = combined((3.4445, y), (-4.775, product(y, square)), (2.0315, product(product(y, square), square)))
    length = 0.2 * math.sqrt(len(y))
    return [a - 0.25 * (length * x + 0.1 * a) for a, x in zip(w, (x for row in y for x in row))]


def root_mean_square(numbers):
    return norm(numbers) / math.sqrt(len(numbers))


def adafactor_step(w, g, moment, rate, least_root, least_scale, threshold):
    steps = [x / max(math.sqrt(v), least_root) for x, v in zip(g, moment)]
    length = max(least_scale, root_mean_square(w)) * rate / max(1, root_mean_square(steps) / threshold)
    return [length * step for step in steps]


def adafactor(rate, columns=None, added=0, least=0, decay=0, power=-0.8, least_scale=0.001, threshold=1, is_limited=True):
    """Of a matrix with so many columns, or of a vector. Epsilon is added to squares, or the least of roots."""
    def rule(w, g, state, t):
        share, squares = 1 - t ** power, [x * x + added for x in g]
        if columns is None:
            moment = mean(state, 'moment', share, squares)
        else:
            rows = [squares[i:i + columns] for i in range(0, len(squares), columns)]
            of_rows = mean(state, 'rows', share, [sum(row) / columns for row in rows])
            of_columns = mean(state, 'columns', share, [sum(column) / len(rows) for column in zip(*rows)])
            size = max(sum(of_rows) / len(of_rows), least)
            moment = [r * c / size for r in of_rows for c in of_columns]
        now = min(rate, 1 / math.sqrt(t)) if is_limited else rate
        steps = adafactor_step(w, g, moment, now, least, least_scale, threshold)
        return [a - rate * decay * a - step for a, step in zip(w, steps)]
    return rule


def rows_and_columns(w, g, state, _):
    """Of a matrix with three columns: a rule of one's own."""
    rows, columns = kept(state, 'rows', len(w) // 3, 0.25), kept(state, 'columns', 3, 0.5)
    squares = [x * x for x in g]
    rows[:] = [r / 2 + sum(squares[3 * i:3 * i + 3]) for i, r in enumerate(rows)]
    columns[:] = [c / 2 + sum(squares[j::3]) for j, c in enumerate(columns)]
    return [a - 2 * x * rows[i // 3] * columns[i % 3] for i, (a, x) in enumerate(zip(w, g))]


def by_group(of_kernel, of_bias):
    return {'dense/kernel': of_kernel, 'dense/bias': of_bias}


def descent(rate, decay):
    return lambda w, g, *_: [a - rate * (x + decay * a) for a, x in zip(w, g)]


def everywhere(rule):
    return by_group(rule, rule)


RULES = {
    'sgd': everywhere(sgd), 'adam': everywhere(amsgrad(0)), 'adamw': everywhere(amsgrad(0.1)),
    'adagrad': everywhere(adagrad(0.5, 0.5, 0.1, 0.01, 0.1)), 'adadelta': everywhere(adadelta), 'rmsprop': everywhere(rmsprop),
    'adamax': everywhere(adamax), 'nadam': everywhere(nadam), 'lion': everywhere(lion), 'ftrl': everywhere(ftrl),
    'lamb': everywhere(lamb), 'lars': everywhere(lars), 'groups': by_group(descent(0.5, 0.2), descent(0.125, 0)),
    'muon': by_group(muon, adamw(0.125, 0.1, 0.8, 0.5, 0.01)), 'vectors': everywhere(adamw(0.125, 0, 0.9, 0.999, 1e-8)),
    'adafactor': by_group(*(adafactor(0.75, columns, least=2 ** -23) for columns in (3, None))),
    'adafactor_fixed': by_group(*(adafactor(0.75, columns, 0.01, 0, 0.1, -0.5, 0.5, 0.5, False) for columns in (3, None))),
    'rows_and_columns': by_group(rows_and_columns, lambda w, g, *_: [a - 2 * x for a, x in zip(w, g)]),
    'frozen': by_group(adagrad(0.5, 0, 0, 1e-10, 0), lambda w, *_: w),
}


class ByName:
    """The optimizer that the run option params names."""

    def __init__(self, name):
        self.rules, self.states = RULES[name], {}

    def update(self, weights, gradients, step):
        for name, gradient in gradients.items():
            weights[name][:] = self.rules[name](weights[name], gradient, self.states.setdefault(name, {}), step + 1)
