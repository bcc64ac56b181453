#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""table_peer.py ROWS WIDTH EXAMPLES LOOKUPS: the steps of table_bench.c in PyTorch, with gradients of rows and without."""
import sys
import time

import torch

rows, width, examples, lookups = map(int, sys.argv[1:])
torch.set_num_threads(1)
torch.manual_seed(1)


def measure(is_sparse, make):
    table = torch.full((rows, width), 0.5, requires_grad=True)
    ids = torch.randint(rows, (examples, lookups))
    optimizer = make([table])

    def step():
        optimizer.zero_grad()
        bag = torch.nn.functional.embedding_bag(ids, table, mode='sum', sparse=is_sparse)
        bag.square().mean().backward()
        optimizer.step()

    step()
    best = float('inf')
    for _ in range(5):
        begin = time.process_time()
        for _ in range(3):
            step()
        best = min(best, (time.process_time() - begin) / 3)
    return best * 1e3


optim = torch.optim
for name, is_sparse, make in (('adam, lazy', True, lambda p: optim.SparseAdam(p, lr=0.01)),
                              ('adam', False, lambda p: optim.Adam(p, lr=0.01, fused=True)),
                              ('sgd', True, lambda p: optim.SGD(p, lr=0.01)),
                              ('sgd, all rows', False, lambda p: optim.SGD(p, lr=0.01, fused=True)),
                              ('adagrad', True, lambda p: optim.Adagrad(p, lr=0.01))):
    print(f'PyTorch  {name:14} {measure(is_sparse, make):10.3f}', flush=True)
