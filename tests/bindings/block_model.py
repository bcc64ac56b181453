# SPDX-License-Identifier: Apache-2.0
"""The model "blocks" of scenarios.txt for training_models.py: what each variant makes of a row, with doubles and without the
library. Gradients are differences of losses, four for each weight, which are exact to more digits than the file has.
"""
import math

import residual_model

RATE, CLASSES, LENGTH = 0.25, 3, 3


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def norm(numbers):
    return math.sqrt(dot(numbers, numbers))


def column(matrix, width, j):
    return matrix[j::width]


def dense(x, kernel, bias):
    """One row, or each of a list of rows."""
    if isinstance(x[0], list):
        return [dense(row, kernel, bias) for row in x]
    return [b + dot(x, column(kernel, len(bias), j)) for j, b in enumerate(bias)]


def gelu(numbers):
    return [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in numbers]


def softmax(numbers):
    powers = [math.exp(x - max(numbers)) for x in numbers]
    return [power / sum(powers) for power in powers]


def layer_norm(x, scale, offset):
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
    return [(a - mean) / deviation * s + o for a, s, o in zip(x, scale, offset)]


def rms_norm(x, scale):
    root = math.sqrt(dot(x, x) / len(x) + 1e-6)
    return [a / root * s for a, s in zip(x, scale)]


def group_norm(rows, groups, scale, offset):
    """Over all positions and the channels of a group."""
    size = len(scale) // groups
    made = [[] for _ in rows]
    for first in range(0, len(scale), size):
        numbers = [a for row in rows for a in row[first:first + size]]
        normal = layer_norm(numbers, [1] * len(numbers), [0] * len(numbers))
        for p, row in enumerate(made):
            row += normal[p * size:(p + 1) * size]
    return [[a * s + o for a, s, o in zip(row, scale, offset)] for row in made]


def turned(x, position, base):
    half = len(x) // 2
    made = [0.0] * len(x)
    for i in range(half):
        angle = position * base ** (-2 * i / len(x))
        made[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        made[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
    return made


def attention(x, w, heads, causal, base):
    width = len(x[0])
    size = width // heads
    both = dense(x, w['input_kernel'], w['input_bias'])
    rows = []
    for i in range(len(x)):
        row = []
        for head in range(heads):
            q, k, v = ([one[part * width + head * size:part * width + (head + 1) * size] for one in both] for part in range(3))
            if base:
                q, k = ([turned(one, position, base) for position, one in enumerate(ones)] for ones in (q, k))
            seen = i + 1 if causal else len(x)
            shares = softmax([dot(q[i], k[j]) / math.sqrt(size) for j in range(seen)])
            row += [dot(shares, [v[j][c] for j in range(seen)]) for c in range(size)]
        rows.append(row)
    return dense(rows, w['output_kernel'], w['output_bias'])


def block(x, weights, scope, heads, causal, pre_norm, base):
    w = {name.removeprefix(scope + '/'): value for name, value in weights.items() if name.startswith(scope + '/')}
    own = {name.removeprefix('self_attention/'): value for name, value in w.items()}

    def part(x, name, function):
        def normalized(rows):
            return [layer_norm(row, w[name + '/scale'], w[name + '/offset']) for row in rows]
        made = function(normalized(x) if pre_norm else x)
        added = [[a + b for a, b in zip(*pair)] for pair in zip(x, made)]
        return added if pre_norm else normalized(added)

    def hidden(rows):
        units = [gelu(row) for row in dense(rows, w['hidden/kernel'], w['hidden/bias'])]
        return dense(units, w['output/kernel'], w['output/bias'])
    return part(part(x, 'attention_norm', lambda rows: attention(rows, own, heads, causal, base)), 'output_norm', hidden)


def norms(x, weights):
    """One norm after the other, and attention."""
    own = {name.removeprefix('multi_head_attention/'): value for name, value in weights.items()}
    x = group_norm(x, 2, weights['group_norm/scale'], weights['group_norm/offset'])
    x = [[math.tanh(a) for a in row] for row in x]
    x = group_norm(x, len(x[0]), weights['instance_norm/scale'], weights['instance_norm/offset'])
    x = [[math.tanh(a) for a in layer_norm(row, weights['layer_norm/scale'], weights['layer_norm/offset'])] for row in x]
    return attention([rms_norm(row, weights['rms_norm/scale']) for row in x], own, 2, False, 0)


def norm_shapes(channels):
    own = {'input_kernel': (channels, 3 * channels), 'input_bias': (3 * channels,), 'output_kernel': (channels, channels),
           'output_bias': (channels,)}
    norm = {f'{name}/{part}': (channels,) for name in ('layer_norm', 'rms_norm', 'group_norm', 'instance_norm')
            for part in (('scale',) if name == 'rms_norm' else ('scale', 'offset'))}
    return {**{f'multi_head_attention/{name}': shape for name, shape in own.items()}, **norm}


def block_shapes(scope, channels, hidden):
    shapes = {'self_attention/input_kernel': (channels, 3 * channels), 'self_attention/input_bias': (3 * channels,),
              'self_attention/output_kernel': (channels, channels), 'self_attention/output_bias': (channels,),
              'hidden/kernel': (channels, hidden), 'hidden/bias': (hidden,), 'output/kernel': (hidden, channels), 'output/bias': (channels,)}
    for name in ('attention_norm', 'output_norm'):
        shapes[f'{name}/scale'] = shapes[f'{name}/offset'] = (channels,)
    return {f'{scope}/{name}': shape for name, shape in shapes.items()}


class Blocks:
    """`glorot_uniform` as in training_models.py."""

    def __init__(self, columns, seed, glorot_uniform):
        self.columns, self.seed, self.glorot_uniform = columns, seed, glorot_uniform
        self.optimizer = self

    def set_params(self, name):
        self.name, channels, dense_shapes = name, self.columns // LENGTH, {'dense/kernel': (self.columns, CLASSES), 'dense/bias': (CLASSES,)}
        self.shapes = {
            'encoder': lambda: {**block_shapes('transformer_encoder', channels, 5), **dense_shapes},
            'decoder': lambda: {'learned_positions/positions': (LENGTH, channels), **block_shapes('transformer_decoder', channels, 5),
                                **dense_shapes},
            'residual': lambda: {**residual_model.SHAPES, **dense_shapes},
            'norms': lambda: {**norm_shapes(channels), **dense_shapes},
            'weight_norm': lambda: {**dense_shapes, 'dense/kernel_scale': (CLASSES,)},
        }.get(name, lambda: dense_shapes)()
        self.weights = {full: self.first(full, shape) for full, shape in self.shapes.items()}
        kernel = self.weights['dense/kernel']
        if name == 'given':
            kernel[:] = [(i * 5 % 7 - 3) / 8 for i in range(len(kernel))]
        if name == 'weight_norm':
            self.weights['dense/kernel_scale'] = [norm(column(kernel, CLASSES, j)) for j in range(CLASSES)]
        if name == 'residual':
            self.running = residual_model.first_statistics()
        if name == 'spectral_norm':
            self.vectors = None, [1 + 0.5 * math.sin(i + 1) for i in range(self.columns)]
            for _ in range(100):
                self.vectors = self.next_vectors(kernel)
            self.next = self.vectors

    def first(self, name, shape):
        if len(shape) == 1:
            return [float(name.endswith('/scale'))] * shape[0]
        taps = math.prod(shape[:-2])
        return self.glorot_uniform(name, self.seed, math.prod(shape), taps * shape[-2], taps * shape[-1])

    # ---- the kernel that is divided by its largest singular value ----

    def next_vectors(self, kernel):
        """(of the units, of the inputs) after a round of power iteration."""
        left = [dot(column(kernel, CLASSES, j), self.vectors[1]) for j in range(CLASSES)]
        left = [a / norm(left) for a in left]
        right = [dot(kernel[i * CLASSES:(i + 1) * CLASSES], left) for i in range(self.columns)]
        return left, [a / norm(right) for a in right]

    def end_step(self):
        if self.name == 'spectral_norm':
            self.vectors = self.next
        if self.name == 'residual':
            self.running = residual_model.next_statistics(self.running, self.used)

    def kernel(self, weights, vectors):
        kernel = weights['dense/kernel']
        if self.name == 'weight_norm':
            factors = [weights['dense/kernel_scale'][j] / norm(column(kernel, CLASSES, j)) for j in range(CLASSES)]
            return [w * factors[i % CLASSES] for i, w in enumerate(kernel)]
        if self.name == 'spectral_norm':
            left, right = vectors
            largest = sum(right[i // CLASSES] * w * left[i % CLASSES] for i, w in enumerate(kernel))
            return [w / largest for w in kernel]
        return kernel

    # ---- what the model is ----

    def sequence(self, row, weights):
        channels = self.columns // LENGTH
        x = [row[p * channels:(p + 1) * channels] for p in range(LENGTH)]
        if self.name == 'encoder':
            x = [[a + (math.cos if c % 2 else math.sin)(p / 10000 ** (c // 2 * 2 / channels)) for c, a in enumerate(one)]
                 for p, one in enumerate(x)]
            x = block(x, weights, 'transformer_encoder', 2, False, False, 0)
        elif self.name == 'norms':
            x = norms(x, weights)
        else:
            table = weights['learned_positions/positions']
            x = [[a + table[p * channels + c] for c, a in enumerate(one)] for p, one in enumerate(x)]
            x = block(x, weights, 'transformer_decoder', 1, True, True, 100)
            x = [turned(one, p, 10000) for p, one in enumerate(x)]
        return [a for one in x for a in one]

    def logits(self, row, weights, vectors):
        x = self.sequence(row, weights) if self.name in ('encoder', 'decoder', 'norms') else row
        return dense(x, self.kernel(weights, vectors), weights['dense/bias'])

    def loss(self, batch, weights, vectors, running=None):
        rows = [row for row, _ in batch]
        if self.name == 'residual':
            rows, self.used = residual_model.residual(rows, weights, running)
        return -sum(math.log(softmax(self.logits(row, weights, vectors))[label]) for row, (_, label) in zip(rows, batch))

    def gradients(self, batch, count, *_):
        vectors = getattr(self, 'vectors', None)
        if self.name == 'spectral_norm':
            vectors = self.next = self.next_vectors(self.weights['dense/kernel'])
        # No step across the corner of a relu, or where a norm of few numbers is curved.
        size = 1e-5 if self.name in ('norms', 'residual') else 1e-3
        found = {}
        for name, values in self.weights.items():
            found[name] = []
            for i, value in enumerate(values):
                at = []
                for steps in (-2, -1, 1, 2):
                    values[i] = value + steps * size
                    at.append(self.loss(batch, self.weights, vectors))
                values[i] = value
                found[name].append((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * size) / count)
        return self.loss(batch, self.weights, vectors), found

    def update(self, weights, gradients, _):
        for name, gradient in gradients.items():
            weights[name][:] = [w - RATE * g for w, g in zip(weights[name], gradient)]
        if self.name == 'constrained':
            kernel, bias = weights['dense/kernel'], weights['dense/bias']
            lengths = [norm(column(kernel, CLASSES, j)) for j in range(CLASSES)]
            kernel[:] = [w * min(lengths[i % CLASSES], 0.5) / (lengths[i % CLASSES] + 1e-7) for i, w in enumerate(kernel)]
            bias[:] = [max(b, 0) for b in bias]

    def losses(self, batch):
        return self.loss(batch, self.weights, getattr(self, 'vectors', None), getattr(self, 'running', None))

    def metrics(self, _):
        return {}

    def outputs(self, row):
        if self.name == 'residual':
            (row,), _ = residual_model.residual([row], self.weights, self.running)
        return {'z': self.logits(row, self.weights, getattr(self, 'vectors', None))}
