#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attention_peer.py ATTENTION_BENCH [TURNS]: attention and its gradients on one thread, beside PyTorch.

For each size the op, the same composed of other ops, and F.scaled_dot_product_attention forward and backward, measured
in turns; prints the least milliseconds of each and what the other two take of them as multiples of the op's.
"""
import subprocess
import sys
import time

import torch

SIZES = [(4, 256, 4, 32, False), (2, 1024, 12, 64, True), (8, 128, 8, 64, False), (1, 2048, 8, 64, True)]
SECONDS = 1.0


def torch_ms(rows, length, heads, channels, causal):
    shape = (rows, length, heads, channels)
    q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
    dy = torch.randn(shape)

    def step():
        start = time.process_time()
        y = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal)
        torch.autograd.grad(y.transpose(1, 2), (q, k, v), dy)
        return 1e3 * (time.process_time() - start)

    step()
    least, end = step(), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        least = min(least, step())
    return least


def bench_ms(program, sizes):
    words = [program, *(str(int(size)) for size in sizes), str(SECONDS)]
    return [float(word) for word in subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()]


def main():
    torch.set_num_threads(1)
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    for sizes in SIZES:
        times = [[*bench_ms(sys.argv[1], sizes), torch_ms(*sizes)] for _ in range(turns)]
        op, composed, peer = (min(column) for column in zip(*times))
        rows, length, heads, channels, causal = sizes
        print(f"{rows} x {length} x {heads} x {channels}{' causal' if causal else '':7}  op {op:8.2f} ms   composed "
              f"{composed:8.2f} ms = {composed / op:.2f}   PyTorch {torch.__version__} {peer:8.2f} ms = {peer / op:.2f}",
              flush=True)


main()
