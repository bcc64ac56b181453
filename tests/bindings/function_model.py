# SPDX-License-Identifier: Apache-2.0
"""The model "functions" of scenarios.txt for training_oracle.py: each function of ops written out for one row, with doubles
and without the library.
"""
import math

from loss_model import Losses, mean, sigmoid


def activations(z, shift):
    gate = [min(max(a + 3, 0), 6) / 6 for a in z]
    return {
        'clip': mean(min(max(a, -1), 1) for a in z),
        'relu6': mean(min(max(a, 0), 6) for a in z),
        'selu': mean(1.0507009873554805 * (a if a > 0 else 1.6732632423543772 * math.expm1(a)) for a in z),
        'mish': mean(a * math.tanh(math.log1p(math.exp(a))) for a in z),
        'hard_sigmoid': mean(gate),
        'hard_swish': mean(a * s for a, s in zip(z, gate)),
        'softsign': mean(a / (1 + abs(a)) for a in z),
        'log_sigmoid': mean(math.log(sigmoid(a)) for a in z),
        'prelu': mean(a if a > 0 else s * a for a, s in zip(z, shift)),
        'is_nan': mean(float(a < 0) for a in z),
        'is_inf': mean(float(a <= 0) for a in z),
    }


def angles(x, z):
    inner = [math.tanh(a) for a in z]
    return {
        'log2': mean(math.log2(1 + a) for a in x),
        'log10': mean(math.log10(1 + a) for a in x),
        'tan': mean(map(math.tan, inner)),
        'sinh': mean(map(math.sinh, z)),
        'cosh': mean(map(math.cosh, z)),
        'atan': mean(map(math.atan, z)),
        'atan2': mean(map(math.atan2, z, x)),
        'asin': mean(map(math.asin, inner)),
        'acos': mean(map(math.acos, inner)),
    }


def reductions(z, label):
    length = math.sqrt(sum(a * a for a in z))
    return {
        'logsumexp': math.log(sum(map(math.exp, z))),
        'norm': max(map(abs, z)),
        'l2_normalize': mean(a / length for a in z),
        'reduce_any': float(any(a > 0 for a in z)),
        'reduce_all': float(all(a > 0 for a in z)),
        'bincount': mean([float(label == 0), float(label == 1)]),
    }


def places(x, z):
    def sums(numbers):
        return [sum(numbers[:i + 1]) for i in range(len(numbers))]
    falling = sorted(range(3), key=lambda i: -z[i])
    return {
        'split': mean(z[0] * a for a in z[1:]),
        'unstack': z[0] * z[2],
        'stack': x[0] / 6,
        'tile': mean(sums(z + z)),
        'roll': mean(a * b for a, b in zip(z[-1:] + z[:-1], x)),
        'reverse': mean(a * b for a, b in zip(z[::-1], x)),
        'cumsum': mean([z[1] + z[2], z[2], 0]),
        'cumprod': mean([z[0], z[0] * z[1], z[0] * z[1] * z[2]]),
        'sort': mean(a * b for a, b in zip(sorted(z), x)),
        'argsort': mean(a * b for a, b in zip(falling, x)),
    }


def matrices(x, z):
    outer = [[a * b for b in x] for a in z]

    def within(lowest, highest):
        return sum(outer[i][j] for i in range(3) for j in range(3) if lowest <= j - i <= highest) / 9
    return {
        'einsum': mean(sum(a * b for a, b in zip(row, z)) for row in outer),
        'band_part': within(0, 1),
        'lower_triangle': within(-2, 1),
        'upper_triangle': within(0, 2),
        'band_mask': 0.5,
    }


def rows_of(shift, label):
    powers = [math.exp(s) for s in shift[1:]]
    return {
        'gather_nd': shift[label],
        'scatter_add': mean([shift[0] + shift[1], shift[1] + shift[2], shift[2]]),
        'scatter_max': mean([max(1.5 * shift[0], shift[1]), max(1.5 * shift[1], shift[1] + shift[2]), 1.5 * shift[2]]),
        'scatter_replace': mean(powers + shift[2:]),
    }


def windows(z, shift):
    padded = [0, *z, 0]
    return {
        'conv1d': mean(sum(a * s for a, s in zip(padded[i:], shift)) for i in range(3)),
        'max_pool1d': mean([max(z[0], z[1]), max(z[1], z[2])]),
        'avg_pool1d': mean([mean(z[:2]), z[2]]),
    }


def images(z, shift):
    spread = [sum(z[i] * shift[k] for i in range(3) for k in range(3) if 2 * i + k == o) for o in range(6)]
    return {
        'conv1d_transpose': mean(spread),
        'conv2d_transpose': sum(z) * sum(shift) / 7,
        'conv3d': sum(a * s for a, s in zip(z, shift)),
        'conv3d_transpose': mean(sum(z[i] * shift[k] for i in range(3) for k in range(3) if i + k == o) for o in (1, 2, 3)),
        'max_pool3d': mean([max(z[0], z[1]), max(z[1], z[2])]),
        'avg_pool3d': mean(z),
        'resize2d': mean([0.75 * z[0] + 0.25 * z[1], 0.25 * z[1] + 0.75 * z[2]]),
    }


class Functions(Losses):
    def metrics(self, batch):
        """Sums over the rows, as for other models."""
        sums, shift = {}, self.weights['shift']
        for row, label in batch:
            z = self.scores(row)
            for part in (activations(z, shift), angles(row, z), reductions(z, label), places(row, z), matrices(row, z),
                         rows_of(shift, label), windows(z, shift), images(z, shift)):
                for name, value in part.items():
                    sums[name] = sums.get(name, 0) + value
        return sums
