# SPDX-License-Identifier: Apache-2.0
"""The residual block of the model "blocks", for block_model.py: images of SIDE x SIDE pixels, with doubles and without the library."""
import math

SIDE, CHANNELS = 2, 3
SCOPES = ('residual_block2d/first', 'residual_block2d/second')
SHAPES = {name: shape for scope in SCOPES for name, shape in
          ((f'{scope}/kernel', (3, 3, CHANNELS, CHANNELS)), (f'{scope}/batch_norm/scale', (CHANNELS,)),
           (f'{scope}/batch_norm/offset', (CHANNELS,)))}


def convolution(image, kernel):
    """3 x 3 over pixels, each a list of channels, with one pixel of zeros on each side."""
    made = []
    for row in range(SIDE):
        for column in range(SIDE):
            sums = [0.0] * CHANNELS
            for y in range(SIDE):
                for x in range(SIDE):
                    if abs(y - row) > 1 or abs(x - column) > 1:
                        continue
                    tap = ((y - row + 1) * 3 + x - column + 1) * CHANNELS
                    for c, value in enumerate(image[y * SIDE + x]):
                        for f in range(CHANNELS):
                            sums[f] += value * kernel[(tap + c) * CHANNELS + f]
            made.append(sums)
    return made


def statistics_of(images):
    pixels = [pixel for image in images for pixel in image]
    means = [sum(channel) / len(pixels) for channel in zip(*pixels)]
    variances = [sum((a - m) ** 2 for a in channel) / len(pixels) for m, channel in zip(means, zip(*pixels))]
    return means, variances


def residual(rows, weights, running=None):
    """What the block makes of a batch, and the statistics of its two norms: of the batch, unless running ones are given."""
    start = images = [[row[i:i + CHANNELS] for i in range(0, len(row), CHANNELS)] for row in rows]
    used = {}
    for scope in SCOPES:
        images = [convolution(image, weights[f'{scope}/kernel']) for image in images]
        means, variances = used[scope] = running[scope] if running else statistics_of(images)
        scale, offset = weights[f'{scope}/batch_norm/scale'], weights[f'{scope}/batch_norm/offset']
        images = [[[(a - m) / math.sqrt(v + 1e-3) * s + o for a, m, v, s, o in zip(pixel, means, variances, scale, offset)]
                   for pixel in image] for image in images]
        if scope == SCOPES[0]:
            images = [[[max(a, 0) for a in pixel] for pixel in image] for image in images]
    made = [[max(a + b, 0) for one, two in zip(*pair) for a, b in zip(one, two)] for pair in zip(start, images)]
    return made, used


def first_statistics():
    return {scope: ([0.0] * CHANNELS, [1.0] * CHANNELS) for scope in SCOPES}


def next_statistics(running, batch):
    return {scope: tuple([0.99 * a + 0.01 * b for a, b in zip(*pair)] for pair in zip(running[scope], batch[scope])) for scope in SCOPES}
