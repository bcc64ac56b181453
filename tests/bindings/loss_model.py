# SPDX-License-Identifier: Apache-2.0
"""The model "losses" of scenarios.txt for training_oracle.py: each loss written out for one row, with doubles and without the
library. Its gradients are differences: of doubles, and so exact to far more digits than are compared.
"""
import math

BY_CLASS = (1.0, 2.0, 3.0)


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softmax(logits):
    powers = [math.exp(z) for z in logits]
    return [power / sum(powers) for power in powers]


def distance(a, b):
    return math.dist(a, b)


def number_losses(z, hot):
    errors = [a - b for a, b in zip(z, hot)]
    return {
        'mean_absolute_error': mean(map(abs, errors)),
        'mean_squared_error': mean(d * d for d in errors),
        'huber': mean(d * d / 2 if abs(d) <= 0.5 else 0.5 * (abs(d) - 0.25) for d in errors),
        'log_cosh': mean(math.log(math.cosh(d)) for d in errors),
        'quantile': mean(max(0.25 * -d, -0.75 * -d) for d in errors),
        'poisson': mean(math.exp(a) - b * a for a, b in zip(z, hot)),
    }


def binary_losses(z, hot):
    q = [sigmoid(a) for a in z]
    smooth = [0.9 * b + 0.05 for b in hot]
    miss = [1 - p if b else p for p, b in zip(q, hot)]
    side = [a if b else -a for a, b in zip(z, hot)]
    return {
        'binary_cross_entropy': mean(-b * math.log(p) - (1 - b) * math.log(1 - p) for p, b in zip(q, smooth)),
        'sigmoid_cross_entropy': mean(-w * b * math.log(p) - (1 - b) * math.log(1 - p)
                                      for p, b, w in zip(q, hot, (2, 1, 0.5))),
        'sigmoid_focal': mean((0.25 if b else 0.75) * m ** 2 * -math.log(1 - m) for m, b in zip(miss, hot)),
        'hinge': mean(max(0.5 - s, 0) for s in side),
        'squared_hinge': mean((2 if b else 0.5) * max(1 - s, 0) ** 2 for s, b in zip(side, hot)),
        'dice': 1 - (2 * sum(p * b for p, b in zip(q, hot)) + 1) / (sum(q) + sum(hot) + 1 + 1e-7),
    }


def class_losses(z, label):
    """Without softmax_cross_entropy, which is a mean by weights of classes."""
    p = softmax(z)
    loss = -math.log(p[label])
    others = [a for k, a in enumerate(z) if k != label]
    return {
        'categorical_cross_entropy': BY_CLASS[label] * loss,
        'sparse_categorical_cross_entropy': loss,
        'sparse_softmax_cross_entropy': 0.9 * loss + 0.1 * mean(-math.log(one) for one in p),
        'softmax_focal': (1 - p[label]) ** 0.5 * loss,
        'sparse_softmax_focal': (1 - p[label]) ** 2 * loss,
        'categorical_hinge': max(1 + max(*others, 0) - z[label], 0),
        'multi_margin': sum(max(1 - z[label] + a, 0) ** 2 for a in others) / len(z),
    }


def vector_losses(x, z, label, hot):
    r = softmax(x)
    p = softmax(z)
    apart = distance(z, x)
    return {
        'kullback_leibler': sum(t * math.log(t / s) for t, s in zip(r, p)),
        'cosine_similarity': -sum(a * b for a, b in zip(z, hot)) / math.hypot(*z),
        'contrastive': apart ** 2 if label > 0 else max(3 - apart, 0) ** 2,
        'triplet': max(apart - min(distance(z, r), distance(x, r)) + 0.2, 0),
        'ctc': temporal_loss(p, r) if label > 0 else 0,
    }


def temporal_loss(first, second):
    """Of two frames whose label is 1, the blank being 2."""
    return -math.log(first[1] * (second[1] + second[2]) + first[2] * second[1])


class Losses:
    DIFFERENCE = 1e-5

    def __init__(self, columns, _):
        self.shapes = {'shift': (columns,)}
        self.weights = {'shift': [1.0] * columns}
        self.optimizer = Descent(0.01)

    def scores(self, row):
        return [4 * a - 3 + s for a, s in zip(row, self.weights['shift'])]

    def metrics(self, batch):
        """Sums over the rows, as for other models."""
        sums, weighted, weights = {}, 0.0, 0.0
        for row, label in batch:
            z, hot = self.scores(row), [float(k == label) for k in range(len(row))]
            for part in (number_losses(z, hot), binary_losses(z, hot), class_losses(z, label), vector_losses(row, z, label, hot)):
                for name, loss in part.items():
                    sums[name] = sums.get(name, 0) + loss
            weighted += BY_CLASS[label] * -math.log(softmax(z)[label])
            weights += BY_CLASS[label]
        sums['softmax_cross_entropy'] = len(batch) * weighted / weights
        sums['l2_penalty'] = len(batch) * 0.1 * sum(s * s for s in self.weights['shift'])
        return sums

    def losses(self, batch):
        return sum(self.metrics(batch).values())

    def gradients(self, batch, count, *_):
        return self.losses(batch), {name: self.gradient(numbers, batch, count) for name, numbers in self.weights.items()}

    def gradient(self, numbers, batch, count):
        """Of one variable."""
        gradient = []
        for j, value in enumerate(numbers):
            ends = []
            for side in (self.DIFFERENCE, -self.DIFFERENCE):
                numbers[j] = value + side
                ends.append(self.losses(batch))
            numbers[j] = value
            gradient.append((ends[0] - ends[1]) / (2 * self.DIFFERENCE) / count)
        return gradient

    def outputs(self, row):
        return {'z': self.scores(row)}


class Descent:
    """Plain gradient descent."""

    def __init__(self, rate):
        self.rate = rate

    def update(self, weights, gradients, _):
        for name, gradient in gradients.items():
            weights[name][:] = [w - self.rate * g for w, g in zip(weights[name], gradient)]
