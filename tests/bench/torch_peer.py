#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of the step benchmark: one training step (forward, cross-entropy, backward, Adam) on a fixed batch.

usage: torch_peer.py   prints "<version> <BLAS>"; then, on standard input, lines "<case> <configuration> <seconds>", each
answered by one line "<milliseconds of process CPU time per step>", or "inf" for what does not work. A configuration is
eager or channels_last, with +fused (one kernel for the optimizer) or +compiled behind it.
"""
import math
import sys
import time

import torch
from torch import nn


def conv_bn(inputs, outputs, size, stride=1, groups=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """A basic residual block; a strided one projects its input by a 1x1 convolution."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(inputs, outputs, 3, stride), nn.ReLU(inplace=True), *conv_bn(outputs, outputs, 3))
        self.skip = nn.Sequential(*conv_bn(inputs, outputs, 1, stride)) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet20():
    layers, channels = [*conv_bn(3, 16, 3), nn.ReLU(inplace=True)], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(Block(channels, width, stride if block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def separable():
    layers, channels = [*conv_bn(3, 32, 3), nn.ReLU(inplace=True)], 32
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)):
        layers += [*conv_bn(channels, channels, 3, stride, channels), nn.ReLU(inplace=True)]
        layers += [*conv_bn(channels, width, 1), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def mlp(*sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1])] + ([nn.ReLU()] if i < len(sizes) - 2 else [])
    return nn.Sequential(*layers)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


CASES = {
    'toy': (lambda: mlp(10, 16, 2), (64, 10), 2),
    'mlp': (lambda: mlp(784, 512, 256, 10), (64, 784), 10),
    'cnn': (cnn, (64, 1, 28, 28), 10),
    'resnet20': (resnet20, (128, 3, 32, 32), 10),
    'separable': (separable, (128, 3, 32, 32), 10),
}


class Step:
    def __init__(self, case, configuration):
        torch.manual_seed(0)
        make, shape, classes = CASES[case]
        self.model, self.x = make(), torch.randn(shape)
        words = configuration.split('+')
        if 'channels_last' in words and len(shape) == 4:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, classes, (shape[0],))
        form = {'fused': True} if 'fused' in words else {'foreach': True}
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3, **form)
        self.loss = self.forward
        if 'compiled' in words:
            self.loss = torch.compile(self.forward)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.model(x), y)

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.x, self.y).backward()
        self.optimizer.step()


def measure(step, seconds):
    count, start, deadline = 0, time.process_time(), time.monotonic() + seconds
    while count < 3 or time.monotonic() < deadline:
        step.run()
        count += 1
    return (time.process_time() - start) / count * 1e3


def main():
    torch.set_num_threads(1)
    blas = 'mkl' if torch.backends.mkl.is_available() else 'openblas'
    print(torch.__version__, blas, flush=True)
    steps = {}
    for line in sys.stdin:
        case, configuration, seconds = line.split()
        try:
            if (case, configuration) not in steps:
                steps[case, configuration] = Step(case, configuration)
                measure(steps[case, configuration], 0.2)
            milliseconds = measure(steps[case, configuration], float(seconds))
        except Exception as error:  # an older release lacks a configuration, a machine the compiler for it
            print(f'{case} {configuration}: {error}', file=sys.stderr)
            milliseconds = math.inf
        print(milliseconds, flush=True)


if __name__ == '__main__':
    main()
