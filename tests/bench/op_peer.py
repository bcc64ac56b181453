#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""op_peer.py OP_BENCH [NAME ...]: single ops on one thread, beside PyTorch.

Measures both in turns and prints, slowest against PyTorch first, the least microseconds of each and PyTorch's as
multiples of tutti's: below 1 PyTorch is faster. Names are those of op_bench.cc; those that PyTorch has no function for
are named at the end.
"""
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

SECONDS, TURNS = 0.05, 3
aten = torch.ops.aten


def f32(*dims, low=-2.0, high=2.0):
    return torch.rand(dims) * (high - low) + low


def positive(*dims):
    return f32(*dims, low=0.1, high=3.0)


def indices(*dims, end):
    return torch.randint(0, end, dims)


def make_cases():
    x, y, image = f32(128, 1024), f32(128, 1024), f32(8, 32, 32, 64)
    up, row, column = positive(128, 1024), f32(1024), f32(128, 1)
    channels_first = image.permute(0, 3, 1, 2)  # of an image whose channels lie last, as tutti's do
    labels, words = indices(128, end=1024), indices(4096, end=10000)
    table, narrow, truth = f32(10000, 64), f32(16384, 10), x > 0
    log_p, p = -f32(128, 1024, low=1, high=2), f32(128, 1024, low=0, high=1)
    scale, many = f32(64), f32(128, 1024, low=0, high=200)
    a, b, square, wide = f32(64, 784), f32(784, 512), f32(64, 64, 64), f32(1024, 1024)
    cases = {name: (lambda f=f: f(x)) for name, f in {
        'neg': torch.neg, 'abs': torch.abs, 'sign': torch.sign, 'exp': torch.exp, 'expm1': torch.expm1,
        'sin': torch.sin, 'cos': torch.cos, 'tanh': torch.tanh, 'sigmoid': torch.sigmoid, 'erf': torch.erf,
        'relu': torch.relu, 'gelu': F.gelu, 'silu': F.silu, 'softplus': F.softplus, 'elu': F.elu,
        'leaky_relu': F.leaky_relu, 'square': torch.square, 'floor': torch.floor, 'round': torch.round,
        'reciprocal': torch.reciprocal}.items()}
    cases |= {name: (lambda f=f: f(up)) for name, f in {
        'log': torch.log, 'log1p': torch.log1p, 'sqrt': torch.sqrt, 'rsqrt': torch.rsqrt}.items()}
    cases |= {name: (lambda f=f: f(x, y)) for name, f in {
        'add': torch.add, 'mul': torch.mul, 'div': torch.div, 'maximum': torch.maximum, 'less': torch.less,
        'mod': torch.remainder, 'relu_gradient': lambda u, v: aten.threshold_backward(u, v, 0),
        'sigmoid_gradient': aten.sigmoid_backward, 'tanh_gradient': aten.tanh_backward,
        'gelu_gradient': aten.gelu_backward}.items()}
    for name, f in (('sum', torch.sum), ('max', torch.amax), ('prod', torch.prod)):
        cases |= {f'reduce_{name}_rows': lambda f=f: f(x, 1), f'reduce_{name}_columns': lambda f=f: f(x, 0)}
        if name != 'prod':
            cases |= {f'reduce_{name}_all': lambda f=f: f(x, (0, 1))}
            cases |= {f'reduce_{name}_image': lambda f=f: f(image, (1, 2))}
    return cases | {
        'sigmoid_cross_entropy': lambda: F.binary_cross_entropy_with_logits(x, p, reduction='none'),
        'pow': lambda: torch.pow(up, y),
        'add_row': lambda: x + row,
        'add_column': lambda: x + column,
        'select': lambda: torch.where(truth, x, y),
        'cast_to_i64': lambda: many.to(torch.int64),
        'cast_from_i64': lambda v=many.long(): v.to(torch.float32),
        'cast_from_u8': lambda v=many.byte(): v.to(torch.float32),
        'cast_to_bf16': lambda: x.to(torch.bfloat16),
        'argmax_rows': lambda: torch.argmax(x, 1),
        'argmax_columns': lambda: torch.argmax(x, 0),
        'all_finite': lambda: torch.isfinite(x).all(),
        'top_k': lambda: torch.topk(x, 8),
        'transpose_matrix': lambda v=f32(512, 512): v.t().contiguous(),
        'transpose_image': lambda: image.permute(0, 3, 1, 2).contiguous(),
        'transpose_heads': lambda v=f32(8, 128, 8, 64): v.permute(0, 2, 1, 3).contiguous(),
        'broadcast_to': lambda: row.expand(128, 1024).contiguous(),
        'concat': lambda: torch.cat((x, y), 1),
        'slice': lambda: x[:, 100:600].contiguous(),
        'pad': lambda: F.pad(image, (0, 0, 1, 1, 1, 1)),
        'gather': lambda: F.embedding(words, table),
        'gather_columns': lambda v=indices(512, end=1024): x.index_select(1, v),
        'gather_gradient': lambda v=f32(4096, 64): aten.embedding_dense_backward(v, words, 10000, -1, False),
        'one_hot': lambda v=indices(1024, end=128): F.one_hot(v, 128).float(),
        'softmax': lambda: torch.softmax(x, 1),
        'softmax_narrow': lambda: torch.softmax(narrow, 1),
        'log_softmax': lambda: torch.log_softmax(x, 1),
        'log_softmax_narrow': lambda: torch.log_softmax(narrow, 1),
        'softmax_gradient': lambda: aten._softmax_backward_data(x, log_p, 1, torch.float32),
        'log_softmax_gradient': lambda: aten._log_softmax_backward_data(x, log_p, 1, torch.float32),
        'sparse_softmax_cross_entropy': lambda: F.cross_entropy(x, labels, reduction='none'),
        'softmax_cross_entropy': lambda: F.cross_entropy(x, p, reduction='none'),
        'layer_norm': lambda: F.layer_norm(x, (1024,), row, row),
        'rms_norm': lambda: F.rms_norm(x, (1024,), row),
        'group_norm': lambda: F.group_norm(channels_first, 8, scale, scale),
        'batch_norm_inference': lambda v=positive(64): F.batch_norm(channels_first, scale, v, scale, scale),
        'max_pool2d': lambda: F.max_pool2d(channels_first, 2),
        'avg_pool2d': lambda: F.avg_pool2d(channels_first, 2),
        'matmul_dense': lambda: a @ b,
        'matmul_batches': lambda: square @ square,
        'matmul_one_row': lambda: wide[:1] @ wide,
        'matmul_one_column': lambda: wide @ wide[:, :1],
        'random_uniform': lambda: torch.rand(128, 1024),
        'random_normal': lambda: torch.randn(128, 1024),
        'random_truncated_normal': lambda v=f32(128, 1024): torch.nn.init.trunc_normal_(v),
        'dropout': lambda: F.dropout(x, 0.3, True),
    }


def function_cases():
    """Functions of ops, on the shapes of op_bench.cc."""
    x, y, near, above, row = f32(128, 1024), f32(128, 1024), f32(128, 1024, low=-0.9, high=0.9), positive(128, 1024), f32(1024)
    table, words, updates, image = f32(10000, 64), indices(4096, end=10000), f32(4096, 64), f32(8, 32, 32, 64)
    first, second, cube = indices(4096, end=100), indices(4096, end=100), f32(100, 100, 64)
    queries, keys, volume, truth = f32(8, 128, 4, 32), f32(8, 128, 4, 32), f32(2, 16, 16, 16, 16).permute(0, 4, 1, 2, 3), x > 0
    wide = words[:, None].expand(4096, 64).contiguous()
    cases = {name: (lambda f=f: f(x)) for name, f in {
        'relu6': F.relu6, 'selu': F.selu, 'mish': F.mish, 'hard_sigmoid': F.hardsigmoid, 'hard_swish': F.hardswish,
        'softsign': F.softsign, 'log_sigmoid': F.logsigmoid, 'is_nan': torch.isnan, 'is_inf': torch.isinf, 'tan': torch.tan,
        'sinh': torch.sinh, 'cosh': torch.cosh, 'atan': torch.atan}.items()}
    return cases | {
        'asin': lambda: torch.asin(near), 'acos': lambda: torch.acos(near), 'log2': lambda: torch.log2(above),
        'log10': lambda: torch.log10(above), 'clip': lambda: torch.clamp(x, -1, 1),
        'prelu': lambda: F.prelu(x, row), 'atan2': lambda: torch.atan2(x, y), 'logsumexp': lambda: torch.logsumexp(x, 1),
        'norm': lambda: torch.linalg.vector_norm(x, 2, 1), 'l2_normalize': lambda: F.normalize(x, dim=1),
        'reduce_any': lambda: torch.any(truth, 1),
        'bincount': lambda v=indices(16384, end=128): torch.bincount(v, minlength=128),
        'split': lambda: [part.contiguous() for part in torch.split(x, 256, 1)], 'stack': lambda: torch.stack((x, y), 1),
        'tile': lambda v=f32(128, 256): torch.tile(v, (1, 4)), 'roll': lambda: torch.roll(x, 100, 1),
        'reverse': lambda: torch.flip(x, (1,)), 'lower_triangle': lambda v=f32(8, 256, 256): torch.tril(v),
        'cumsum': lambda: torch.cumsum(x, 1), 'cumprod': lambda: torch.cumprod(x, 1),
        'sort': lambda: torch.sort(x, stable=True)[0], 'argsort': lambda: torch.argsort(x, stable=True),
        'gather_nd': lambda: cube[first, second], 'scatter_add': lambda: table.index_add(0, words, updates),
        'scatter_max': lambda: table.scatter_reduce(0, wide, updates, 'amax'),
        'scatter_replace': lambda: table.index_copy(0, words, updates),
        'einsum': lambda: torch.einsum('bqhd,bkhd->bhqk', queries, keys),
        'conv1d': lambda v=f32(8, 1024, 32).transpose(1, 2), w=f32(32, 32, 3): F.conv1d(v, w, padding=1),
        'conv2d_transpose': lambda v=f32(8, 16, 16, 32).permute(0, 3, 1, 2), w=f32(32, 32, 4, 4): F.conv_transpose2d(
            v, w, stride=2, padding=1),
        'conv3d': lambda w=f32(16, 16, 3, 3, 3): F.conv3d(volume, w, padding=1),
        'max_pool3d': lambda: F.max_pool3d(volume, 2),
        'resize2d': lambda v=image.permute(0, 3, 1, 2): F.interpolate(v, (64, 64), mode='bilinear'),
    }


def loss_cases():
    logits, labels = f32(16, 100, 30), torch.randint(1, 30, (16, 20))
    frames, counts = torch.full((16,), 100), torch.full((16,), 20)

    def ctc(x):
        return F.ctc_loss(F.log_softmax(x, -1).transpose(0, 1), labels, frames, counts)

    def gradient():
        x = logits.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(ctc(x), x)

    return {'loss_ctc': lambda: ctc(logits), 'loss_ctc_with_gradient': gradient}


def milliseconds(function):
    function()
    least, end = 1e30, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        least = min(least, 1e3 * (time.perf_counter() - start))
    return least


def bench(program, names):
    ran = subprocess.run([program, str(SECONDS), *names], check=True, stdout=subprocess.PIPE, text=True)
    return {name: float(ms) for name, ms in (line.split() for line in ran.stdout.splitlines())}


def main():
    torch.set_num_threads(1)
    own, peer, cases = {}, {}, make_cases() | function_cases() | loss_cases()
    with torch.no_grad():
        for _ in range(TURNS):
            for name, ms in bench(sys.argv[1], sys.argv[2:]).items():
                own[name] = min(own.get(name, 1e30), ms)
            for name in own.keys() & cases.keys():
                peer[name] = min(peer.get(name, 1e30), milliseconds(cases[name]))
    print(f'{"op":30} {"tutti us":>10} {"PyTorch us":>10}  PyTorch {torch.__version__} / tutti')
    for name in sorted(peer, key=lambda name: peer[name] / own[name]):
        print(f'{name:30} {1e3 * own[name]:10.1f} {1e3 * peer[name]:10.1f}  {peer[name] / own[name]:.2f}')
    print('not in PyTorch:', ', '.join(sorted(own.keys() - peer.keys())) or 'none')


main()
