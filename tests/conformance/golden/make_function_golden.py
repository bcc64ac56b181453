#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_function_golden.py DIRECTORY: writes functions.json, what PyTorch and NumPy make of some numbers.

Each case is a function of lib/nn/nn.yaml with its attributes and inputs, its results, and the gradients for some inputs of
the sum of result * upstream over all results of floating point. Inputs are of single precision, everything is computed
from them in double precision. Odd shapes, axes of length 1, ties, zeros, infinities, NaN and magnitudes of 1e4 are there.
"rows" says which inputs and results have the rows of a batch as their first axis; without it a case cannot be computed on
parts of a batch.

Needs PyTorch; the file is kept in the tree, so building and testing do not.
"""
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

RANDOM = np.random.default_rng(20261129)
TORCH, NUMPY = f'PyTorch {torch.__version__}', f'NumPy {np.__version__}'
NAMES = {torch.float64: 'f32', torch.int32: 'i32', torch.int64: 'i64', torch.bool: 'boolean'}
INF, NAN = math.inf, math.nan
DONE = []


# ---- numbers ----


def single(array):
    return torch.from_numpy(np.asarray(array, np.float32).astype(np.float64))


def normal(*shape, size=2.0):
    return single(size * RANDOM.standard_normal(shape))


def uniform(low, high, *shape):
    return single(RANDOM.uniform(low, high, shape))


def integers(low, high, *shape):
    return torch.from_numpy(RANDOM.integers(low, high, shape).astype(np.int32))


def bits(*shape):
    return torch.from_numpy(RANDOM.integers(0, 2, shape).astype(bool))


def distinct(*shape):
    """Numbers of which no two are close."""
    count = int(np.prod(shape))
    return single(RANDOM.permutation(np.linspace(-3, 3, count) + 0.01 * RANDOM.random(count)).reshape(shape))


# ---- cases ----


def written(number):
    if math.isnan(number):
        return 'NaN'
    return number if math.isfinite(number) else 'Infinity' if number > 0 else '-Infinity'


def tensor(value):
    flat = value.detach().reshape(-1).tolist()
    values = [written(float(np.float32(v))) for v in flat] if value.dtype == torch.float64 else [int(v) for v in flat]
    return {'dtype': NAMES[value.dtype], 'dims': list(value.shape), 'values': values}


def attribute(value):
    if isinstance(value, bool):
        return {'bool': value}
    if isinstance(value, str):
        return {'string': value}
    if isinstance(value, list):
        return {'ints': value}
    return {'f64': value} if isinstance(value, float) else {'i64': value}


def case(op, f, inputs, rows=None, absolute=1e-6, wrt=None, made_by=TORCH, **attributes):
    """`f` takes the inputs and gives the results. `rows`: the inputs and the results with rows; the gradient is for `wrt`, all
    inputs of floating point unless it says so; none where it is empty."""
    inputs = [one.clone() for one in inputs]
    given = [i for i, one in enumerate(inputs) if one.dtype == torch.float64] if wrt is None else list(wrt)
    for i in given:
        inputs[i].requires_grad_()
    results = f(*inputs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    upstreams = [normal(*one.shape, size=1.0) for one in results if given and one.dtype == torch.float64]
    if upstreams:
        weighed = [one for one in results if one.dtype == torch.float64]
        sum((one * u).sum() for one, u in zip(weighed, upstreams)).backward()
    done = {'op': op, 'made_by': made_by, 'attributes': {name.rstrip('_'): attribute(value) for name, value in attributes.items()},
            'inputs': [tensor(one) for one in inputs], 'outputs': [tensor(one) for one in results],
            'upstreams': [tensor(one) for one in upstreams], 'relative': 1e-5, 'absolute': absolute}
    if upstreams:
        done['wrt'] = given
        done['gradients'] = [tensor(torch.zeros_like(inputs[i]) if inputs[i].grad is None else inputs[i].grad) for i in given]
    if rows is not None:
        done['rows'] = {'inputs': list(rows[0]), 'outputs': list(rows[1])}
    DONE.append(done)


ROWS = ((0,), (0,))
SHAPES = [(5, 3), (1,), (7, 1), (3, 2, 2), (1, 1)]


# ---- element by element ----


def each(op, f, make, absolute=1e-6, **attributes):
    for shape in SHAPES:
        case(op, f, [make(shape)], ROWS, absolute, **attributes)


def elementwise():
    wide = [-1e4, -100.0, -5.0, -1.0, -1e-3, 1e-4, 0.5, 3.5, 7.0, 100.0, 1e4]
    for op, f in (('relu6', F.relu6), ('selu', F.selu), ('mish', F.mish), ('hard_sigmoid', F.hardsigmoid),
                  ('hard_swish', F.hardswish), ('softsign', F.softsign), ('log_sigmoid', F.logsigmoid)):
        each(op, f, lambda shape: normal(*shape, size=4.0))
        case(op, f, [single(wide)], ROWS)
        case(op, f, [single([NAN, 1.0])], wrt=())
    case('relu6', F.relu6, [single([0.0, 6.0, -INF, INF])], ROWS)
    case('softsign', F.softsign, [single([1e-6, 1e4, -1e6])], ROWS, absolute=1e-16)
    for low, high in ((-1.0, 2.0), (0.0, 0.5), (1.0, 1.0)):
        each('clip', lambda x: torch.clamp(x, low, high), lambda shape: normal(*shape), low=low, high=high)
    case('clip', lambda x: torch.clamp(x, -1, 2), [single([-1.0, 2.0, -1e4, 1e4, INF, -INF])], ROWS, low=-1.0, high=2.0)
    case('clip', lambda x: torch.clamp(x, -1, 2), [single([NAN, 1.0])], wrt=(), low=-1.0, high=2.0)
    case('clip', lambda x: torch.clamp(x, -1, 2), [integers(-9, 9, 11)], ROWS, low=-1.5, high=2.5)
    for shape, slope in (((5, 3), (3,)), ((5, 3), ()), ((4, 2, 3), (3,)), ((1, 1), (1,)), ((3, 2, 2), (2, 1))):
        def prelu(x, s):
            return torch.where(x > 0, x, s * x)
        case('prelu', prelu, [normal(*shape), normal(*slope, size=0.5)], ROWS)
    case('prelu', prelu, [single([0.0, -1e4, 1e4]), single([0.25])], ROWS)
    tested = single([[NAN, INF, -INF], [0.0, -1e4, 3e38]])
    case('is_nan', torch.isnan, [tested], ROWS, wrt=())
    case('is_inf', torch.isinf, [tested], ROWS, wrt=())
    for op, f in (('log2', torch.log2), ('log10', torch.log10)):
        each(op, f, lambda shape: uniform(0.1, 20, *shape))
        case(op, f, [single([1e-30, 1e4, 1e30, 1.0])], ROWS)
        case(op, f, [single([0.0, INF, -1.0, NAN])], wrt=())


def angles():
    small = [0.0, 1e-20, -1e-10, 1e-5, -1e-3, 0.01]
    for op, f in (('tan', torch.tan), ('sinh', torch.sinh), ('cosh', torch.cosh), ('atan', torch.atan)):
        each(op, f, lambda shape: uniform(-1.4, 1.4, *shape))
        case(op, f, [single(small)], ROWS, absolute=1e-25)
        case(op, f, [single([NAN, 1.0])], wrt=())
    case('tan', torch.tan, [single([2.0, 4.0, -7.0, 100.0, 1.57, 1e4])], ROWS)
    for op, f in (('sinh', torch.sinh), ('cosh', torch.cosh)):
        case(op, f, [single([-88.0, -20.0, -3.0, 3.0, 20.0, 88.5])], ROWS)
        case(op, f, [single([-1e4, 1e4, INF, -INF])], wrt=())
    case('atan', torch.atan, [single([-1e4, -2.5, -1.0, -0.42, 0.41, 0.42, 1.0, 1.5, 1e4, 1e20])], ROWS)
    case('atan', torch.atan, [single([INF, -INF])], ROWS)
    for op, f in (('asin', torch.asin), ('acos', torch.acos)):
        each(op, f, lambda shape: uniform(-0.999, 0.999, *shape))
        case(op, f, [single(small)], ROWS, absolute=1e-25)
        case(op, f, [single([0.99999, -0.99999, 0.7071, -0.7072])], ROWS)
        case(op, f, [single([1.0, -1.0, 1.5, -1e4, NAN])], wrt=())
    for y, x in (((5, 3), (5, 3)), ((7,), (7,)), ((1, 1), (1, 1)), ((3, 2, 2), (3, 2, 2))):
        case('atan2', torch.atan2, [normal(*y), normal(*x)], ((0, 1), (0,)))
    case('atan2', torch.atan2, [normal(5, 3), normal(3)], ROWS)
    case('atan2', torch.atan2, [normal(5, 1), normal(5, 4)], ((0, 1), (0,)))
    case('atan2', torch.atan2, [single([1e-10, 1e4, -1e4, 1e-20, 1.0, -1.0, 1e15]), single([1.0, 1e-4, -1e4, -1e-20, 0.0, 0.0, 1.0])],
         ((0, 1), (0,)), absolute=1e-12)
    zeros = [0.0, -0.0, 0.0, -0.0, INF, INF, -INF, 1.0, -1.0, NAN, 1.0]
    case('atan2', torch.atan2, [single(zeros), single([0.0, 0.0, -0.0, -0.0, INF, -INF, -INF, -INF, INF, 1.0, NAN])], wrt=())


# ---- along axes ----


def reduced(f, axes, keep):
    return lambda x: f(x, tuple(axes) if axes else tuple(range(x.dim())), keep)


def reductions():
    def results_of(axes, is_sum=False):
        """A maximum over rows is no loss of parts of a batch."""
        over_rows = not axes or 0 in axes
        return None if over_rows and not is_sum else ((0,), () if over_rows else (0,))
    choices = [((5, 3), [1], False), ((4, 3, 2), [-1, 1], True), ((5, 3), [], False), ((5, 1), [0], False), ((1, 4), [1], True),
               ((7,), [], True), ((3, 2, 4), [0, 2], False)]
    norms = {'l1': 1, 'l2': 2, 'infinity': INF}
    for shape, axes, keep in choices:
        given = {'axes': axes, 'keep_dims': keep}
        case('logsumexp', reduced(torch.logsumexp, axes, keep), [normal(*shape)], results_of(axes), **given)
        for order, p in norms.items():
            def norm(x, dims, keep_dims, p=p):
                return torch.linalg.vector_norm(x, p, dims, keep_dims)
            case('norm', reduced(norm, axes, keep), [distinct(*shape)], results_of(axes, order != 'infinity'), order=order,
                 **given)
        case('reduce_any', reduced(torch.any, axes, keep), [bits(*shape)], results_of(axes), **given)
        case('reduce_all', reduced(torch.all, axes, keep), [bits(*shape)], results_of(axes), **given)
    case('reduce_any', lambda x: torch.any(x, 1), [torch.zeros((3, 2), dtype=torch.bool)], ROWS, axes=[1])
    case('reduce_all', lambda x: torch.all(x, 1), [torch.ones((3, 2), dtype=torch.bool)], ROWS, axes=[1])
    far = single([[1e4, 9999.0, -1e4], [-1e4, -1e4, -1e4], [0.0, -INF, 1.0], [88.0, 89.0, 90.0]])
    case('logsumexp', lambda x: torch.logsumexp(x, 1), [far], ROWS, axes=[1])
    case('logsumexp', lambda x: torch.logsumexp(x, (0, 1)), [far])
    case('logsumexp', lambda x: torch.logsumexp(x, 1), [single([[INF, 1.0], [-INF, -INF], [INF, -INF], [NAN, 1.0]])], wrt=(), axes=[1])
    zeros = single([[0.0, 0.0], [3.0, -4.0], [0.0, 1e-3]])
    for order, p in norms.items():
        case('norm', lambda x: torch.linalg.vector_norm(x, p, 1), [zeros], ROWS, order=order, axes=[1])
        case('norm', lambda x: torch.linalg.vector_norm(x, p, 1), [single([[NAN, 0.0], [INF, 1.0]])], wrt=(), order=order, axes=[1])
    case('norm', lambda x: torch.linalg.vector_norm(x, INF, 1), [single([[2.0, -2.0, 1.0], [1e4, 1e4, 1e4]])], ROWS,
         order='infinity', axes=[1])
    for shape, axes in (((5, 3), [-1]), ((3, 2, 4), [1, 2]), ((1, 1), [1])):
        case('l2_normalize', lambda x: x * torch.rsqrt(torch.clamp((x * x).sum(tuple(axes), keepdim=True), min=1e-12)),
             [normal(*shape)], ROWS, made_by='definition, in ' + TORCH, axes=axes)
    case('l2_normalize', lambda x: x * torch.rsqrt(torch.clamp((x * x).sum(-1, keepdim=True), min=0.5)),
         [single([[0.0, 0.0], [0.1, 0.2], [1e4, -1e4]])], ROWS, made_by='definition, in ' + TORCH, epsilon=0.5)


def counts():
    def bincount(x, *weights, bins, by_row=False):
        known = F.one_hot(torch.where((x >= 0) & (x < bins), x, bins).long(), bins + 1)[..., :bins]
        values = known if not weights else known * weights[0][..., None]
        axes = tuple(range(1 if by_row else 0, x.dim()))
        return values.sum(axes) if axes else values
    for shape in ((7,), (5, 3), (1,), (3, 2, 2)):
        x = integers(-1, 6, *shape)
        for by_row in (False, True):
            given = {'bins': 5, 'by_row': by_row}
            rows = ((0,), (0,) if by_row else ())
            case('bincount', lambda x: bincount(x, **given), [x], rows, **given)
            case('bincount', lambda x, w: bincount(x, w, **given), [x, normal(*shape)], ((0, 1), rows[1]), **given)


# ---- in other places ----


def arrangement():
    for x in (normal(5, 6), integers(-9, 9, 5, 6), bits(5, 6)):
        case('split', lambda x: torch.split(x, 2, 1), [x], ((0,), (0, 1, 2)), parts=3, axis=1)
    case('split', lambda x: torch.split(x, [1, 4, 1], -1), [normal(5, 6)], ((0,), (0, 1, 2)), parts=3, axis=-1, sizes=[1, 4, 1])
    case('split', lambda x: torch.split(x, 2), [normal(6)], parts=3)
    case('split', lambda x: torch.split(x, 1, 1), [normal(3, 1, 2)], ((0,), (0,)), parts=1, axis=1)
    for axis in (1, 2, -1):
        case('stack', lambda *x: torch.stack(x, axis), [normal(5, 3), normal(5, 3), normal(5, 3)], ((0, 1, 2), (0,)), axis=axis)
    case('stack', lambda *x: torch.stack(x), [normal(3), normal(3)])
    case('stack', lambda *x: torch.stack(x, 1), [integers(0, 9, 4)], ROWS, axis=1)
    for axis, shape in ((1, (5, 3)), (-1, (4, 1, 2)), (1, (7, 1))):
        count = shape[axis]
        case('unstack', lambda x: torch.unbind(x, axis), [normal(*shape)], ((0,), tuple(range(count))), length=count, axis=axis)
    case('unstack', torch.unbind, [normal(3, 2)], length=3)
    for shape, multiples in (((5, 3), [1, 2]), ((3, 1, 2), [1, 4, 3]), ((7,), [1]), ((1, 1), [1, 5])):
        case('tile', lambda x: torch.tile(x, multiples), [normal(*shape)], ROWS, multiples=multiples)
    case('tile', lambda x: torch.tile(x, (2, 3)), [integers(0, 9, 2, 3)], multiples=[2, 3])
    for shape, shifts, axes in (((5, 4), [1], [1]), ((3, 5, 4), [-2, 7], [1, -1]), ((7, 1), [3], [1]), ((4, 3), [0], [1])):
        case('roll', lambda x: torch.roll(x, shifts, axes), [normal(*shape)], ROWS, shifts=shifts, axes=axes)
    case('roll', lambda x: torch.roll(x, 2, 0), [integers(0, 9, 5, 2)], shifts=[2], axes=[0])
    for shape, axes in (((5, 4), [1]), ((3, 5, 4), [1, -1]), ((7, 1), [1])):
        case('reverse', lambda x: torch.flip(x, axes), [normal(*shape)], ROWS, axes=axes)
    case('reverse', lambda x: torch.flip(x, (0, 1)), [bits(5, 3)], axes=[0, 1])


def bands():
    def band_part(x, lower=-1, upper=-1):
        rows, columns = torch.arange(x.shape[-2])[:, None], torch.arange(x.shape[-1])[None]
        keep = ((lower < 0) | (rows - columns <= lower)) & ((upper < 0) | (columns - rows <= upper))
        return torch.where(keep, x, torch.zeros((), dtype=x.dtype))
    for shape in ((3, 5, 4), (2, 1, 3), (4, 3, 3)):
        for lower, upper in ((-1, 0), (0, -1), (1, 2), (0, 0), (-1, -1)):
            case('band_part', lambda x: band_part(x, lower, upper), [normal(*shape)], ROWS, made_by='definition, in ' + TORCH,
                 lower=lower, upper=upper)
        for diagonal in (0, -1, 2):
            case('lower_triangle', lambda x: torch.tril(x, diagonal), [normal(*shape)], ROWS, diagonal=diagonal)
            case('upper_triangle', lambda x: torch.triu(x, diagonal), [normal(*shape)], ROWS, diagonal=diagonal)
    case('lower_triangle', torch.tril, [single([[NAN, INF], [1.0, NAN]])], wrt=())
    for rows, columns, lower, upper in ((4, 5, -1, 0), (5, 4, 1, 1), (1, 3, -1, -1), (3, 1, 0, -1)):
        case('band_mask', lambda: band_part(torch.ones((rows, columns), dtype=torch.bool), lower, upper), [],
             made_by='definition, in ' + TORCH, rows_=rows, columns=columns, lower=lower, upper=upper)


def running():
    def shifted(x, axis, neutral, backward):
        fill = torch.full_like(x.narrow(axis, 0, 1), neutral)
        rest = x.narrow(axis, 1 if backward else 0, x.shape[axis] - 1)
        return torch.cat([rest, fill] if backward else [fill, rest], axis)

    def of(f, neutral, axis, exclusive, backward):
        def run(x):
            x = shifted(x, axis, neutral, backward) if exclusive else x
            return torch.flip(f(torch.flip(x, (axis,)), axis), (axis,)) if backward else f(x, axis)
        return run
    turns = [((5, 7), 1, False, False), ((5, 4), -1, True, False), ((3, 6, 2), 1, False, True), ((4, 9), 1, True, True),
             ((7, 1), 1, False, False), ((6, 1), 1, True, False), ((2, 33), 1, False, False)]
    for op, f, neutral, size in (('cumsum', torch.cumsum, 0.0, 2.0), ('cumprod', torch.cumprod, 1.0, 1.0)):
        for shape, axis, exclusive, backward in turns:
            case(op, of(f, neutral, axis, exclusive, backward), [normal(*shape, size=size)], ROWS, axis=axis, exclusive=exclusive,
                 backward=backward)
        case(op, lambda x: f(x, 0), [normal(8)])
        case(op, lambda x: f(x, 1, dtype=torch.int32), [integers(-3, 3, 5, 6)], ROWS, axis=1)
        case(op, lambda x: f(x, 1), [single([[1.0, NAN, 2.0], [INF, 1.0, -1.0], [0.5, 0.25, 1e4]])], wrt=(), axis=1)
    case('cumprod', lambda x: torch.cumprod(x, 1), [single([[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 1.0, 2.0]])], ROWS, axis=1)


def sorting():
    for shape, axis, descending in (((5, 7), -1, False), ((5, 4), 1, True), ((3, 6, 2), 1, False), ((7, 1), 1, True),
                                    ((1, 3, 2), 1, True)):
        given = {'axis': axis, 'descending': descending}
        case('sort', lambda x: torch.sort(x, axis, descending).values, [distinct(*shape)], ROWS, **given)
        case('argsort', lambda x: torch.sort(x, axis, descending).indices, [distinct(*shape)], ROWS, wrt=(), **given)
        ties = integers(-3, 3, *shape)
        case('sort', lambda x: torch.sort(x, axis, descending).values, [ties], ROWS, **given)
        case('argsort', lambda x: torch.sort(x, stable=True, dim=axis, descending=descending).indices, [ties], ROWS, **given)
    odd = np.asarray([[3.0, NAN, -INF, 3.0, INF, NAN, -1e4, 0.0]], np.float32)
    order = np.argsort(odd, 1, kind='stable')
    falling = np.argsort(-odd, 1, kind='stable')
    for descending, indices in ((False, order), (True, falling)):
        values = single(np.take_along_axis(odd, indices, 1))
        case('sort', lambda x: values, [single(odd)], ROWS, wrt=(), made_by=NUMPY, descending=descending)
        case('argsort', lambda x: torch.from_numpy(indices), [single(odd)], ROWS, wrt=(), made_by=NUMPY, descending=descending)


def indexing():
    for params, depth, shape in (((4, 3, 2), 2, (5,)), ((4, 3), 2, (3, 2)), ((5, 2), 1, (7,)), ((1, 3), 2, (1,)), ((3, 2, 2), 3, (6,))):
        indices = torch.stack([integers(0, params[axis], *shape) for axis in range(depth)], -1)
        case('gather_nd', lambda p, i: p[tuple(i.long().unbind(-1))], [normal(*params), indices], ((1,), (0,)))
    for x, shape in (((5, 3), (4,)), ((4,), (7,)), ((6, 2, 2), (3, 2)), ((3, 1), (1,))):
        indices = integers(0, x[0], *shape)
        updates = distinct(*shape, *x[1:])

        def added(x, u):
            return x.index_add(0, indices.reshape(-1).long(), u.reshape(-1, *x.shape[1:]))

        def largest(x, u):
            flat = indices.reshape(-1).long().reshape((-1,) + (1,) * (x.dim() - 1)).expand((indices.numel(),) + x.shape[1:])
            return x.scatter_reduce(0, flat, u.reshape(-1, *x.shape[1:]), 'amax')

        def replaced(x, u):
            y = list(x.unbind(0))
            for index, row in zip(indices.reshape(-1).tolist(), u.reshape(-1, *x.shape[1:]).unbind(0)):
                y[index] = row
            return torch.stack(y)
        for op, f in (('scatter_add', added), ('scatter_max', largest), ('scatter_replace', replaced)):
            start = normal(*x)
            inputs = [start, indices, updates]
            case(op, lambda a, i, u: f(a, u), inputs)
    case('scatter_replace', lambda a, i, u: torch.stack([u[2], a[1], u[1]]), [normal(3, 2), torch.tensor([0, 2, 0], dtype=torch.int32),
                                                                            single([[NAN, INF], [1.0, 2.0], [3.0, 4.0]])], wrt=())
    case('scatter_max', lambda a, i, u: torch.tensor([NAN, 5.0, 1.0], dtype=torch.float64), [single([0.0, 5.0, -1.0]),
         torch.tensor([0, 2, 0, 1, 2], dtype=torch.int32), single([NAN, 1.0, 3.0, 4.0, -INF])], wrt=())


# ---- products and windows ----


def einsums():
    rows_first = ((0,), (0,))
    for equation, shapes, rows in (
            ('bi,io->bo', [(5, 3), (3, 4)], rows_first), ('bij,bjk->bik', [(3, 2, 4), (3, 4, 5)], ((0, 1), (0,))),
            ('bqhd,bkhd->bhqk', [(3, 4, 2, 3), (3, 5, 2, 3)], ((0, 1), (0,))), ('bi,bo->io', [(5, 3), (5, 2)], ((0, 1), ())),
            ('bij,bjk->k', [(3, 2, 4), (3, 4, 2)], ((0, 1), ())), ('bi,j->bij', [(5, 3), (4,)], rows_first),
            ('bii->bi', [(5, 3, 3)], ROWS), ('bii->b', [(5, 3, 3)], ROWS), ('bij->bji', [(3, 2, 4)], ROWS), ('bij->i', [(3, 2, 4)], ((0,), ())),
            ('b...,...->b...', [(5, 2, 3), (2, 3)], rows_first), ('b...i,io->b...o', [(3, 2, 4, 3), (3, 2)], rows_first),
            ('bi,bi->b', [(7, 3), (7, 3)], ((0, 1), (0,))), ('bi,bi,i->b', [(4, 3), (4, 3), (3,)], ((0, 1), (0,))),
            ('bi,ij,jk->bk', [(5, 3), (3, 2), (2, 4)], rows_first), ('i,i', [(4,), (4,)], None), ('ij,jk', [(2, 3), (3, 4)], None),
            ('ba', [(2, 3)], None), ('...ij,...jk->...ik', [(4, 1, 2, 3), (5, 3, 2)], None), ('bij,bj->bi', [(1, 1, 1), (1, 1)], ((0, 1), (0,))),
            ('iij,jk->ik', [(3, 3, 2), (2, 1)], None), ('b i , i -> b', [(5, 3), (3,)], rows_first), ('ijij->ij', [(2, 3, 2, 3)], None),
            ('bhi,hio->bho', [(5, 2, 3), (2, 3, 4)], rows_first), ('...,...', [(3, 1), (1, 4)], None)):
        case('einsum', lambda *x: torch.einsum(equation, *x), [normal(*shape, size=1.0) for shape in shapes], rows, equation=equation)


def windows():
    def padded(x, padding, size, stride, pads, value=0.0):
        length = x.shape[1]
        if padding == 'same':
            total = max((math.ceil(length / stride) - 1) * stride + size - length, 0)
            pads = (total // 2, total - total // 2)
        return x if padding == 'valid' else F.pad(x, (0, 0) + tuple(pads), value=value)
    turns = [((3, 7, 4), 3, 1, 1, 'same', [0, 0]), ((5, 8, 2), 2, 3, 1, 'valid', [0, 0]), ((2, 9, 4), 3, 1, 2, 'explicit', [4, 0]),
             ((1, 1, 2), 1, 1, 1, 'same', [0, 0]), ((3, 6, 2), 4, 2, 1, 'same', [0, 0])]
    for shape, size, stride, dilation, padding, pads in turns:
        for groups in (1, 2):
            def conv(x, kernel, *bias):
                x = padded(x, padding, (size - 1) * dilation + 1, stride, pads)
                y = F.conv1d(x.transpose(1, 2), kernel.permute(2, 1, 0), *bias, stride=stride, dilation=dilation, groups=groups)
                return y.transpose(1, 2)
            inputs = [normal(*shape), normal(size, shape[2] // groups, 6, size=0.5)] + ([normal(6)] if groups == 1 else [])
            case('conv1d', conv, inputs, ROWS, 1e-5, stride=stride, dilation=dilation, padding=padding, pads=pads, groups=groups)
    for shape, window, stride, padding, pads in (((3, 7, 4), 2, 0, 'valid', [0, 0]), ((5, 8, 1), 3, 2, 'same', [0, 0]),
                                                 ((2, 6, 3), 4, 3, 'explicit', [1, 2]), ((1, 1, 1), 1, 0, 'same', [0, 0])):
        step = stride or window

        def largest(x):
            x = padded(x, padding, window, step, pads, -INF)
            return F.max_pool1d(x.transpose(1, 2), window, step).transpose(1, 2)

        def mean(x, whole=False):
            ones = padded(torch.ones_like(x), padding, window, step, pads)
            sums = F.avg_pool1d(padded(x, padding, window, step, pads).transpose(1, 2), window, step)
            return (sums if whole else sums / F.avg_pool1d(ones.transpose(1, 2), window, step)).transpose(1, 2)
        given = {'window': window, 'stride': stride, 'padding': padding, 'pads': pads}
        case('max_pool1d', largest, [distinct(*shape)], ROWS, **given)
        case('avg_pool1d', mean, [normal(*shape)], ROWS, **given)
        case('avg_pool1d', lambda x: mean(x, True), [normal(*shape)], ROWS, count_include_padding=True, **given)


def transposed():
    def cut(y, padding, sizes, strides, pads):
        """The result without what the padding cuts off; y is that of no padding."""
        for i, (size, stride) in enumerate(zip(sizes, strides)):
            begin, end = pads[2 * i:2 * i + 2]
            if padding == 'same':
                whole = size * stride
                total = max(y.shape[1 + i] - whole, 0)
                begin, end = total // 2, total - total // 2
                if y.shape[1 + i] < whole:
                    y = F.pad(y, (0, 0) * (len(sizes) - i) + (0, whole - y.shape[1 + i]))
                    begin = end = 0
            if padding != 'valid':
                y = y.narrow(1 + i, begin, y.shape[1 + i] - begin - end)
        return y
    for shape, size, stride, dilation, padding, pads, extra, groups in (
            ((3, 5, 4), 3, 2, 1, 'same', [0, 0], 0, 1), ((5, 4, 2), 2, 3, 1, 'same', [0, 0], 0, 1), ((2, 4, 3), 3, 1, 2, 'valid', [0, 0], 0, 1),
            ((3, 5, 4), 3, 2, 1, 'explicit', [1, 0], 1, 2), ((1, 1, 2), 1, 1, 1, 'same', [0, 0], 0, 2)):
        filters = 6

        def conv(x, kernel, *bias):
            y = F.conv_transpose1d(x.transpose(1, 2), kernel_of(kernel), None, stride, 0, extra, groups, dilation).transpose(1, 2)
            return cut(y, padding, shape[1:2], [stride], pads) + (bias[0] if bias else 0)

        def kernel_of(kernel):
            # [size, filters / groups, channels] as PyTorch's [channels, filters / groups, size].
            return kernel.permute(2, 1, 0)
        inputs = [normal(*shape), normal(size, filters // groups, shape[2], size=0.5)] + ([normal(filters)] if groups == 1 else [])
        case('conv1d_transpose', conv, inputs, ROWS, 1e-5, stride=stride, dilation=dilation, padding=padding, pads=pads, extra=extra, groups=groups)
    for shape, size, stride, dilation, padding, pads, extra, groups in (
            ((2, 3, 5, 4), [3, 2], [2, 1], [1, 1], 'same', [0] * 4, [0, 0], 1), ((3, 2, 3, 2), [2, 3], [3, 2], [1, 2], 'valid', [0] * 4, [1, 1], 1),
            ((2, 4, 3, 4), [3, 3], [2, 2], [1, 1], 'explicit', [1, 0, 0, 2], [0, 1], 2), ((1, 1, 1, 1), [1, 1], [1, 1], [1, 1], 'same', [0] * 4, [0, 0], 1)):
        def conv2d(x, kernel, *bias):
            y = F.conv_transpose2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), None, stride, 0, extra, groups, dilation)
            return cut(y.permute(0, 2, 3, 1), padding, shape[1:3], stride, pads) + (bias[0] if bias else 0)
        inputs = [normal(*shape), normal(*size, 4 // groups, shape[3], size=0.5)] + ([normal(4)] if groups == 1 else [])
        case('conv2d_transpose', conv2d, inputs, ROWS, 1e-5, stride=stride, dilation=dilation, padding=padding, pads=pads, extra=extra, groups=groups)


def volumes():
    def padded(x, padding, extents, strides, pads, value=0.0):
        """As the images of PyTorch, [rows, channels, depth, height, width]."""
        x, around = x.permute(0, 4, 1, 2, 3), []
        for i, (extent, stride) in enumerate(zip(extents, strides)):
            length = x.shape[2 + i]
            total = max((math.ceil(length / stride) - 1) * stride + extent - length, 0)
            pair = {'same': [total // 2, total - total // 2], 'valid': [0, 0], 'explicit': pads[2 * i:2 * i + 2]}[padding]
            around = pair + around
        return F.pad(x, around, value=value)

    def back(y):
        return y.permute(0, 2, 3, 4, 1)
    for shape, size, stride, dilation, padding, pads, groups in (
            ((2, 4, 5, 3, 2), [3, 2, 3], [1, 2, 1], [1, 1, 1], 'same', [0] * 6, 1), ((3, 5, 4, 4, 2), [2, 3, 1], [2, 1, 3], [2, 1, 1], 'valid', [0] * 6, 2),
            ((2, 3, 3, 4, 4), [2, 2, 2], [1, 1, 2], [1, 1, 2], 'explicit', [1, 0, 0, 2, 1, 1], 1), ((1, 1, 1, 1, 1), [1, 1, 1], [1, 1, 1], [1, 1, 1], 'same', [0] * 6, 1)):
        def conv3d(x, kernel, *bias):
            extents = [(s - 1) * d + 1 for s, d in zip(size, dilation)]
            return back(F.conv3d(padded(x, padding, extents, stride, pads), kernel.permute(4, 3, 0, 1, 2), *bias, stride=stride,
                                 dilation=dilation, groups=groups))
        inputs = [normal(*shape), normal(*size, shape[4] // groups, 4, size=0.5)] + ([normal(4)] if groups == 1 else [])
        case('conv3d', conv3d, inputs, ROWS, 1e-5, stride=stride, dilation=dilation, padding=padding, pads=pads, groups=groups)
    for shape, window, stride, padding, pads in (
            ((2, 4, 5, 3, 2), [2, 2, 2], [0, 0, 0], 'valid', [0] * 6), ((3, 5, 4, 4, 1), [3, 2, 3], [2, 1, 2], 'same', [0] * 6),
            ((2, 3, 3, 4, 2), [2, 3, 2], [1, 2, 2], 'explicit', [1, 0, 1, 1, 0, 1]), ((1, 1, 1, 1, 1), [1, 1, 1], [0, 0, 0], 'same', [0] * 6)):
        step = [s or w for s, w in zip(stride, window)]

        def largest(x):
            return back(F.max_pool3d(padded(x, padding, window, step, pads, -INF), window, step))

        def average(x, whole=False):
            sums = F.avg_pool3d(padded(x, padding, window, step, pads), window, step)
            return back(sums if whole else sums / F.avg_pool3d(padded(torch.ones_like(x), padding, window, step, pads), window, step))
        given = {'window': window, 'stride': stride, 'padding': padding, 'pads': pads}
        case('max_pool3d', largest, [distinct(*shape)], ROWS, **given)
        case('avg_pool3d', average, [normal(*shape)], ROWS, **given)
        case('avg_pool3d', lambda x: average(x, True), [normal(*shape)], ROWS, count_include_padding=True, **given)


def resizing():
    for shape, size in (((3, 4, 5, 2), [7, 3]), ((2, 3, 3, 1), [6, 9]), ((5, 1, 4, 3), [3, 4]), ((1, 5, 7, 2), [1, 1]), ((2, 2, 2, 1), [2, 2])):
        def resized(x, mode, **options):
            return F.interpolate(x.permute(0, 3, 1, 2), size, mode=mode, **options).permute(0, 2, 3, 1)
        case('resize2d', lambda x: resized(x, 'bilinear', align_corners=False), [normal(*shape)], ROWS, size=size, method='bilinear')
        case('resize2d', lambda x: resized(x, 'nearest-exact'), [normal(*shape)], ROWS, size=size, method='nearest')


def transposed_volumes():
    for shape, size, stride, dilation, padding, pads, extra, groups in (
            ((2, 3, 2, 3, 4), [3, 2, 3], [2, 1, 2], [1, 1, 1], 'same', [0] * 6, [0] * 3, 1),
            ((3, 2, 3, 2, 2), [1, 2, 2], [3, 2, 1], [1, 1, 2], 'same', [0] * 6, [0] * 3, 2),
            ((2, 3, 2, 2, 4), [2, 3, 1], [3, 2, 2], [2, 1, 1], 'valid', [0] * 6, [2, 1, 0], 1),
            ((2, 4, 3, 2, 2), [3, 2, 2], [1, 2, 2], [2, 1, 1], 'explicit', [2, 1, 0, 1, 1, 0], [0, 1, 1], 2),
            ((1, 1, 1, 1, 1), [1, 1, 1], [1, 1, 1], [1, 1, 1], 'same', [0] * 6, [0] * 3, 1)):
        def conv(x, kernel, *bias):
            weight = kernel.permute(4, 3, 0, 1, 2)
            y = F.conv_transpose3d(x.permute(0, 4, 1, 2, 3), weight, None, stride, 0, extra, groups, dilation).permute(0, 2, 3, 4, 1)
            for i in range(3):
                begin, end, length = pads[2 * i], pads[2 * i + 1], y.shape[1 + i]
                if padding == 'same':
                    whole = shape[1 + i] * stride[i]
                    y = F.pad(y, (0, 0) * (3 - i) + (0, max(whole - length, 0)))
                    begin, end = max(length - whole, 0) // 2, max(length - whole, 0) - max(length - whole, 0) // 2
                y = y.narrow(1 + i, begin, y.shape[1 + i] - begin - end)
            return y + (bias[0] if bias else 0)
        inputs = [normal(*shape), normal(*size, 4 // groups, shape[4], size=0.5)] + ([normal(4)] if groups == 1 else [])
        case('conv3d_transpose', conv, inputs, ROWS, 1e-5, stride=stride, dilation=dilation, padding=padding, pads=pads, extra=extra,
             groups=groups)


GROUPS = (elementwise, angles, reductions, counts, arrangement, bands, running, sorting, indexing, einsums, windows, transposed, volumes,
          resizing, transposed_volumes)


def main(folder):
    for group in GROUPS:
        group()
    with open(os.path.join(folder, 'functions.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in DONE) + '\n]\n')
    print(f'{len(DONE)} cases of {len({one["op"] for one in DONE})} functions')


if __name__ == '__main__':
    main(sys.argv[1])
