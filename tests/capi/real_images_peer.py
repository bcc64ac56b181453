#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""real_images_peer.py DATASET_DIRECTORY: trains the network of real_images_test.c with PyTorch, from the same weights and on the
same images of Fashion-MNIST, in double and in single precision, and prints what that test compares with.

Needs PyTorch; what it printed is kept in the test.
"""
import gzip
import math
import os
import sys

import torch

TRAIN, TEST, BATCH, RATE = 3000, 2000, 100, 2e-3
REPORTED = (1, 10, 60, 120)
# Name, shape as tutti has it, and inputs and outputs of a unit.
VARIABLES = (('conv2d/kernel', (3, 3, 1, 8), 9, 72), ('conv2d_1/kernel', (3, 3, 8, 16), 72, 144),
             ('dense/kernel', (784, 10), 784, 10))


def read_idx(path, count):
    """Of bytes, the first so many."""
    with gzip.open(path) as file:
        rank = file.read(4)[3]
        dims = [int.from_bytes(file.read(4), 'big') for _ in range(rank)]
        size = count * math.prod(dims[1:])
        return torch.frombuffer(bytearray(file.read(size)), dtype=torch.uint8).reshape(count, *dims[1:])


def weights(number, shape, fan_in, fan_out):
    seed, limit, values = number, math.sqrt(6 / (fan_in + fan_out)), []
    for _ in range(math.prod(shape)):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        values.append(limit * (2 * (seed >> 8) / 2 ** 24 - 1))
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


class Network:
    def __init__(self, dtype):
        kernels = [weights(i + 1, *one[1:]).to(dtype) for i, one in enumerate(VARIABLES)]
        first, second = (kernel.permute(3, 2, 0, 1).contiguous() for kernel in kernels[:2])
        biases = [torch.zeros(count, dtype=dtype) for count in (8, 16, 10)]
        self.parameters = [one.requires_grad_() for one in (first, second, kernels[2], *biases)]
        self.optimizer = torch.optim.Adam(self.parameters, lr=RATE)

    def logits(self, images):
        first, second, dense, *biases = self.parameters
        x = images.unsqueeze(1)
        for kernel, bias in ((first, biases[0]), (second, biases[1])):
            x = torch.nn.functional.max_pool2d(torch.relu(torch.nn.functional.conv2d(x, kernel, bias, padding=1)), 2)
        return x.permute(0, 2, 3, 1).flatten(1) @ dense + biases[2]

    def step(self, images, labels):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.logits(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def run(directory, dtype):
    def read(prefix, count):
        images = read_idx(os.path.join(directory, prefix + '-images-idx3-ubyte.gz'), count)
        return images.to(dtype) / 255, read_idx(os.path.join(directory, prefix + '-labels-idx1-ubyte.gz'), count).long()

    images, labels = read('train', TRAIN)
    network, step = Network(dtype), 0
    while step < REPORTED[-1]:
        rows = slice(step * BATCH % TRAIN, step * BATCH % TRAIN + BATCH)
        loss, step = network.step(images[rows], labels[rows]), step + 1
        if step in REPORTED:
            print(f'  step {step} loss {loss:.6f}')
    images, labels = read('t10k', TEST)
    with torch.no_grad():
        logits = network.logits(images)
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
    print(f'  test loss {loss:.6f} accuracy {(logits.argmax(1) == labels).double().mean().item():.4f}')


def main():
    for dtype in (torch.float64, torch.float32):
        print(f'PyTorch {torch.__version__}, {dtype}')
        run(sys.argv[1], dtype)


main()
