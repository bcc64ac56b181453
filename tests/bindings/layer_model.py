# SPDX-License-Identifier: Apache-2.0
"""The model "layers" of scenarios.txt for training_oracle.py: layers of convolution, pooling, shapes and embeddings, each written
out for one row, with doubles and without the library.
"""
from loss_model import Losses, mean

# Variables that begin with ones, and such that begin with zeros.
KERNELS = {
    'conv1d/kernel': (2, 1, 1), 'conv2d/kernel': (1, 2, 1, 1), 'conv3d/kernel': (3, 1, 1, 1, 1), 'conv1d_transpose/kernel': (2, 1, 1),
    'conv2d_transpose/kernel': (1, 1, 1, 1), 'conv3d_transpose/kernel': (2, 1, 1, 1, 1), 'depthwise_conv1d/kernel': (1, 1, 3),
    'depthwise_conv2d/kernel': (1, 1, 1, 3), 'separable_conv1d/depthwise_kernel': (1, 1, 3),
    'separable_conv1d/pointwise_kernel': (1, 3, 1), 'separable_conv2d/depthwise_kernel': (1, 1, 1, 3),
    'separable_conv2d/pointwise_kernel': (1, 1, 3, 1), 'embedding/table': (3, 2), 'embedding_bag/table': (3, 2),
}
BIASES = {
    'conv1d/bias': 1, 'conv2d/bias': 1, 'conv1d_transpose/bias': 1, 'conv2d_transpose/bias': 1, 'conv3d_transpose/bias': 1,
    'depthwise_conv1d/bias': 3, 'depthwise_conv2d/bias': 3, 'separable_conv1d/bias': 1, 'separable_conv2d/bias': 1,
}


def convolutions(w, z):
    first, second = w['conv1d/kernel']
    left, right = w['conv2d/kernel']
    parts = {
        'conv1d': mean(first * a + second * b for a, b in zip([0, *z], z)) + w['conv1d/bias'][0],
        'conv2d': mean(left * a + right * b for a, b in zip(z, z[1:])) + w['conv2d/bias'][0],
        'conv3d': sum(a * b for a, b in zip(w['conv3d/kernel'], z)),
    }
    for axes in (1, 2):
        each, both = f'depthwise_conv{axes}d', f'separable_conv{axes}d'
        parts[each] = mean(k * a + b for k, a, b in zip(w[f'{each}/kernel'], z, w[f'{each}/bias']))
        kernels = zip(w[f'{both}/depthwise_kernel'], w[f'{both}/pointwise_kernel'], z)
        parts[both] = sum(d * p * a for d, p, a in kernels) + w[f'{both}/bias'][0]
    return parts


def transposes(w, z):
    """Sums over all elements of the results, of which there are 6, 6 and 4."""
    one, two, three = (w[f'conv{axes}d_transpose/kernel'] for axes in (1, 2, 3))
    biases = [w[f'conv{axes}d_transpose/bias'][0] for axes in (1, 2, 3)]
    return {
        'conv1d_transpose': sum(z) * sum(one) / 6 + biases[0],
        'conv2d_transpose': sum(z) * two[0] / 6 + biases[1],
        'conv3d_transpose': sum(z) * sum(three) / 4 + biases[2],
    }


def pools(z):
    pairs = list(zip(z, z[1:]))
    return {
        'max_pool1d': mean(map(max, pairs)),
        'average_pool1d': mean([mean(z[:2]), z[2]]),
        'max_pool2d': max(z),
        'average_pool2d': mean(map(mean, pairs)),
        'max_pool3d': mean(map(max, pairs)),
        'average_pool3d': mean([z[0] / 2, (z[1] + z[2]) / 2]),
        **{f'global_average_pool{axes}d': mean(z) for axes in (1, 2, 3)},
        **{f'global_max_pool{axes}d': max(z) for axes in (1, 2, 3)},
    }


def sizes(z):
    return {
        'up_sampling1d': (2 * z[0] + 2 * z[1] + z[2]) / 5,
        'up_sampling2d': mean([z[0], 0.75 * z[0] + 0.25 * z[1], 0.25 * z[0] + 0.75 * z[1]]),
        'up_sampling3d': (2 * z[0] + 2 * z[1] + z[2]) / 5,
        'zero_padding1d': sum(z) / 6,
        'zero_padding2d': sum(z) / 8,
        'zero_padding3d': sum(z) / 5,
        'cropping1d': mean(z[1:]),
        'cropping2d': z[1],
        'cropping3d': z[0],
    }


def embeddings(w, x, z, label):
    """Id 0 of the first table is padding; a bag has as many ids as the label says."""
    def row(table, index):
        return w[table][2 * index:2 * index + 2]
    order = sorted(range(3), key=z.__getitem__)[:label]
    return {
        'embedding': mean(row('embedding/table', label)) if label else 0.0,
        'embedding_bag': sum(a * mean(row('embedding_bag/table', i)) for a, i in zip(x, order)),
    }


class Layers(Losses):
    def __init__(self, columns, seed):
        super().__init__(columns, seed)
        for name, dims in KERNELS.items():
            self.shapes[name] = dims
            count = 1
            for size in dims:
                count *= size
            self.weights[name] = [1.0] * count
        self.weights['embedding/table'][:2] = [0.0, 0.0]
        for name, count in BIASES.items():
            self.shapes[name], self.weights[name] = (count,), [0.0] * count

    def metrics(self, batch):
        """Sums over the rows, as for other models."""
        sums, w = {}, self.weights
        for row, label in batch:
            z = self.scores(row)
            for part in (convolutions(w, z), transposes(w, z), pools(z), sizes(z), embeddings(w, row, z, label)):
                for name, value in part.items():
                    sums[name] = sums.get(name, 0) + value
        return sums
