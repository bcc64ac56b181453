#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_golden.py DIRECTORY: writes the golden files of the backend conformance suite.

Every op of lib/graph/ops/ops.yaml is computed here a second time, with NumPy in double precision and from the written
definition of the op, so that the reference backend has something to agree with that shares no code with it. One file
per family: a list of cases {op, attributes, inputs, outputs, relative, absolute}. Needs NumPy; the files are kept in
the tree, so building and testing do not.
"""
import itertools
import json
import math
import os
import sys

import numpy as np

RANDOM = np.random.default_rng(20201120)
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "boolean"}
SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def tensor(array):
    array = np.asarray(array)
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        # str() of a NumPy float is the shortest text that reads back to the same value of its type.
        values = [float(str(v)) if np.isfinite(v) else SPECIAL[str(v)] for v in flat]
    else:
        values = [int(v) for v in flat]
    return {"dtype": NAMES[str(array.dtype)], "dims": list(array.shape), "values": values}


def attribute(value):
    """A plain value as (type, value); ("dims", [...]) and ("dtype", "f32") pass through."""
    if isinstance(value, tuple):
        return {value[0]: value[1]}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"i64": value}
    if isinstance(value, float):
        return {"f64": value}
    if isinstance(value, str):
        return {"string": value}
    return {"ints": list(value)}


def dims(*values):
    return ("dims", [str(v) for v in values])


def case(op, inputs, outputs, relative=2e-6, absolute=2e-6, **attributes):
    return {
        "op": op,
        "attributes": {name: attribute(value) for name, value in attributes.items()},
        "inputs": [tensor(one) for one in inputs],
        "outputs": [tensor(one) for one in outputs],
        "relative": relative,
        "absolute": absolute,
    }


def normal(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def uniform(low, high, *shape, dtype=np.float32):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def wide(x):
    return np.asarray(x).astype(np.float64)


# ---- elementwise ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ERF = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + ERF(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


UNARY = {
    "neg": lambda x: -x, "abs": np.abs, "sign": np.sign, "exp": np.exp, "expm1": np.expm1, "square": np.square,
    "reciprocal": lambda x: 1 / x, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "softplus": lambda x: np.log1p(np.exp(x)),
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "erf": ERF, "identity": lambda x: x,
    "stop_gradient": lambda x: x, "gelu": gelu, "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}
UNARY_POSITIVE = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}


def elementwise():
    cases = []
    for dtype in (np.float32, np.float64):
        for name, function in UNARY.items():
            x = np.concatenate([uniform(-3, 3, 9, dtype=dtype), np.array([0.5, -0.5, 1.5, 2.5], dtype)])
            cases.append(case(name, [x], [function(wide(x)).astype(dtype)]))
        for name, function in UNARY_POSITIVE.items():
            x = uniform(0.01, 5, 11, dtype=dtype)
            cases.append(case(name, [x], [function(wide(x)).astype(dtype)]))
    x = normal(7)
    cases.append(case("gelu", [x], [gelu_tanh(wide(x)).astype(np.float32)], approximate=True))
    cases.append(case("elu", [x], [np.where(wide(x) > 0, wide(x), 1.7 * np.expm1(wide(x))).astype(np.float32)], alpha=1.7))
    cases.append(case("leaky_relu", [x], [np.where(x > 0, wide(x), 0.2 * wide(x)).astype(np.float32)], alpha=0.2))
    whole = np.array([-7, 0, 3, 2**31 - 1, -(2**31)], np.int32)
    cases.append(case("neg", [whole], [-whole]))
    cases.append(case("square", [np.array([-3, 0, 12], np.int64)], [np.array([9, 0, 144], np.int64)]))
    cases.append(case("relu", [whole], [np.maximum(whole, 0)]))
    cases.append(case("relu", [np.array([np.nan, -1, 2], np.float32)], [np.array([np.nan, 0, 2], np.float32)]))
    cases.append(case("softplus", [np.array([-200, 200], np.float32)], [np.array([0, 200], np.float32)]))
    cases.append(case("logical_not", [np.array([True, False])], [np.array([False, True])]))
    cases.append(case("is_finite", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], [np.array([True, False, False, False])]))
    cases.append(case("all_finite", [np.array([1, 2], np.float32)], [np.array(True)]))
    cases.append(case("all_finite", [np.array([1, np.nan], np.float32)], [np.array(False)]))
    odd = np.array([1.9, -1.9, np.nan, 1e20, -1e20, 300, -5], np.float32)
    cases.append(case("cast", [odd], [np.array([1, -1, 0, 2**31 - 1, -(2**31), 300, -5], np.int32)], dtype=("dtype", "i32")))
    cases.append(case("cast", [odd], [np.array([1, 0, 0, 255, 0, 255, 0], np.uint8)], dtype=("dtype", "u8")))
    cases.append(case("cast", [odd], [np.array([True] * 7)], dtype=("dtype", "boolean")))
    cases.append(case("cast", [np.array([2**24 + 1, -3], np.int64)], [np.array([2**24, -3], np.float32)], dtype=("dtype", "f32")))
    cases.append(case("cast", [np.array([True, False])], [np.array([1, 0], np.float32)], dtype=("dtype", "f32")))
    return cases


def gradients():
    dy, x = normal(9), normal(9)
    y = np.maximum(x, 0)
    s, t = sigmoid(wide(x)).astype(np.float32), np.tanh(wide(x)).astype(np.float32)
    step = 1e-6
    out = [
        case("relu_gradient", [dy, y], [np.where(y > 0, dy, 0).astype(np.float32)]),
        case("sigmoid_gradient", [dy, s], [(wide(dy) * wide(s) * (1 - wide(s))).astype(np.float32)]),
        case("tanh_gradient", [dy, t], [(wide(dy) * (1 - wide(t) ** 2)).astype(np.float32)]),
    ]
    for function, flag in ((gelu, False), (gelu_tanh, True)):
        slope = (function(wide(x) + step) - function(wide(x) - step)) / (2 * step)
        out.append(case("gelu_gradient", [dy, x], [(wide(dy) * slope).astype(np.float32)], approximate=flag))
    return out


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "mod": np.mod, "floor_divide": np.floor_divide,
}
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}


def binary():
    cases = []
    shapes = [((5,), (5,)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((2, 3), (2, 1))]
    for (a_shape, b_shape), dtype in itertools.product(shapes, (np.float32, np.float64, np.int32, np.int64)):
        if np.issubdtype(dtype, np.floating):
            a, b = uniform(-4, 4, *a_shape, dtype=dtype), uniform(0.5, 4, *b_shape, dtype=dtype)
        else:
            a, b = RANDOM.integers(-9, 9, a_shape).astype(dtype), RANDOM.integers(1, 5, b_shape).astype(dtype)
        for name, function in BINARY.items():
            cases.append(case(name, [a, b], [function(wide(a), wide(b)).astype(dtype)]))
        for name, function in COMPARISONS.items():
            cases.append(case(name, [a, b], [function(a, b)]))
        if np.issubdtype(dtype, np.floating):
            cases.append(case("div", [a, b], [np.divide(wide(a), wide(b)).astype(dtype)]))
            cases.append(case("pow", [np.abs(a), b], [np.power(wide(np.abs(a)), wide(b)).astype(dtype)]))
        condition = RANDOM.integers(0, 2, b_shape).astype(bool)
        like = np.broadcast_to(b, np.broadcast_shapes(a_shape, b_shape)).astype(dtype)
        cases.append(case("select", [condition, a, like], [np.where(condition, a, like)]))
    sevens = np.array([7, -7, 7, -7, 5], np.int64)
    by = np.array([3, 3, -3, -3, 0], np.int64)
    cases.append(case("mod", [sevens, by], [np.array([1, 2, -2, -1, 0], np.int64)]))
    cases.append(case("floor_divide", [sevens, by], [np.array([2, -3, -3, 2, 0], np.int64)]))
    nan = np.array([np.nan, 1], np.float32)
    one = np.array([1, np.nan], np.float32)
    cases.append(case("maximum", [nan, one], [np.array([np.nan, np.nan], np.float32)]))
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    cases.append(case("logical_and", [p, q], [p & q]))
    cases.append(case("logical_or", [p, q], [p | q]))
    cases.append(case("logical_xor", [p, q], [p ^ q]))
    return cases


# ---- reductions and shapes ----


def reductions():
    cases = []
    table = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod}
    for axes, keep in itertools.product([[], [0], [1], [2], [-1, 0], [0, 1]], [False, True]):
        x = uniform(-2, 2, 3, 4, 5)
        axis = tuple(axes) if axes else None
        for name, function in table.items():
            y = np.asarray(function(wide(x), axis=axis, keepdims=keep)).astype(np.float32)
            cases.append(case(name, [x], [y], axes=axes, keep_dims=keep))
    whole = RANDOM.integers(-5, 6, (3, 4)).astype(np.int32)
    for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"):
        cases.append(case(name, [whole], [np.asarray(table[name](whole, axis=1)).astype(np.int32)], axes=[1]))
    empty = np.zeros((0, 3), np.float32)
    cases.append(case("reduce_sum", [empty], [np.zeros(3, np.float32)], axes=[0]))
    cases.append(case("reduce_prod", [empty], [np.ones(3, np.float32)], axes=[0]))
    cases.append(case("reduce_max", [empty], [np.full(3, -np.inf, np.float32)], axes=[0]))
    cases.append(case("reduce_min", [empty], [np.full(3, np.inf, np.float32)], axes=[0]))
    cases.append(case("reduce_sum", [np.full(4000, 0.1, np.float32)], [np.float32(4000 * np.float64(np.float32(0.1)))]))
    nan = np.array([[1, np.nan, 3], [4, 6, 6]], np.float32)
    cases.append(case("reduce_max", [nan], [np.array([np.nan, 6], np.float32)], axes=[1]))
    cases.append(case("argmax", [nan], [np.array([1, 1], np.int64)]))
    for axis in (0, 1, -1):
        x = RANDOM.integers(0, 4, (4, 3, 5)).astype(np.float32)
        cases.append(case("argmax", [x], [np.argmax(x, axis).astype(np.int64)], axis=axis))
        cases.append(case("argmin", [x], [np.argmin(x, axis).astype(np.int64)], axis=axis))
    return cases


def shapes():
    x = normal(2, 3, 4)
    cases = [
        case("reshape", [x], [x.reshape(6, 4)], dims=dims(6, 4)),
        case("reshape", [x], [x.reshape(4, 6)], dims=dims(4, -1)),
        case("transpose", [x], [x.transpose()]),
        case("broadcast_to", [x[:, :1]], [np.broadcast_to(x[:, :1], (5, 2, 3, 4))], dims=dims(5, 2, 3, 4)),
        case("slice", [x], [x[1:2, 0:3:2, 1:4:2]], begin=dims(1, 0, 1), size=dims(1, 2, 2), strides=[1, 2, 2]),
        case("slice", [x], [x[:, 1:, -2:]], begin=dims(0, 1, -2), size=dims(2, 2, 2)),
        case("pad", [x], [np.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=1.5)], low=[1, 0, 1], high=[0, 2, 1], value=1.5),
        case("iota", [], [np.broadcast_to(np.arange(3)[:, None], (2, 3, 2)).astype(np.int64)], dims=dims(2, 3, 2), axis=1),
        case("iota", [], [np.arange(4).astype(np.float32)], dims=dims(4), axis=0, dtype=("dtype", "f32")),
    ]
    for permutation in itertools.permutations(range(3)):
        cases.append(case("transpose", [x], [x.transpose(permutation)], permutation=list(permutation)))
    for axis in (0, 1, 2, -1):
        parts = [np.take(x, range(1), axis), x, np.take(x, range(2), axis)]
        cases.append(case("concat", parts, [np.concatenate(parts, axis)], axis=axis))
    dy = normal(1, 2, 2)
    dx = np.zeros_like(x)
    dx[1:2, 0:3:2, 1:4:2] = dy
    cases.append(case("slice_gradient", [dy], [dx], begin=dims(1, 0, 1), strides=[1, 2, 2], dims=dims(2, 3, 4)))
    bytes_ = np.arange(24).astype(np.uint8).reshape(2, 3, 4)
    cases.append(case("transpose", [bytes_], [bytes_.transpose(2, 0, 1)], permutation=[2, 0, 1]))
    for axis, dtype in itertools.product((0, 1, 2), (np.int32, np.int64)):
        indices = RANDOM.integers(0, x.shape[axis], (2, 5)).astype(dtype)
        cases.append(case("gather", [x, indices], [np.take(x, indices, axis)], axis=axis))
        dy = normal(*np.take(x, indices, axis).shape)
        out = np.zeros(x.shape)
        moved = np.moveaxis(out, axis, 0)
        flat = np.moveaxis(wide(dy).reshape(x.shape[:axis] + (10,) + x.shape[axis + 1 :]), axis, 0)
        for i, index in enumerate(indices.reshape(-1)):
            moved[index] += flat[i]
        cases.append(case("gather_gradient", [dy, indices], [out.astype(np.float32)], axis=axis, dims=dims(2, 3, 4)))
    indices = np.array([[0, 2], [-1, 3]], np.int64)
    cases.append(case("one_hot", [indices], [np.where(np.arange(3) == indices[..., None], 2.0, -1.0).astype(np.float32)],
                      depth=3, on=2.0, off=-1.0))
    return cases


# ---- products, convolution, pooling ----


def matmuls():
    cases = []
    for ta, tb in itertools.product((False, True), (False, True)):
        for a_batch, b_batch in (((), ()), ((2,), (2,)), ((3, 1), (2,)), ((2,), ())):
            a = normal(*a_batch, *((3, 5) if not ta else (5, 3)))
            b = normal(*b_batch, *((5, 4) if not tb else (4, 5)))
            left = np.swapaxes(wide(a), -1, -2) if ta else wide(a)
            right = np.swapaxes(wide(b), -1, -2) if tb else wide(b)
            cases.append(case("matmul", [a, b], [(left @ right).astype(np.float32)], transpose_a=ta, transpose_b=tb))
    cases.append(case("matmul", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)], [np.zeros((2, 3), np.float32)]))
    return cases


def axis_geometry(size, window, stride, dilation, padding, before, after):
    reach = (window - 1) * dilation + 1
    if padding == "same":
        out = -(-size // stride)
        total = max((out - 1) * stride + reach - size, 0)
        return out, total // 2, total - total // 2
    if padding == "valid":
        before = after = 0
    return (size + before + after - reach) // stride + 1, before, after


def windows(x_shape, window, stride, dilation, padding, pads):
    """For each result position: the (i, j, h, w) inside the image."""
    out_h, top, _ = axis_geometry(x_shape[1], window[0], stride[0], dilation[0], padding, pads[0], pads[1])
    out_w, left, _ = axis_geometry(x_shape[2], window[1], stride[1], dilation[1], padding, pads[2], pads[3])
    table = {}
    for p, q in itertools.product(range(out_h), range(out_w)):
        inside = []
        for i, j in itertools.product(range(window[0]), range(window[1])):
            h, w = p * stride[0] + i * dilation[0] - top, q * stride[1] + j * dilation[1] - left
            if 0 <= h < x_shape[1] and 0 <= w < x_shape[2]:
                inside.append((i, j, h, w))
        table[p, q] = inside
    return out_h, out_w, table


def convolutions():
    cases = []
    settings = [
        ((2, 5, 6, 3), (3, 3), 4, 1, (1, 1), (1, 1), "same", (0, 0, 0, 0)),
        ((1, 7, 7, 2), (3, 2), 3, 1, (2, 2), (1, 1), "same", (0, 0, 0, 0)),
        ((1, 6, 5, 2), (3, 3), 2, 1, (2, 1), (1, 1), "valid", (0, 0, 0, 0)),
        ((1, 6, 6, 4), (3, 3), 4, 2, (1, 1), (1, 1), "same", (0, 0, 0, 0)),
        ((1, 5, 5, 3), (3, 3), 6, 3, (1, 1), (1, 1), "same", (0, 0, 0, 0)),
        ((1, 7, 8, 2), (2, 3), 2, 1, (1, 2), (2, 2), "explicit", (1, 2, 0, 1)),
        ((1, 1, 1, 3), (1, 1), 2, 1, (1, 1), (1, 1), "valid", (0, 0, 0, 0)),
        ((0, 4, 4, 2), (3, 3), 2, 1, (1, 1), (1, 1), "same", (0, 0, 0, 0)),
    ]
    for x_shape, window, filters, groups, stride, dilation, padding, pads in settings:
        x = normal(*x_shape)
        kernel = normal(*window, x_shape[3] // groups, filters)
        bias = normal(filters)
        out_h, out_w, table = windows(x_shape, window, stride, dilation, padding, pads)
        y = np.zeros((x_shape[0], out_h, out_w, filters))
        dy = normal(*y.shape)
        dx, dkernel = np.zeros(x_shape), np.zeros(kernel.shape)
        per_group, filters_per_group = x_shape[3] // groups, filters // groups
        for (p, q), inside in table.items():
            for i, j, h, w in inside:
                for g in range(groups):
                    c, f = slice(g * per_group, (g + 1) * per_group), slice(g * filters_per_group, (g + 1) * filters_per_group)
                    y[:, p, q, f] += wide(x[:, h, w, c]) @ wide(kernel[i, j, :, f])
                    dx[:, h, w, c] += wide(dy[:, p, q, f]) @ wide(kernel[i, j, :, f]).T
                    dkernel[i, j, :, f] += wide(x[:, h, w, c]).T @ wide(dy[:, p, q, f])
        common = dict(stride=list(stride), dilation=list(dilation), padding=padding, pads=list(pads), groups=groups,
                      relative=1e-5, absolute=1e-5)
        cases.append(case("conv2d", [x, kernel], [y.astype(np.float32)], **common))
        cases.append(case("conv2d", [x, kernel, bias], [(y + wide(bias)).astype(np.float32)], **common))
        cases.append(case("conv2d_input_gradient", [dy, kernel], [dx.astype(np.float32)], input_dims=dims(*x_shape), **common))
        cases.append(case("conv2d_kernel_gradient", [x, dy], [dkernel.astype(np.float32)], kernel_dims=dims(*kernel.shape), **common))
    return cases


def pooling():
    cases = []
    settings = [
        ((2, 4, 6, 3), (2, 2), (2, 2), "valid", (0, 0, 0, 0)),
        ((1, 5, 5, 2), (3, 3), (2, 2), "same", (0, 0, 0, 0)),
        ((1, 5, 7, 1), (2, 3), (1, 2), "explicit", (1, 0, 1, 2)),
        ((1, 4, 4, 2), (3, 3), (1, 1), "valid", (0, 0, 0, 0)),
        ((0, 4, 4, 2), (2, 2), (2, 2), "valid", (0, 0, 0, 0)),
    ]
    for x_shape, window, stride, padding, pads in settings:
        # Few different values: ties must go to the first in row-major order.
        x = RANDOM.integers(-3, 4, x_shape).astype(np.float32)
        out_h, out_w, table = windows(x_shape, window, stride, (1, 1), padding, pads)
        shape = (x_shape[0], out_h, out_w, x_shape[3])
        dy = normal(*shape)
        y, dx = np.zeros(shape), np.zeros(x_shape)
        for n, c in itertools.product(range(x_shape[0]), range(x_shape[3])):
            for (p, q), inside in table.items():
                values = [x[n, h, w, c] for _, _, h, w in inside]
                best = int(np.argmax(values))
                y[n, p, q, c] = values[best]
                dx[n, inside[best][2], inside[best][3], c] += dy[n, p, q, c]
        common = dict(window=list(window), stride=list(stride), padding=padding, pads=list(pads))
        y = y.astype(np.float32)
        cases.append(case("max_pool2d", [x], [y], **common))
        cases.append(case("max_pool2d_gradient", [dy, x, y], [dx.astype(np.float32)], **common))
        for include in (False, True):
            y, dx = np.zeros(shape), np.zeros(x_shape)
            for (p, q), inside in table.items():
                count = window[0] * window[1] if include else len(inside)
                for _, _, h, w in inside:
                    y[:, p, q] += wide(x[:, h, w]) / count
                    dx[:, h, w] += wide(dy[:, p, q]) / count
            cases.append(case("avg_pool2d", [x], [y.astype(np.float32)], count_include_padding=include, **common))
            cases.append(case("avg_pool2d_gradient", [dy], [dx.astype(np.float32)], count_include_padding=include,
                              input_dims=dims(*x_shape), **common))
    return cases


# ---- normalisation and losses ----


def normalization():
    cases = []
    f32 = np.float32
    for shape in ((6, 5), (2, 3, 4, 3), (1, 4)):
        x, dy = normal(*shape), normal(*shape)
        scale, offset = normal(shape[-1]), normal(shape[-1])
        axes, epsilon = tuple(range(len(shape) - 1)), 0.003
        mean, variance = wide(x).mean(axes), wide(x).var(axes)
        xhat = (wide(x) - mean) / np.sqrt(variance + epsilon)
        cases.append(case("batch_norm_training", [x, scale, offset],
                          [(xhat * wide(scale) + wide(offset)).astype(f32), mean.astype(f32), variance.astype(f32)],
                          relative=1e-5, absolute=1e-5, epsilon=epsilon))
        count = x.size / shape[-1]
        m32, v32 = mean.astype(f32), variance.astype(f32)
        xc, r = wide(x) - wide(m32), 1 / np.sqrt(wide(v32) + epsilon)
        dscale, doffset = (wide(dy) * xc * r).sum(axes), wide(dy).sum(axes)
        dx = wide(scale) * r / count * (count * wide(dy) - doffset - xc * r * dscale)
        cases.append(case("batch_norm_training_gradient", [dy, x, scale, m32, v32],
                          [dx.astype(f32), dscale.astype(f32), doffset.astype(f32)], relative=1e-5, absolute=1e-5,
                          epsilon=epsilon))
        cases.append(case("batch_norm_inference", [x, scale, offset, m32, v32],
                          [(xc * r * wide(scale) + wide(offset)).astype(f32)], relative=1e-5, absolute=1e-5,
                          epsilon=epsilon))
        cases.append(case("batch_norm_moments", [x], [wide(x).sum(axes), (wide(x) ** 2).sum(axes)]))
        sums = [wide(dy).sum(axes), (wide(dy) * xc).sum(axes)]
        cases.append(case("batch_norm_gradient_moments", [dy, x, m32], sums))
        cases.append(case("batch_norm_gradient_apply", [dy, x, scale, m32, v32, *sums, np.float64(count)],
                          [dx.astype(f32)], relative=1e-5, absolute=1e-5, epsilon=epsilon))
        # Layer norm: gradients by the chain rule written out per row.
        mean, variance = wide(x).mean(-1), wide(x).var(-1)
        rstd = 1 / np.sqrt(variance + epsilon)
        xhat = (wide(x) - mean[..., None]) * rstd[..., None]
        cases.append(case("layer_norm", [x, scale, offset],
                          [(xhat * wide(scale) + wide(offset)).astype(f32), mean.astype(f32), rstd.astype(f32)],
                          relative=1e-5, absolute=1e-5, epsilon=epsilon))
        m32, r32 = mean.astype(f32), rstd.astype(f32)
        xhat = (wide(x) - wide(m32)[..., None]) * wide(r32)[..., None]
        g = wide(dy) * wide(scale)
        dx = wide(r32)[..., None] * (g - g.mean(-1, keepdims=True) - xhat * (g * xhat).mean(-1, keepdims=True))
        cases.append(case("layer_norm_gradient", [dy, x, scale, m32, r32],
                          [dx.astype(f32), (wide(dy) * xhat).sum(axes).astype(f32), wide(dy).sum(axes).astype(f32)],
                          relative=1e-5, absolute=1e-5))
    return cases


def group_normalization():
    """RMS norm over the last axis; group norm by an axis of its own for the groups."""
    cases, f32 = [], np.float32
    for shape, groups in (((6, 4), 2), ((2, 3, 5, 6), 3), ((3, 7, 8), 8), ((4, 5), 1)):
        epsilon, axes = 0.002, tuple(range(len(shape) - 1))
        x, dy = normal(*shape) + 0.5, normal(*shape)
        x = x.astype(f32)
        scale, offset = normal(shape[-1]), normal(shape[-1])
        rstd = 1 / np.sqrt((wide(x) ** 2).mean(-1) + epsilon)
        cases.append(case("rms_norm", [x, scale], [(wide(x) * rstd[..., None] * wide(scale)).astype(f32), rstd.astype(f32)],
                          relative=1e-5, absolute=1e-5, epsilon=epsilon))
        r32 = rstd.astype(f32)
        xhat, g = wide(x) * wide(r32)[..., None], wide(dy) * wide(scale)
        dx = wide(r32)[..., None] * (g - xhat * (g * xhat).mean(-1, keepdims=True))
        cases.append(case("rms_norm_gradient", [dy, x, scale, r32], [dx.astype(f32), (wide(dy) * xhat).sum(axes).astype(f32)],
                          relative=1e-5, absolute=1e-5))

        def split(values):  # [rows, positions, groups, channels of a group]
            return wide(values).reshape(shape[0], -1, groups, shape[-1] // groups)

        mean, variance = split(x).mean((1, 3)), split(x).var((1, 3))
        rstd = 1 / np.sqrt(variance + epsilon)
        xhat = ((split(x) - mean[:, None, :, None]) * rstd[:, None, :, None]).reshape(shape)
        cases.append(case("group_norm", [x, scale, offset],
                          [(xhat * wide(scale) + wide(offset)).astype(f32), mean.astype(f32), rstd.astype(f32)],
                          relative=1e-5, absolute=1e-5, groups=groups, epsilon=epsilon))
        m32, r32 = mean.astype(f32), rstd.astype(f32)
        n = (split(x) - wide(m32)[:, None, :, None]) * wide(r32)[:, None, :, None]
        g = split(wide(dy) * wide(scale))
        dx = wide(r32)[:, None, :, None] * (g - g.mean((1, 3), keepdims=True) - n * (g * n).mean((1, 3), keepdims=True))
        cases.append(case("group_norm_gradient", [dy, x, scale, m32, r32],
                          [dx.reshape(shape).astype(f32), (wide(dy) * n.reshape(shape)).sum(axes).astype(f32),
                           wide(dy).sum(axes).astype(f32)], relative=1e-5, absolute=1e-5))
    return cases


def top_k():
    """By a stable sort of what comes after: NaN first, then the largest, then the lowest index."""
    cases = []
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
        for shape, k in (((1,), 1), ((7,), 7), ((3, 5), 2), ((2, 3, 65), 65), ((2, 90), 17), ((1, 130), 100), ((0, 4), 3)):
            x = RANDOM.integers(0, 40, shape).astype(dtype)
            if x.dtype.kind == "f" and x.size > 20:
                flat = x.reshape(-1)
                flat[[1, 5, 9]], flat[[2, 6]], flat[[3, 7]], flat[[4, 8]] = np.nan, np.inf, -np.inf, -0.0
            order = np.argsort(np.where(np.isnan(x), -np.inf, -x.astype(np.float64)), axis=-1, kind="stable")
            # Infinities and NaN are alike in that key: NaN comes first among them.
            is_number = np.take_along_axis(~np.isnan(x), order, -1)
            order = np.take_along_axis(order, np.argsort(is_number, axis=-1, kind="stable"), -1)[..., :k]
            values = np.take_along_axis(x, order, -1)
            cases.append(case("top_k", [x], [values, order.astype(np.int64)], relative=0.0, absolute=0.0, k=k))
            if x.dtype.kind == "f":
                dy, dx = normal(*values.shape, dtype=dtype), np.zeros(shape, dtype)
                np.put_along_axis(dx, order, dy, -1)
                cases.append(case("top_k_gradient", [dy, order.astype(np.int64)], [dx], relative=0.0, absolute=0.0,
                                  dims=dims(*shape)))
    return cases


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def losses():
    cases = []
    f32 = np.float32
    for axis in (-1, 0, 1):
        x, dy = normal(3, 4, 5), normal(3, 4, 5)
        y = softmax(wide(x), axis)
        cases.append(case("softmax", [x], [y.astype(f32)], axis=axis))
        cases.append(case("log_softmax", [x], [np.log(y).astype(f32)], axis=axis))
        y32, l32 = y.astype(f32), np.log(y).astype(f32)
        dx = wide(y32) * (wide(dy) - (wide(dy) * wide(y32)).sum(axis, keepdims=True))
        cases.append(case("softmax_gradient", [dy, y32], [dx.astype(f32)], axis=axis))
        dx = wide(dy) - np.exp(wide(l32)) * wide(dy).sum(axis, keepdims=True)
        cases.append(case("log_softmax_gradient", [dy, l32], [dx.astype(f32)], axis=axis))
    cases.append(case("softmax", [np.array([[1000, 0, -1000]], f32)], [np.array([[1, 0, 0]], f32)]))
    for shape, smoothing, label_dtype in itertools.product(((4, 5), (2, 3, 7)), (0.0, 0.1), (np.int32, np.int64, np.uint8)):
        logits = 3 * normal(*shape)
        labels = RANDOM.integers(0, shape[-1], shape[:-1]).astype(label_dtype)
        target = (1 - smoothing) * np.eye(shape[-1])[labels] + smoothing / shape[-1]
        p = softmax(wide(logits))
        loss, dloss = -(target * np.log(p)).sum(-1), normal(*shape[:-1])
        dlogits = (p - target) * wide(dloss)[..., None]
        cases.append(case("sparse_softmax_cross_entropy", [logits, labels], [loss.astype(f32)], label_smoothing=smoothing))
        cases.append(case("sparse_softmax_cross_entropy_gradient", [dloss, logits, labels], [dlogits.astype(f32)],
                          label_smoothing=smoothing))
        targets = uniform(0, 1, *shape)
        smoothed = wide(targets) * (1 - smoothing) + smoothing / shape[-1]
        loss = -(smoothed * np.log(p)).sum(-1)
        dlogits = (p * smoothed.sum(-1, keepdims=True) - smoothed) * wide(dloss)[..., None]
        cases.append(case("softmax_cross_entropy", [logits, targets], [loss.astype(f32)], label_smoothing=smoothing))
        cases.append(case("softmax_cross_entropy_gradient", [dloss, logits, targets], [dlogits.astype(f32)],
                          label_smoothing=smoothing))
    x, t = 5 * normal(9), uniform(0, 1, 9)
    loss = -(wide(t) * np.log(sigmoid(wide(x))) + (1 - wide(t)) * np.log(1 - sigmoid(wide(x))))
    cases.append(case("sigmoid_cross_entropy", [x, t], [loss.astype(f32)]))
    logits = np.array([[1, 3, 2], [5, 5, 5], [0, np.nan, 1], [1, 2, 3]], f32)
    labels = np.array([2, 1, 1, 7], np.int64)
    cases.append(case("in_top_k", [logits, labels], [np.array([False, True, False, False])], k=1))
    cases.append(case("in_top_k", [logits, labels], [np.array([True, True, False, False])], k=2))
    return cases


# ---- attention ----


def attention():
    """Forward in the plain form with a score for each pair, gradients through the softmax written out."""
    cases = []
    f32 = np.float32
    settings = [  # rows, length, heads, channels, key length, heads of keys, lengths, causal, scale
        (2, 3, 2, 4, 3, 2, None, False, 0.0), (2, 3, 2, 4, 5, 1, None, True, 0.3), (1, 5, 4, 2, 3, 2, None, True, 0.0),
        (4, 2, 3, 3, 4, 3, [4, 1, 0, 9], False, 0.0), (3, 4, 2, 3, 4, 2, [2, 4, -1], True, 1.5),
    ]
    for rows, length, heads, channels, key_length, key_heads, lengths, causal, scale in settings:
        q, dy = normal(rows, length, heads, channels), normal(rows, length, heads, channels)
        k, v = normal(rows, key_length, key_heads, channels), normal(rows, key_length, key_heads, channels)
        factor, group = scale or channels ** -0.5, heads // key_heads
        wide_k, wide_v = np.repeat(wide(k), group, 2), np.repeat(wide(v), group, 2)
        scores = factor * np.einsum("rihc,rjhc->rhij", wide(q), wide_k)
        counts = np.array(lengths if lengths else [key_length] * rows)
        seen = np.arange(key_length) < counts[:, None, None, None]
        if causal:
            seen = seen & (np.arange(key_length) <= np.arange(length)[:, None] + key_length - length)
        seen = np.broadcast_to(seen, scores.shape)
        e = np.where(seen, np.exp(scores), 0)
        total = e.sum(-1)
        sees = total > 0
        p = e / np.where(sees, total, 1)[..., None]
        statistics = np.where(sees, np.log(np.where(sees, total, 1)), np.inf)
        y = np.einsum("rhij,rjhc->rihc", p, wide_v)
        dp = np.einsum("rihc,rjhc->rhij", wide(dy), wide_v)
        ds = factor * p * (dp - (p * dp).sum(-1, keepdims=True))

        def grouped(x):  # heads that share keys add up
            return x.reshape(rows, key_length, key_heads, group, channels).sum(3)

        dq = np.einsum("rhij,rjhc->rihc", ds, wide_k)
        dk, dv = grouped(np.einsum("rhij,rihc->rjhc", ds, wide(q))), grouped(np.einsum("rhij,rihc->rjhc", p, wide(dy)))
        inputs = [q, k, v]
        more = [np.array(lengths, np.int32)] if lengths else []
        y32, s32 = y.astype(f32), statistics.astype(f32)
        cases.append(case("attention", inputs + more, [y32, s32], causal=causal, scale=scale))
        cases.append(case("attention_gradient", [dy, *inputs, y32, s32, *more], [dq.astype(f32), dk.astype(f32), dv.astype(f32)],
                          relative=1e-5, absolute=1e-5, causal=causal, scale=scale))
    return cases


# ---- optimizers: ten steps each ----


def trajectories():
    """Not case() but {op, attributes, state, steps: [{gradient, rate, ok, weights}]}; state = w and its slots."""
    result = []
    decays = (0.0, 0.01)
    settings = [("sgd_update", dict(weight_decay=d), 0) for d in decays]
    settings += [("momentum_update", dict(momentum=0.9, nesterov=n, weight_decay=d), 1) for n in (False, True) for d in decays]
    settings += [("adam_update", dict(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=d), 2) for d in decays]
    for op, attributes, slots in settings:
        w = wide(normal(7))
        state = [w] + [np.zeros(7) for _ in range(slots)]
        first = [tensor(one.astype(np.float32)) for one in state]
        steps, t = [], 0
        for step in range(10):
            g, rate, ok = normal(7), np.float32(0.1 / (1 + step)), step != 4
            if ok:
                t += 1
                state = advance(op, attributes, state, wide(g), float(rate), t)
                # The state is kept in single precision between steps.
                state = [wide(one.astype(np.float32)) for one in state]
            steps.append({"gradient": tensor(g), "rate": float(rate), "ok": ok, "iteration": max(t, 1),
                          "state": [tensor(one.astype(np.float32)) for one in state]})
        result.append({"op": op, "attributes": {k: attribute(v) for k, v in attributes.items()}, "state": first, "steps": steps})
    return result


def advance(op, attributes, state, g, rate, t):
    decay = attributes["weight_decay"]
    w = state[0]
    if op == "sgd_update":
        return [w - rate * (g + decay * w)]
    if op == "momentum_update":
        g = g + decay * w
        velocity = attributes["momentum"] * state[1] + g
        step = g + attributes["momentum"] * velocity if attributes["nesterov"] else velocity
        return [w - rate * step, velocity]
    m = attributes["beta1"] * state[1] + (1 - attributes["beta1"]) * g
    v = attributes["beta2"] * state[2] + (1 - attributes["beta2"]) * g**2
    mhat, vhat = m / (1 - attributes["beta1"] ** t), v / (1 - attributes["beta2"] ** t)
    return [w - rate * (mhat / (np.sqrt(vhat) + attributes["epsilon"]) + decay * w), m, v]


def main():
    files = {
        "elementwise": elementwise() + gradients(), "binary": binary(), "reductions": reductions(), "shapes": shapes(),
        "matmul": matmuls(), "convolution": convolutions(), "pooling": pooling(), "normalization": normalization(),
        "losses": losses(), "trajectories": trajectories(), "attention": attention(),
        "group_normalization": group_normalization(), "top_k": top_k(),
    }
    for name, cases in files.items():
        with open(os.path.join(sys.argv[1], name + ".json"), "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


main()
