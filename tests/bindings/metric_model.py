# SPDX-License-Identifier: Apache-2.0
"""The model "metrics" of scenarios.txt for training_oracle.py: each metric written out, with doubles and without the library."""
import math

from loss_model import Descent, mean, sigmoid, softmax

CLASSES = range(3)


def ratio(x, y):
    return x / y if y else 0.0


def argmax(numbers):
    return max(CLASSES, key=lambda k: (numbers[k], -k))


def trapezoids(scored):
    """Under the curve of the thresholds 0.25, 0.5 and 0.75, and its ends."""
    points = []
    for threshold in (-1, 0.25, 0.5, 0.75, 2):
        hits = [truth for p, truth in scored if p > threshold]
        positive = sum(truth for _, truth in scored)
        points.append((ratio(len(hits) - sum(hits), len(scored) - positive), ratio(sum(hits), positive)))
    return sum((a[0] - b[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:]))


def class_metrics(rows, labels):
    predicted = [argmax(z) for z in rows]
    confusion = [[sum(t == i and p == j for t, p in zip(labels, predicted)) for j in CLASSES] for i in CLASSES]
    hits, actual = [confusion[k][k] for k in CLASSES], [sum(confusion[k]) for k in CLASSES]
    chosen, count = [sum(row[k] for row in confusion) for k in CLASSES], len(rows)
    scored = [(sigmoid(z[k]), k == label) for z, label in zip(rows, labels) for k in CLASSES]
    recalls = [ratio(h, a) for h, a in zip(hits, actual) if a]
    by_chance = 1 / len(recalls)
    square = [sum(n * n for n in numbers) for numbers in (chosen, actual)]
    top = [label in sorted(CLASSES, key=lambda k, z=z: -z[k])[:2] for z, label in zip(rows, labels)]
    specificity = [ratio(count - a - c + h, count - a) for h, a, c in zip(hits, actual, chosen)]
    return {
        **{f'specificity/{name}': value for name, value in zip(('low', 'middle', 'high'), specificity)},
        'accuracy': sum(hits) / count,
        'top_k_accuracy': mean(top),
        'binary_accuracy': mean((p > 0.75) == truth for p, truth in scored),
        'precision': mean(map(ratio, hits, chosen)),
        'recall': ratio(sum(truth and p > 0.5 for p, truth in scored), count),
        'f_beta': sum(a * ratio(5 * h, 4 * a + c) for h, a, c in zip(hits, actual, chosen)) / count,
        'specificity': specificity,
        'balanced_accuracy': (mean(recalls) - by_chance) / (1 - by_chance),
        'matthews_correlation': ratio(count * sum(hits) - sum(a * c for a, c in zip(actual, chosen)),
                                      math.sqrt((count ** 2 - square[0]) * (count ** 2 - square[1]))),
        'mean_iou': mean(ratio(h, a + c - h) for h, a, c in zip(hits, actual, chosen) if a + c),
        'confusion_matrix': [float(number) for row in confusion for number in row],
        'auc': trapezoids(scored),
    }


def r_squared(predictions, targets):
    middle = mean(targets)
    return 1 - sum((t - p) ** 2 for p, t in zip(predictions, targets)) / sum((t - middle) ** 2 for t in targets)


def number_metrics(rows, labels):
    hot = [[float(k == label) for k in CLASSES] for label in labels]
    pairs = [pair for z, t in zip(rows, hot) for pair in zip(z, t)]
    square = mean((p - t) ** 2 for p, t in pairs)
    loss = mean(-math.log(softmax(z)[label]) for z, label in zip(rows, labels))
    return {
        'mean': mean(p for p, _ in pairs),
        'mean_squared_error': square,
        'root_mean_squared_error': math.sqrt(square),
        'mean_absolute_error': mean(abs(p - t) for p, t in pairs),
        'mean_absolute_percentage_error': mean(100 * abs(p - t) / max(t, 0.5) for p, t in pairs),
        'r_squared': mean(r_squared([z[k] for z in rows], [t[k] for t in hot]) for k in CLASSES),
        'log_loss': loss,
        'binary_log_loss': mean(-math.log(sigmoid(p if t else -p)) for p, t in pairs),
        'perplexity': math.exp(loss),
        'cosine_similarity': mean(z[label] / math.hypot(*z) for z, label in zip(rows, labels)),
    }


class Metrics:
    def __init__(self, columns, _):
        self.shapes = {'shift': (columns,)}
        self.weights = {'shift': [1.0] * columns}
        self.optimizer = Descent(0.5)

    def scores(self, row):
        return [4 * a - 3 + s for a, s in zip(row, self.weights['shift'])]

    def metrics(self, batch):
        """Times the rows, as sums over them are for other models."""
        rows, labels = [self.scores(row) for row, _ in batch], [label for _, label in batch]
        found = {**class_metrics(rows, labels), **number_metrics(rows, labels)}
        return {name: [len(batch) * one for one in value] if isinstance(value, list) else len(batch) * value
                for name, value in found.items()}

    def errors(self, batch):
        return [[z - (k == label) for k, z in enumerate(self.scores(row))] for row, label in batch]

    def losses(self, batch):
        return sum(mean(d * d for d in row) for row in self.errors(batch))

    def gradients(self, batch, count, *_):
        gradient = [sum(2 * row[j] / len(row) for row in self.errors(batch)) / count for j in CLASSES]
        return self.losses(batch), {'shift': gradient}

    def outputs(self, row):
        return {'z': self.scores(row)}
