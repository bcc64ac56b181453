# SPDX-License-Identifier: Apache-2.0
"""The models of scenarios.txt, their gradients and optimizers, written out with doubles and without the library, for
training_oracle.py.

Random numbers: Philox4x32-10 (Salmon et al., 2011). A key is folded from a seed, what the numbers are for, and a count:
initial weights take the FNV-1a hash of the variable's name, dropout that of its node's name and the number of batches
before, a shuffle its depth among the shuffles and the number of the pass. Bounded integers are Lemire's (2019).
"""
import math

from block_model import Blocks
from function_model import Functions
from layer_model import Layers
from loss_model import Losses
from metric_model import Metrics
from op_model import Ops
from optimizer_model import ByName
from schedule_model import rates
from table_model import Tables

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


# ---- random numbers --------------------------------------------------------------------------------------------------


def philox(key, high, low):
    """The four words of a block."""
    words = [low & MASK32, low >> 32, high & MASK32, high >> 32]
    first, second = key & MASK32, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [(b >> 32) ^ words[1] ^ first, b & MASK32, (a >> 32) ^ words[3] ^ second, a & MASK32]
        first, second = (first + 0x9E3779B9) & MASK32, (second + 0xBB67AE85) & MASK32
    return words


def key_of(seed, stream, count):
    words = philox(seed, stream, count)
    return words[0] | words[1] << 32


def hash_of(text):
    """FNV-1a, 64 bits."""
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 & MASK64
    return value


def uniforms(key, row, count):
    """Numbers of [0, 1), each the upper 24 bits of a word."""
    return [(philox(key, row, i // 4)[i % 4] >> 8) / 2 ** 24 for i in range(count)]


class Draws:
    def __init__(self, key):
        self.key, self.taken = key, 0

    def word(self):
        self.taken += 1
        return philox(self.key, 0, (self.taken - 1) // 4)[(self.taken - 1) % 4]

    def below(self, bound):
        product = self.word() * bound
        while product & MASK32 < (2 ** 32 - bound) % bound:
            product = self.word() * bound
        return product >> 32


# ---- parts of models: of each its gradient too ------------------------------------------------------------------------


def glorot_uniform(name, seed, count, fan_in, fan_out):
    limit = math.sqrt(6 / (fan_in + fan_out))
    return [limit * (2 * number - 1) for number in uniforms(key_of(seed, hash_of(name) >> 1 | 1, 0), 0, count)]


def times(rows, kernel, width, bias):
    return [[bias[j] + sum(x * kernel[i * width + j] for i, x in enumerate(row)) for j in range(width)] for row in rows]


def times_gradients(rows, kernel, width, upstream):
    """(of the rows, of the kernel, of the bias)"""
    depth = len(kernel) // width
    of_rows = [[sum(g[j] * kernel[i * width + j] for j in range(width)) for i in range(depth)] for g in upstream]
    of_kernel = [sum(row[i] * g[j] for row, g in zip(rows, upstream)) for i in range(depth) for j in range(width)]
    return of_rows, of_kernel, [sum(g[j] for g in upstream) for j in range(width)]


def softmax(logits):
    top = max(logits)
    powers = [math.exp(z - top) for z in logits]
    return [power / sum(powers) for power in powers]


def cross_entropy(logits, labels, count):
    """(the sum of the losses, the gradient of their sum divided by `count`)"""
    shares = [softmax(row) for row in logits]
    loss = -sum(math.log(share[label]) for share, label in zip(shares, labels))
    return loss, [[(p - (j == y)) / count for j, p in enumerate(share)] for share, y in zip(shares, labels)]


def in_top(logits, label, k):
    return sum(z > logits[label] for z in logits) < k


def argmax(numbers):
    return max(range(len(numbers)), key=numbers.__getitem__)


# ---- models ----------------------------------------------------------------------------------------------------------
#
# A model has its variables by name and
#   gradients(batch, count, seed, number)   (sum of the losses, gradients of the sum / count by name), training on batch number
#   losses(batch), metrics(batch)           sums over the rows
#   outputs(features)                       by name, for one row
#   set_params(text)                        only where the run option params means something


class Classifier:
    HIDDEN, CLASSES, RATE = 8, 3, 0.25

    def __init__(self, columns, seed):
        hidden, classes = self.HIDDEN, self.CLASSES
        self.shapes = {'dense/kernel': (columns, hidden), 'dense_1/kernel': (hidden, classes)}
        self.weights = {'dense/kernel': glorot_uniform('dense/kernel', seed, columns * hidden, columns, hidden),
                        'dense/bias': [0.0] * hidden,
                        'dense_1/kernel': glorot_uniform('dense_1/kernel', seed, hidden * classes, hidden, classes),
                        'dense_1/bias': [0.0] * classes}
        self.optimizer = Adam(0.01, 0)

    def hidden(self, rows):
        w = self.weights
        return [[max(h, 0) for h in row] for row in times(rows, w['dense/kernel'], self.HIDDEN, w['dense/bias'])]

    def logits(self, hidden):
        return times(hidden, self.weights['dense_1/kernel'], self.CLASSES, self.weights['dense_1/bias'])

    def gradients(self, batch, count, seed, number):
        key = key_of(seed, hash_of('dropout') & MASK64 >> 1, number)
        rows, labels = zip(*batch)
        kept = [[(u >= self.RATE) / (1 - self.RATE) for u in uniforms(key, i, self.HIDDEN)] for i in range(len(rows))]
        hidden = [[h * k for h, k in zip(*pair)] for pair in zip(self.hidden(rows), kept)]
        loss, upstream = cross_entropy(self.logits(hidden), labels, count)
        inner, kernel_1, bias_1 = times_gradients(hidden, self.weights['dense_1/kernel'], self.CLASSES, upstream)
        inner = [[g * k * (h > 0) for g, k, h in zip(*three)] for three in zip(inner, kept, hidden)]
        _, kernel, bias = times_gradients(rows, self.weights['dense/kernel'], self.HIDDEN, inner)
        return loss, {'dense/kernel': kernel, 'dense/bias': bias, 'dense_1/kernel': kernel_1, 'dense_1/bias': bias_1}

    def losses(self, batch):
        rows, labels = zip(*batch)
        return cross_entropy(self.logits(self.hidden(rows)), labels, 1)[0]

    def metrics(self, batch):
        logits = self.logits(self.hidden([row for row, _ in batch]))
        return {name: sum(in_top(z, label, k) for z, (_, label) in zip(logits, batch))
                for name, k in (('accuracy', 1), ('top_2', 2))}

    def outputs(self, row):
        logits = self.logits(self.hidden([row]))[0]
        return {'class': [argmax(logits)], 'probability': softmax(logits)}


class Optimizers:
    CLASSES = 3

    def __init__(self, columns, seed):
        self.shapes = {'dense/kernel': (columns, self.CLASSES), 'dense/bias': (self.CLASSES,)}
        self.weights = {'dense/kernel': glorot_uniform('dense/kernel', seed, columns * self.CLASSES, columns, self.CLASSES),
                        'dense/bias': [0.0] * self.CLASSES}

    def set_params(self, name):
        self.optimizer = ByName(name)

    def logits(self, rows):
        return times(rows, self.weights['dense/kernel'], self.CLASSES, self.weights['dense/bias'])

    def gradients(self, batch, count, *_):
        rows, labels = zip(*batch)
        loss, upstream = cross_entropy(self.logits(rows), labels, count)
        _, kernel, bias = times_gradients(rows, self.weights['dense/kernel'], self.CLASSES, upstream)
        return loss, {'dense/kernel': kernel, 'dense/bias': bias}

    def losses(self, batch):
        rows, labels = zip(*batch)
        return cross_entropy(self.logits(rows), labels, 1)[0]

    def metrics(self, _):
        return {}

    def outputs(self, row):
        return {'z': self.logits([row])[0]}


class Line:
    def __init__(self, columns, _):
        self.shapes = {'line/slope': (columns, 1)}
        self.weights = {'line/slope': [0.0] * columns}

    def height(self, row):
        return sum(x * s for x, s in zip(row, self.weights['line/slope']))

    def gradients(self, batch, count, *_):
        slopes = [sum(2 * (self.height(row) - y) * row[j] for row, y in batch) / count for j in range(len(batch[0][0]))]
        return self.losses(batch), {'line/slope': slopes}

    def losses(self, batch):
        return sum((self.height(row) - y) ** 2 for row, y in batch)

    def metrics(self, _):
        return {}

    def outputs(self, row):
        return {'y': [self.height(row)]}


class Regression(Line):
    def __init__(self, columns, seed):
        super().__init__(columns, seed)
        self.optimizer = Nesterov(lambda step: 0.05 * 0.5 ** (step // 4), 0.9)

    def metrics(self, batch):
        return {'target': sum(label for _, label in batch)}


class Schedules(Line):
    def __init__(self, columns, seed):
        super().__init__(columns, seed)
        self.optimizer = Nesterov(lambda step: rates(step)['switch'], 0.0)
        self.step = 0

    def end_step(self):
        self.step += 1

    def metrics(self, batch):
        return {name: len(batch) * rate for name, rate in rates(self.step).items()}


class Averages(Line):
    def __init__(self, columns, seed):
        super().__init__(columns, seed)
        self.optimizer = Averaged(0.5, clip_value=0.2, clip_norm=0.3, decay=0.8, start=1)


class Images:
    SIDE, FILTERS, CLASSES, EPSILON, MOMENTUM = 6, 4, 3, 0.001, 0.5

    def __init__(self, _, seed):
        self.pooled = (self.SIDE // 2) ** 2 * self.FILTERS
        self.shapes = {}
        self.weights = {'conv2d/kernel': glorot_uniform('conv2d/kernel', seed, 9 * self.FILTERS, 9, 9 * self.FILTERS),
                        'batch_norm/scale': [1.0] * self.FILTERS, 'batch_norm/offset': [0.0] * self.FILTERS,
                        'dense/kernel': glorot_uniform('dense/kernel', seed, self.pooled * self.CLASSES, self.pooled, self.CLASSES),
                        'dense/bias': [0.0] * self.CLASSES}
        self.running = {'mean': [0.0] * self.FILTERS, 'variance': [1.0] * self.FILTERS}
        self.step_statistics = []
        self.optimizer = Adam(0.02, 0.1, clip_norm=1.0)

    def windows(self, image):
        """The nine pixels around each, zeros outside of the image."""
        side = self.SIDE
        return [[image[i * side + j] if 0 <= i < side and 0 <= j < side else 0.0 for i in range(y - 1, y + 2)
                 for j in range(x - 1, x + 2)] for y in range(side) for x in range(side)]

    def normalized(self, pixels, mean, variance):
        return [[(p - m) / math.sqrt(v + self.EPSILON) for p, m, v in zip(pixel, mean, variance)] for pixel in pixels]

    def scaled(self, pixels):
        scale, offset = self.weights['batch_norm/scale'], self.weights['batch_norm/offset']
        return [[max(s * p + o, 0) for p, s, o in zip(pixel, scale, offset)] for pixel in pixels]

    def pools(self):
        """For each place behind the pooling the places in front of it, and the channel."""
        side = self.SIDE
        for y in range(0, side, 2):
            for x in range(0, side, 2):
                for channel in range(self.FILTERS):
                    yield [y * side + x, y * side + x + 1, (y + 1) * side + x, (y + 1) * side + x + 1], channel

    def logits(self, pooled):
        return times(pooled, self.weights['dense/kernel'], self.CLASSES, self.weights['dense/bias'])

    def forward(self, rows, statistics):
        area = self.SIDE ** 2
        windows = [window for row in rows for window in self.windows(row)]
        filtered = times(windows, self.weights['conv2d/kernel'], self.FILTERS, [0.0] * self.FILTERS)
        mean, variance = statistics(filtered)
        normal = self.normalized(filtered, mean, variance)
        active = self.scaled(normal)
        highest = [[max(places, key=lambda place, c=c, i=i: active[i * area + place][c]) for places, c in self.pools()]
                   for i in range(len(rows))]
        pooled = [[active[i * area + place][c] for place, (_, c) in zip(places, self.pools())]
                  for i, places in enumerate(highest)]
        return windows, variance, normal, active, highest, pooled

    def gradients(self, batch, count, *_):
        rows, labels = zip(*batch)
        windows, variance, normal, active, highest, pooled = self.forward(rows, self.batch_statistics)
        loss, upstream = cross_entropy(self.logits(pooled), labels, count)
        of_pooled, of_kernel, of_bias = times_gradients(pooled, self.weights['dense/kernel'], self.CLASSES, upstream)
        upstream = [[0.0] * self.FILTERS for _ in active]
        for i, (places, numbers) in enumerate(zip(highest, of_pooled)):
            for place, (_, c), number in zip(places, self.pools(), numbers):
                pixel = i * self.SIDE ** 2 + place
                upstream[pixel][c] += number * (active[pixel][c] > 0)
        of_offset = [sum(column) for column in zip(*upstream)]
        of_scale = [sum(g * n for g, n in zip(*pair)) for pair in zip(zip(*upstream), zip(*normal))]
        factor = [s / math.sqrt(v + self.EPSILON) for s, v in zip(self.weights['batch_norm/scale'], variance)]
        upstream = [[f * (g - (o + n * s) / len(normal)) for f, g, n, o, s in zip(factor, gs, ns, of_offset, of_scale)]
                    for gs, ns in zip(upstream, normal)]
        _, of_filters, _ = times_gradients(windows, self.weights['conv2d/kernel'], self.FILTERS, upstream)
        return loss, {'conv2d/kernel': of_filters, 'batch_norm/scale': of_scale, 'batch_norm/offset': of_offset,
                      'dense/kernel': of_kernel, 'dense/bias': of_bias}

    def batch_statistics(self, pixels):
        mean = [sum(column) / len(pixels) for column in zip(*pixels)]
        variance = [sum((p - m) ** 2 for p in column) / len(pixels) for column, m in zip(zip(*pixels), mean)]
        self.step_statistics.append((len(pixels), mean, variance))
        return mean, variance

    def end_step(self):
        """Running statistics follow the mean over the batches of the step, by rows."""
        total = sum(count for count, *_ in self.step_statistics)
        for place, name in ((1, 'mean'), (2, 'variance')):
            for c in range(self.FILTERS):
                batch = sum(one[0] * one[place][c] for one in self.step_statistics) / total
                self.running[name][c] = self.MOMENTUM * self.running[name][c] + (1 - self.MOMENTUM) * batch
        self.step_statistics = []

    def inferred(self, rows):
        return self.logits(self.forward(rows, lambda _: (self.running['mean'], self.running['variance']))[-1])

    def losses(self, batch):
        rows, labels = zip(*batch)
        return cross_entropy(self.inferred(rows), labels, 1)[0]

    def metrics(self, batch):
        logits = self.inferred([row for row, _ in batch])
        return {'accuracy': sum(in_top(z, label, 1) for z, (_, label) in zip(logits, batch))}

    def outputs(self, row):
        return {'class': [argmax(self.inferred([row])[0])]}


# ---- optimizers: update(weights, gradients, completed steps) -----------------------------------------------------------


def norm(numbers):
    return math.sqrt(sum(number * number for number in numbers))


class Adam:
    """Kingma and Ba (2015), with decoupled decay (Loshchilov and Hutter, 2019)."""
    BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, rate, decay, clip_norm=math.inf):
        self.rate, self.decay, self.clip_norm, self.moments = rate, decay, clip_norm, {}

    def update(self, weights, gradients, step):
        share = min(1, self.clip_norm / max(norm([g for one in gradients.values() for g in one]), 1e-30))
        for name, gradient in gradients.items():
            weight = weights[name]
            first, second = self.moments.setdefault(name, ([0.0] * len(weight), [0.0] * len(weight)))
            for i, g in enumerate(gradient):
                first[i] = self.BETA1 * first[i] + (1 - self.BETA1) * g * share
                second[i] = self.BETA2 * second[i] + (1 - self.BETA2) * (g * share) ** 2
                m = first[i] / (1 - self.BETA1 ** (step + 1))
                v = second[i] / (1 - self.BETA2 ** (step + 1))
                weight[i] -= self.rate * (m / (math.sqrt(v) + self.EPSILON) + self.decay * weight[i])


class Nesterov:
    """Sutskever et al. (2013)."""

    def __init__(self, rate, momentum):
        self.rate, self.momentum, self.velocity, self.factor = rate, momentum, {}, 1.0

    def update(self, weights, gradients, step):
        for name, gradient in gradients.items():
            velocity = self.velocity.setdefault(name, [0.0] * len(gradient))
            for i, g in enumerate(gradient):
                velocity[i] = self.momentum * velocity[i] + g
                weights[name][i] -= self.factor * self.rate(step) * (g + self.momentum * velocity[i])


class Averaged:
    """Plain descent with limits to each element and to each variable's norm, and a moving average of the weights."""

    def __init__(self, rate, clip_value, clip_norm, decay, start):
        self.rate, self.clip_value, self.clip_norm, self.decay, self.start = rate, clip_value, clip_norm, decay, start
        self.averages = {}

    def update(self, weights, gradients, step):
        for name, gradient in gradients.items():
            limited = [max(-self.clip_value, min(g, self.clip_value)) for g in gradient]
            share = min(1, self.clip_norm / norm(limited))
            weights[name][:] = [w - self.rate * share * g for w, g in zip(weights[name], limited)]
            behind = step + 1 - self.start
            decay = min(self.decay, (1 + behind) / (10 + behind)) if behind > 0 else 0
            average = self.averages.setdefault(name, list(weights[name]))
            average[:] = [decay * a + (1 - decay) * w for a, w in zip(average, weights[name])]


MODELS = {'classifier': Classifier, 'regression': Regression, 'averages': Averages, 'images': Images, 'losses': Losses,
          'blocks': lambda columns, seed: Blocks(columns, seed, glorot_uniform), 'optimizers': Optimizers,
          'functions': Functions, 'layers': Layers, 'metrics': Metrics, 'ops': Ops, 'schedules': Schedules, 'tables': Tables}
