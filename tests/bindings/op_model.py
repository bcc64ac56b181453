# SPDX-License-Identifier: Apache-2.0
"""The model "ops" of scenarios.txt for training_oracle.py: ops written out for one row, or for a batch where its rows depend
on each other, with doubles and without the library.
"""
import math

from loss_model import Descent, Losses, mean, sigmoid, softmax


def curves(z, held):
    """held: z, of which a gradient takes no notice."""
    return {
        'identity': mean(z),
        'stop_gradient': mean(a * b for a, b in zip(z, held)),
        'abs': mean(map(abs, z)),
        'sign': mean((a > 0) - (a < 0) for a in z),
        'log1p': mean(math.log(1 + math.exp(a)) for a in z),
        'expm1': mean(math.exp(a) - 1 for a in z),
        'sqrt': mean(math.exp(a / 2) for a in z),
        'sin': mean(map(math.sin, z)),
        'cos': mean(map(math.cos, z)),
        'gelu': mean(a * (1 + math.erf(a / math.sqrt(2))) / 2 for a in z),
        'silu': mean(a * sigmoid(a) for a in z),
        'softplus': mean(math.log(1 + math.exp(a)) for a in z),
        'elu': mean(a if a > 0 else 0.5 * (math.exp(a) - 1) for a in z),
        'leaky_relu': mean(a if a > 0 else a / 4 for a in z),
        'floor': mean(map(math.floor, z)),
        'ceil': mean(map(math.ceil, z)),
        'round': mean(map(round, z)),
        'erf': mean(map(math.erf, z)),
    }


def pairs(x, z):
    parts = [(a, 1 + b, math.floor(a / (1 + b))) for a, b in zip(z, x)]
    return {
        'pow': mean((1 + b) ** a for a, b in zip(z, x)),
        'maximum': mean(map(max, z, x)),
        'select': mean(a if a > 0 else b for a, b in zip(z, x)),
        'mod': mean(a - b * times for a, b, times in parts),
        'floor_divide': mean(times for _, _, times in parts),
    }


def answers(z):
    signs = [(a > 0, round(a) == math.floor(a)) for a in z]
    places = [(math.floor(a), round(a), math.ceil(a)) for a in z]
    return {
        'is_finite': mean(a > 0 for a in z),
        'logical_not': mean(not p for p, _ in signs),
        'logical_and': mean(p and q for p, q in signs),
        'logical_or': mean(p or q for p, q in signs),
        'logical_xor': mean(p != q for p, q in signs),
        'equal': mean(nearest == floor for floor, nearest, _ in places),
        'not_equal': mean(nearest != ceiling for _, nearest, ceiling in places),
        'less_equal': mean(ceiling <= nearest for _, nearest, ceiling in places),
        'greater_equal': mean(floor >= nearest for floor, nearest, _ in places),
    }


def extremes(z):
    return {
        'reduce_min': min(z),
        'reduce_prod': math.prod(z),
        'argmin': z.index(min(z)),
        'all_finite': 1,
    }


def shapes(z):
    return {
        'transpose': sum(z) / 6,
        'broadcast_to': 2 * (z[1] + 2 * z[2]) / 6,
        'gather': mean(z[:2]),
        'pad': (z[0] + 2 * z[1] + 3 * z[2] + 0.5 * (4 + 5)) / 6,
    }


def pixels(x, z, shift):
    """x is above z."""
    def apart(row):
        padded = [0, 0, *row, 0, 0]
        return [sum(s * padded[i + 2 * k] for k, s in enumerate(shift)) for i in range(3)]
    return {
        'conv2d': mean(apart(x) + apart(z)),
        'max_pool2d': mean([max(x[:2] + z[:2]), max(x[1:] + z[1:])]),
        'avg_pool2d': mean([mean(x[:2] + z[:2]), mean([x[2], z[2]])]),
    }


def normal(numbers, epsilon):
    center = mean(numbers)
    return [(a - center) / math.sqrt(mean((b - center) ** 2 for b in numbers) + epsilon) for a in numbers]


def norms(x, z, shift):
    scaled = [s * a + s / 2 for a, s in zip(normal(z, 1e-5), shift)]
    groups = [normal(group, 1e-5) for group in zip(x, z)]
    return {
        'batch_norm_inference': mean((a - s) / math.sqrt(math.exp(s / 2) + 1e-3) * s + s / 2 for a, s in zip(z, shift)),
        'layer_norm': mean(a * b for a, b in zip(scaled, x)),
        'rms_norm': mean(s * a / math.sqrt(mean(b * b for b in z) + 0.1) for a, s in zip(z, shift)),
        'group_norm': mean((s * a + s / 2) * b for group, s, pair in zip(groups, shift, zip(x, z))
                           for a, b in zip(group, pair)),
    }


def attention(x, z):
    """Of keys x and values z; query i of z sees those up to i."""
    seen = [softmax([0.5 * query * key for key in x[:i + 1]]) for i, query in enumerate(z)]
    return {'attention': mean(sum(p * value for p, value in zip(row, z)) for row in seen)}


def entropies(x, z, label):
    logs = [math.log(p) for p in softmax(z)]
    q = [sigmoid(a) for a in z]
    return {
        'log_softmax': mean(a * b for a, b in zip(logs, x)),
        'sparse_softmax_cross_entropy': -0.9 * logs[label] - 0.1 * mean(logs),
        'softmax_cross_entropy': -logs[label],
        'sigmoid_cross_entropy': mean(-math.log(p if k == label else 1 - p) for k, p in enumerate(q)),
        'in_top_k': float(sum(a > z[label] for a in z) < 2),
    }


# Ranges of zeros and what is kept with a probability of 3 / 4, and whole numbers next to what is drawn.
DRAWS = {'dropout': 4 / 3, 'dropout_attention': 4 / 3, 'random_uniform': 3, 'random_normal': 5,
         'random_truncated_normal': 4}


class Ops(Losses):
    def __init__(self, columns, seed):
        super().__init__(columns, seed)
        self.optimizer = Descent(0.1)
        self.held = None  # in training, what the variable was before the step

    def metrics(self, batch):
        """Sums over the rows, as for other models."""
        sums, shift = {}, self.weights['shift']
        for row, label in batch:
            z = self.scores(row)
            held = [a - s + h for a, s, h in zip(z, shift, self.held or shift)]
            for part in (curves(z, held), pairs(row, z), answers(z), extremes(z), shapes(z), pixels(row, z, shift),
                         norms(row, z, shift), attention(row, z), entropies(row, z, label), DRAWS):
                for name, value in part.items():
                    sums[name] = sums.get(name, 0) + value
        if self.held is not None:
            sums['batch_norm_training'] = self.batch_norm([row for row, _ in batch])
        return sums

    def losses(self, batch):
        return super().losses(batch) / 10

    def batch_norm(self, rows):
        """Times x."""
        columns = zip(zip(*rows), zip(*map(self.scores, rows)), self.weights['shift'])
        return sum((s * a + s / 2) * b for x, z, s in columns for a, b in zip(normal(z, 0.1), x)) / len(rows[0])

    def gradients(self, batch, count, *_):
        self.held = list(self.weights['shift'])
        result = super().gradients(batch, count)
        self.held = None
        return result
