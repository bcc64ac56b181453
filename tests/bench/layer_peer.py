#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layer_peer.py [CASE...]: the steps of layer_bench.c in PyTorch."""
import sys
import time

import torch

torch.set_num_threads(1)
WIDTH = 256
CASES = {
    'lstm': (32, 64, lambda: torch.nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)),
    'gru': (32, 64, lambda: torch.nn.GRU(WIDTH, WIDTH, 2, batch_first=True)),
    'transformer': (16, 128, lambda: torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)),
}


def measure(batch, length, make):
    layer = make()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    x = torch.rand(batch, length, WIDTH) * 2 - 1

    def step():
        optimizer.zero_grad()
        y = layer(x)
        (y[0] if isinstance(y, tuple) else y).square().mean().backward()
        optimizer.step()

    step()
    best = float('inf')
    for _ in range(10):
        begin = time.process_time()
        for _ in range(2):
            step()
        best = min(best, (time.process_time() - begin) / 2)
    return best * 1e3


for name in sys.argv[1:] or CASES:
    print(f'PyTorch  {name:12} {measure(*CASES[name]):9.2f} ms of processor time a step', flush=True)
