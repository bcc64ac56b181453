#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_layer_golden.py DIRECTORY: writes layers.json, what Keras (with TensorFlow) and PyTorch make of some numbers in layers of
convolution, pooling, shapes and embeddings.

Each case is a layer of lib/nn/nn.yaml with its attributes; "inputs": what it is given, and behind that the values of its
variables; "ports": for each input of the layer the place among these, -1 for one that is left out; "variables": the places of
variables by name. Then its result, and the gradients of the sum of result * upstream for all inputs of floating point ("wrt").
"penalty" is what the layer adds to a loss, with the gradients of that, in the order of the variables. All inputs and results
have the rows of a batch as their first axis. Inputs are of single precision, everything is computed from them in double
precision. There are odd shapes, axes of length 1, windows that are no squares, and bags without ids.

Needs Keras, TensorFlow and PyTorch; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import sys

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

RANDOM = np.random.default_rng(20261130)
TORCH, KERAS, TENSORFLOW = f'PyTorch {torch.__version__}', f'Keras {keras.__version__}', f'TensorFlow {tf.__version__}'
NAMES = {'float64': 'f32', 'int32': 'i32', 'int64': 'i64'}
INF = float('inf')
DONE = []
keras.config.set_floatx('float64')


# ---- numbers ----


def normal(*shape, size=1.0):
    return (size * RANDOM.standard_normal(shape)).astype(np.float32).astype(np.float64)


def distinct(*shape):
    """Numbers of which no two are close."""
    count = int(np.prod(shape))
    numbers = RANDOM.permutation(np.linspace(-3, 3, count) + 0.01 * RANDOM.random(count))
    return numbers.reshape(shape).astype(np.float32).astype(np.float64)


def integers(high, *shape):
    return RANDOM.integers(0, high, shape).astype(np.int32)


# ---- cases ----


def tensor(value):
    value = np.asarray(value)
    values = value.reshape(-1)
    numbers = [float(f'{np.float32(v):.9g}') for v in values] if value.dtype == np.float64 else [int(v) for v in values]
    return {'dtype': NAMES[str(value.dtype)], 'dims': list(value.shape), 'values': numbers}


def attribute(value):
    if isinstance(value, bool):
        return {'bool': value}
    if isinstance(value, str):
        return {'string': value}
    if isinstance(value, list):
        return {'ints': value}
    return {'f64': value} if isinstance(value, float) else {'i64': value}


def penalty_of(attributes, variables):
    """What kernel_l1, kernel_l2 and their like add to the loss: the sum, and its gradient for each variable."""
    total, gradients = 0.0, []
    for name, value in variables.items():
        what = 'table' if name.endswith('/table') else 'kernel'
        is_penalized = name.endswith(what)
        l1, l2 = (attributes.get(f'{what}_{norm}', 0.0) if is_penalized else 0.0 for norm in ('l1', 'l2'))
        total += l1 * np.abs(value).sum() + l2 * (value ** 2).sum()
        gradients.append(l1 * np.sign(value) + 2 * l2 * value)
    return total, gradients


def case(made_by, op, run, inputs, variables, attributes, absolute=2e-6):
    """`run` takes arrays, those of the inputs that are not None and then those of the variables, and gives the result, and a
    function from the upstream to the gradients for all of them."""
    given = [one for one in inputs if one is not None]
    ports, place = [], 0
    for one in inputs:
        ports.append(-1 if one is None else place)
        place += one is not None
    result, backward = run(*given, *variables.values())
    upstream = normal(*result.shape)
    gradients = backward(upstream)
    arrays = given + list(variables.values())
    wrt = [i for i, one in enumerate(arrays) if one.dtype == np.float64]
    done = {'op': op, 'made_by': made_by, 'attributes': {name: attribute(value) for name, value in attributes.items()},
            'inputs': [tensor(one) for one in arrays], 'ports': ports,
            'variables': {name: len(given) + i for i, name in enumerate(variables)}, 'outputs': [tensor(result)],
            'upstreams': [tensor(upstream)], 'relative': 1e-5, 'absolute': absolute, 'wrt': wrt,
            'gradients': [tensor(np.asarray(gradients[i], np.float64)) for i in wrt]}
    total, gradients = penalty_of(attributes, variables)
    if total:
        done['penalty'], done['penalty_gradients'] = total, [tensor(one) for one in gradients]
    DONE.append(done)


def by_torch(op, f, inputs, variables, made_by=TORCH, **attributes):
    """`f` takes tensors and gives one."""
    def run(*arrays):
        tensors = [torch.from_numpy(one.copy()) for one in arrays]
        for one in tensors:
            one.requires_grad_(one.dtype == torch.float64)
        result = f(*tensors)

        def backward(upstream):
            if result.requires_grad:
                result.backward(torch.from_numpy(upstream))
            return [np.zeros(one.shape) if one.grad is None else one.grad.numpy() for one in tensors]
        return result.detach().numpy(), backward
    case(made_by, op, run, inputs, variables, attributes)


def by_keras(op, layer, x, reshaped=(), variables=None, **attributes):
    """`reshaped`: the dims of variables whose shape is another one than Keras's."""
    scope = op.removeprefix('layer_')
    layer.build(x.shape)
    dims = {weight.name: dict(reshaped).get(weight.name, weight.shape) for weight in layer.weights}
    variables = variables or {f'{scope}/{name}': normal(*shape, size=0.5) for name, shape in dims.items()}

    def run(x, *values):
        layer.set_weights([value.reshape(weight.shape) for value, weight in zip(values, layer.weights)])
        given = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(given)
            result = layer(given)

        def backward(upstream):
            sources = [given] + [weight.value for weight in layer.weights]
            gradients = tape.gradient(result, sources, output_gradients=tf.constant(upstream))
            wanted = [x] + list(values)
            return [np.zeros(one.shape) if g is None else tf.convert_to_tensor(g).numpy().reshape(one.shape)
                    for g, one in zip(gradients, wanted)]
        # The tape has recorded what the gradient needs.
        return result.numpy(), backward
    case(KERAS, op, run, [x], variables, attributes)


# ---- windows with PyTorch: channels are its second axis ----


def first(x):
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


def weight_of(kernel):
    """[size..., a, b] as [b, a, size...]."""
    rank = kernel.dim()
    return kernel.permute(rank - 1, rank - 2, *range(rank - 2))


def around(pads):
    """[before, behind] axis by axis as F.pad wants it: from the last axis on."""
    return [number for i in range(len(pads) - 2, -1, -2) for number in pads[i:i + 2]]


def each(axes, one, several=None):
    return [b or one for b in (several or [0] * axes)]


def convolution(axes, stride, dilation, pads, groups, activation=None):
    f = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]

    def run(x, kernel, bias=None):
        y = f(F.pad(first(x), around(pads)), weight_of(kernel), bias, stride=stride, dilation=dilation, groups=groups)
        return (activation or (lambda z: z))(last(y))
    return run


def transposed(axes, stride, dilation, pads, extra, groups):
    f = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[axes]

    def run(x, kernel, bias=None):
        y = last(f(first(x), weight_of(kernel), bias, stride=stride, padding=0, output_padding=extra, groups=groups, dilation=dilation))
        for i in range(axes):
            y = y.narrow(1 + i, pads[2 * i], y.shape[1 + i] - pads[2 * i] - pads[2 * i + 1])
        return y
    return run


SHAPES = {1: (3, 7, 4), 2: (2, 5, 4, 2), 3: (2, 3, 4, 3, 2)}
KERNELS = {1: [3], 2: [2, 3], 3: [2, 1, 3]}


def variables_of(scope, kernel, bias=None, name='kernel'):
    made = {f'{scope}/{name}': normal(*kernel, size=0.5)}
    if bias:
        made[f'{scope}/bias'] = normal(bias)
    return made


def lists(axes, **numbers):
    """The attributes of several axes; one axis has none."""
    return numbers if axes > 1 else {}


def convolutions(axes):
    op, shape, channels = f'layer_conv{axes}d', SHAPES[axes], SHAPES[axes][-1]
    scope = op.removeprefix('layer_')
    layer = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}[axes]
    by_keras(op, layer(3, 3, padding='same'), normal(*shape), filters=3, size=3, kernel_l1=0.01, kernel_l2=0.02)
    by_keras(op, layer(2, 2, strides=2, padding='same', activation='tanh'), normal(*shape), filters=2, size=2, stride=2,
             padding='same', activation='tanh', kernel_initializer='he_normal', bias_initializer='ones')
    by_keras(op, layer(3, 2, dilation_rate=2, padding='valid', use_bias=False), normal(*shape), filters=3, size=2, dilation=2,
             padding='valid', use_bias=False)
    by_keras(op, layer(1, 1), normal(*([1] * (axes + 2))), filters=1, size=1, padding='valid')
    sizes, strides, dilations = KERNELS[axes], [2, 1, 2][:axes], [1, 2, 1][:axes]
    pads = [2, 0, 0, 1, 1, 2][:2 * axes]
    for groups in (1, 2):
        given = lists(axes, sizes=sizes, strides=strides, dilations=dilations)
        by_torch(op, convolution(axes, strides, dilations, pads, groups), [normal(*shape)],
                 variables_of(scope, sizes + [channels // groups, 4], 4), filters=4, size=3, stride=2, dilation=1,
                 padding='explicit', pads=pads, groups=groups, **given)
    for activation, f in (('relu', F.relu), ('gelu', F.gelu), ('gelu_tanh', lambda z: F.gelu(z, approximate='tanh')), ('silu', F.silu),
                          ('sigmoid', torch.sigmoid)):
        if axes == 1:
            by_torch(op, convolution(1, 1, 1, [0, 0], 1, f), [normal(2, 3, 2)], variables_of(scope, [2, 2, 3], 3), filters=3, size=2,
                     padding='valid', activation=activation)
    if axes == 1:
        by_keras(op, layer(3, 3, dilation_rate=2, padding='causal'), normal(2, 6, 2), filters=3, size=3, dilation=2, padding='causal')
        by_keras(op, layer(3, 2, strides=3, padding='causal'), normal(3, 7, 2), filters=3, size=2, stride=3, padding='causal')


def transposes(axes):
    op, shape, channels = f'layer_conv{axes}d_transpose', SHAPES[axes], SHAPES[axes][-1]
    scope = op.removeprefix('layer_')
    layer = {1: keras.layers.Conv1DTranspose, 2: keras.layers.Conv2DTranspose, 3: keras.layers.Conv3DTranspose}[axes]
    by_keras(op, layer(2, 3, strides=2, padding='same'), normal(*shape), filters=2, size=3, stride=2, kernel_l1=0.01, kernel_l2=0.02)
    by_keras(op, layer(1, 2, strides=3, padding='same', activation='tanh'), normal(*shape), filters=1, size=2, stride=3,
             activation='tanh', padding='same', kernel_initializer='he_normal', bias_initializer='ones')
    by_keras(op, layer(1, 3, strides=2, padding='valid', use_bias=False), normal(*shape), filters=1, size=3, stride=2, padding='valid',
             use_bias=False)
    by_keras(op, layer(1, 1), normal(*([1] * (axes + 2))), filters=1, size=1, padding='valid')
    sizes, strides, dilations = KERNELS[axes], [2, 3, 2][:axes], [1, 2, 1][:axes]
    for padding, pads, extra, groups in (('explicit', [1, 0, 0, 2, 1, 1], [1, 2, 0], 1), ('explicit', [0, 1, 1, 1, 0, 0], [0, 0, 0], 2),
                                         ('valid', [0] * 6, [1, 1, 1], channels)):
        pads, extra = pads[:2 * axes], extra[:axes]
        given = lists(axes, sizes=sizes, strides=strides, dilations=dilations)
        by_torch(op, transposed(axes, strides, dilations, pads, extra, groups), [normal(*shape)],
                 variables_of(scope, sizes + [4 // groups, channels], 4), filters=4, size=3, stride=2, dilation=1, padding=padding,
                 pads=pads, extra=extra if axes > 1 else extra[0], groups=groups, **given)
    by_torch(op, transposed(axes, [1] * axes, [2] * axes, [0] * (2 * axes), [0] * axes, 1), [normal(*shape)],
             variables_of(scope, [2] * axes + [2, channels], 2), filters=2, size=2, dilation=2, padding='valid')


def depthwise(axes):
    op, shape, channels = f'layer_depthwise_conv{axes}d', SHAPES[axes], SHAPES[axes][-1]
    scope = op.removeprefix('layer_')
    layer = {1: keras.layers.DepthwiseConv1D, 2: keras.layers.DepthwiseConv2D}[axes]

    def own(size, multiplier):
        return (('kernel', (size,) * axes + (1, channels * multiplier)),)
    by_keras(op, layer(3, padding='same', depth_multiplier=2), normal(*shape), own(3, 2), size=3, multiplier=2, kernel_l1=0.01,
             kernel_l2=0.02)
    by_keras(op, layer(2, strides=2, padding='valid', activation='tanh'), normal(*shape), own(2, 1), size=2, stride=2, padding='valid',
             activation='tanh', kernel_initializer='he_normal', bias_initializer='ones')
    by_keras(op, layer(2, dilation_rate=2, padding='same', use_bias=False), normal(*shape), own(2, 1), size=2, dilation=2, use_bias=False)
    sizes, strides, dilations, pads = KERNELS[axes], [2, 1][:axes], [1, 2][:axes], [2, 0, 0, 1][:2 * axes]
    by_torch(op, convolution(axes, strides, dilations, pads, channels), [normal(*shape)],
             variables_of(scope, sizes + [1, 2 * channels], 2 * channels), size=3, stride=2, padding='explicit', pads=pads, multiplier=2,
             **lists(axes, sizes=sizes, strides=strides, dilations=dilations))
    if axes == 1:
        by_torch(op, convolution(1, 1, 2, [4, 0], channels), [normal(*shape)], variables_of(scope, [3, 1, channels], channels), size=3,
                 dilation=2, padding='causal')


def separable(axes):
    op, shape, channels = f'layer_separable_conv{axes}d', SHAPES[axes], SHAPES[axes][-1]
    scope = op.removeprefix('layer_')
    layer = {1: keras.layers.SeparableConv1D, 2: keras.layers.SeparableConv2D}[axes]

    def own(size, multiplier):
        return (('depthwise_kernel', (size,) * axes + (1, channels * multiplier)),)
    by_keras(op, layer(3, 3, padding='same', depth_multiplier=2), normal(*shape), own(3, 2), filters=3, size=3, multiplier=2,
             kernel_l1=0.01, kernel_l2=0.02)
    by_keras(op, layer(5, 2, strides=2, padding='valid', activation='tanh'), normal(*shape), own(2, 1), filters=5, size=2, stride=2,
             padding='valid', activation='tanh', kernel_initializer='he_normal', bias_initializer='ones')
    by_keras(op, layer(2, 2, dilation_rate=2, padding='same', use_bias=False), normal(*shape), own(2, 1), filters=2, size=2, dilation=2,
             use_bias=False)
    sizes, strides, dilations, pads = KERNELS[axes], [2, 1][:axes], [1, 2][:axes], [2, 0, 0, 1][:2 * axes]

    def both(x, of_channels, of_points, bias):
        deep = convolution(axes, strides, dilations, pads, channels)(x, of_channels)
        return convolution(axes, 1, 1, [0] * (2 * axes), 1)(deep, of_points, bias)
    variables = variables_of(scope, sizes + [1, 2 * channels], name='depthwise_kernel')
    variables.update(variables_of(scope, [1] * axes + [2 * channels, 3], 3, 'pointwise_kernel'))
    by_torch(op, both, [normal(*shape)], variables, filters=3, size=3, stride=2, padding='explicit', pads=pads, multiplier=2,
             **lists(axes, sizes=sizes, strides=strides, dilations=dilations))


# ---- pooling ----


def image_pools(axes):
    shape, ones = SHAPES[axes], (1,) * (axes + 2)
    largest = {1: keras.layers.MaxPooling1D, 2: keras.layers.MaxPooling2D}[axes]
    mean = {1: keras.layers.AveragePooling1D, 2: keras.layers.AveragePooling2D}[axes]
    for name, layer in (('max', largest), ('average', mean)):
        op = f'layer_{name}_pool{axes}d'
        by_keras(op, layer(2), distinct(*shape), size=2)
        by_keras(op, layer(3, strides=2, padding='same'), distinct(*shape), size=3, stride=2, padding='same')
        by_keras(op, layer(1), distinct(*ones), size=1)
        sizes, strides = [3, 2][:axes], [2, 1][:axes]
        by_keras(op, layer(tuple(sizes), strides=tuple(strides), padding='valid'), distinct(*shape), size=3, stride=2, padding='valid',
                 **lists(axes, sizes=sizes, strides=strides))


def volume_pools(_):
    """TensorFlow pools volumes in single precision only."""
    def padded(x, sizes, strides, value=0.0):
        pads = []
        for length, size, stride in zip(x.shape[1:4], sizes, strides):
            total = max((-(-length // stride) - 1) * stride + size - length, 0)
            pads += [total // 2, total - total // 2]
        return F.pad(first(x), around(pads), value=value)

    def largest(sizes, strides, is_same=False):
        return lambda x: last(F.max_pool3d(padded(x, sizes, strides, -INF) if is_same else first(x), sizes, strides))

    def mean(sizes, strides, is_same=False):
        def run(x):
            if not is_same:
                return last(F.avg_pool3d(first(x), sizes, strides))
            parts = F.avg_pool3d(padded(torch.ones_like(x), sizes, strides), sizes, strides)
            return last(F.avg_pool3d(padded(x, sizes, strides), sizes, strides) / parts)
        return run
    for name, f in (('max', largest), ('average', mean)):
        op = f'layer_{name}_pool3d'
        by_torch(op, f([2] * 3, [2] * 3), [distinct(*SHAPES[3])], {}, size=2)
        by_torch(op, f([3] * 3, [2] * 3, True), [distinct(*SHAPES[3])], {}, size=3, stride=2, padding='same')
        by_torch(op, f([1] * 3, [1] * 3), [distinct(1, 1, 1, 1, 1)], {}, size=1)
        by_torch(op, f([3, 2, 2], [2, 1, 2]), [distinct(*SHAPES[3])], {}, size=3, stride=2, padding='valid', sizes=[0, 2, 2],
                 strides=[2, 1, 2])


def pools(axes):
    shape, ones = SHAPES[axes], (1,) * (axes + 2)
    (volume_pools if axes == 3 else image_pools)(axes)
    op, sizes, pads = f'layer_max_pool{axes}d', [3, 2, 4][:axes], [1, 0, 1, 1, 0, 2][:2 * axes]
    f = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[axes]
    by_torch(op, lambda x: last(f(F.pad(first(x), around(pads), value=-INF), sizes, 2)), [distinct(*shape)], {}, size=3, stride=2,
             padding='explicit', pads=pads, **lists(axes, sizes=sizes))
    op, sizes, pads = f'layer_average_pool{axes}d', [3, 2, 2][:axes], [1, 1, 1, 1, 1, 1][:2 * axes]
    f = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[axes]
    for whole in (False, True):
        by_torch(op, lambda x: last(f(first(x), sizes, 2, 1, count_include_pad=whole)), [normal(*shape)], {}, size=3, stride=2,
                 padding='explicit', pads=pads, count_include_padding=whole, **lists(axes, sizes=sizes))
    largest = {1: keras.layers.GlobalMaxPooling1D, 2: keras.layers.GlobalMaxPooling2D, 3: keras.layers.GlobalMaxPooling3D}[axes]
    mean = {1: keras.layers.GlobalAveragePooling1D, 2: keras.layers.GlobalAveragePooling2D, 3: keras.layers.GlobalAveragePooling3D}[axes]
    for name, layer in (('max', largest), ('average', mean)):
        by_keras(f'layer_global_{name}_pool{axes}d', layer(), distinct(*shape))
        by_keras(f'layer_global_{name}_pool{axes}d', layer(), distinct(*ones))


# ---- shapes ----


def shapes(axes):
    shape, ones = SHAPES[axes], (1,) * (axes + 2)
    up = {1: keras.layers.UpSampling1D, 2: keras.layers.UpSampling2D, 3: keras.layers.UpSampling3D}[axes]
    op, factors = f'layer_up_sampling{axes}d', [2, 3, 1][:axes]
    by_keras(op, up(2), normal(*shape), factor=2)
    by_keras(op, up(2), normal(*ones), factor=2)
    if axes > 1:
        by_keras(op, up(tuple(factors)), normal(*shape), factor=2, factors=[0] + factors[1:])
    if axes == 2:
        for factors in ([2, 3], [3, 1], [4, 4]):
            by_keras(op, up(tuple(factors), interpolation='bilinear'), normal(*shape), factor=1, factors=factors, method='bilinear')
        by_torch(op, lambda x: last(F.interpolate(first(x), scale_factor=2.0, mode='bilinear', align_corners=False)), [normal(3, 3, 1, 2)], {},
                 factor=2, method='bilinear')
        by_torch(op, lambda x: last(F.interpolate(first(x), scale_factor=2.0, mode='nearest')), [normal(3, 3, 1, 2)], {}, factor=2,
                 method='nearest')
    for pads in ([1, 2, 0, 3, 2, 0], [0, 0, 0, 0, 0, 1], [0] * 6):
        pads = pads[:2 * axes]
        pairs = [tuple(pads[i:i + 2]) for i in range(0, 2 * axes, 2)]
        pair = pairs[0] if axes == 1 else tuple(pairs)
        pad = {1: keras.layers.ZeroPadding1D, 2: keras.layers.ZeroPadding2D, 3: keras.layers.ZeroPadding3D}[axes]
        by_keras(f'layer_zero_padding{axes}d', pad(pair), normal(*shape), pads=pads)
    for crops in ([1, 1, 0, 3, 1, 1], [0, 1, 2, 1, 0, 0], [0] * 6):
        crops = crops[:2 * axes]
        pairs = [tuple(crops[i:i + 2]) for i in range(0, 2 * axes, 2)]
        pair = pairs[0] if axes == 1 else tuple(pairs)
        crop = {1: keras.layers.Cropping1D, 2: keras.layers.Cropping2D, 3: keras.layers.Cropping3D}[axes]
        by_keras(f'layer_cropping{axes}d', crop(pair), normal(*shape), crops=crops)


# ---- embeddings ----


def embeddings():
    op = 'layer_embedding'
    for ids, count, width in ((integers(5, 4), 5, 3), (integers(3, 3, 5), 3, 2), (integers(7, 2, 3, 2), 7, 1), (integers(1, 1, 1), 1, 1)):
        table = normal(count, width)
        by_keras(op, keras.layers.Embedding(count, width), ids, (), {'embedding/table': table}, count=count, width=width, table_l1=0.01,
                 table_l2=0.02)
    for padding, ids in ((0, integers(4, 5, 3)), (3, integers(4, 3, 7)), (2, np.full((2, 2), 2, np.int32))):
        by_torch(op, lambda ids, table: F.embedding(ids.long(), table, padding_idx=padding), [ids], {'embedding/table': normal(4, 3)},
                 count=4, width=3, padding_id=padding, table_initializer='random_normal(1)')


def bags():
    op = 'layer_embedding_bag'

    def torch_bags(mode, padding=None):
        """One bag after the other, up to its length."""
        def run(ids, *rest):
            weights = rest[0] if sum(one.dtype == torch.float64 for one in rest) > 1 else None
            lengths = next((one for one in rest[:-1] if one.dtype == torch.int32), None)
            table, made = rest[-1], []
            for i, bag in enumerate(ids.reshape(-1, ids.shape[-1])):
                count = len(bag) if lengths is None else int(lengths.reshape(-1)[i])
                own = None if weights is None else weights.reshape(-1, ids.shape[-1])[i, :count]
                made.append(F.embedding_bag(bag[:count].long(), table, torch.zeros(1, dtype=torch.long), mode=mode, per_sample_weights=own,
                                            padding_idx=padding)[0])
            return torch.stack(made).reshape(*ids.shape[:-1], table.shape[1])
        return run

    def variables(count, width):
        return {'embedding_bag/table': distinct(count, width)}
    for mode in ('sum', 'mean', 'max'):
        by_torch(op, torch_bags(mode), [integers(6, 4, 3), None, None], variables(6, 2), count=6, width=2, combiner=mode, table_l1=0.01, table_l2=0.02)
        by_torch(op, torch_bags(mode), [integers(1, 1, 1), None, None], variables(1, 1), count=1, width=1, combiner=mode)
        by_torch(op, torch_bags(mode), [integers(5, 2, 3, 4), None, None], variables(5, 3), count=5, width=3, combiner=mode)
        by_torch(op, torch_bags(mode, 1), [np.asarray([[0, 1, 2], [1, 1, 1], [2, 1, 1], [3, 3, 0], [2, 0, 1]], np.int32), None, None],
                 variables(4, 3), count=4, width=3, combiner=mode, padding_id=1, table_initializer='random_normal(1)')
        ids, lengths = np.asarray([[0, 1, -1], [3, 99, 7], [-5, -6, -7], [3, 2, 1], [0, 2, 5]], np.int32), np.asarray([2, 1, 0, 3, 2], np.int32)
        by_torch(op, torch_bags(mode), [ids, None, lengths], variables(4, 3), count=4, width=3, combiner=mode)
        by_torch(op, torch_bags(mode, 0), [ids, None, lengths], variables(4, 3), count=4, width=3, combiner=mode, padding_id=0)
        by_torch(op, torch_bags(mode), [integers(5, 3, 2, 4), None, np.asarray([[4, 0], [1, 2], [3, 4]], np.int32)], variables(5, 2), count=5,
                 width=2, combiner=mode)
    by_torch(op, torch_bags('sum'), [integers(5, 4, 3), normal(4, 3), None], variables(5, 2), count=5, width=2, combiner='sum')
    by_torch(op, torch_bags('sum', 2), [integers(5, 7, 3), normal(7, 3), np.asarray([3, 0, 1, 2, 3, 3, 2], np.int32)], variables(5, 2), count=5,
             width=2, combiner='sum', padding_id=2)
    weighted_means(op, variables)


def weighted_means(op, variables):
    """By TensorFlow, whose means are divided by the sums of the weights."""
    def run(ids, weights, table):
        rows, columns = np.indices(ids.shape)
        places = np.stack([rows.reshape(-1), columns.reshape(-1)], 1).astype(np.int64)
        factors, params = tf.constant(weights.reshape(-1)), tf.constant(table)
        with tf.GradientTape() as tape:
            tape.watch([factors, params])
            result = tf.nn.embedding_lookup_sparse(params, tf.SparseTensor(places, ids.reshape(-1).astype(np.int64), ids.shape),
                                                   tf.SparseTensor(places, factors, ids.shape), combiner='mean')

        def backward(upstream):
            of_factors, of_table = tape.gradient(result, [factors, params], output_gradients=tf.constant(upstream))
            return None, of_factors.numpy().reshape(weights.shape), tf.convert_to_tensor(of_table).numpy()
        return result.numpy(), backward
    for shape, count in (((4, 3), 5), ((7, 1), 2), ((1, 5), 3)):
        weights = np.abs(normal(*shape)) + 0.25
        case(TENSORFLOW, op, run, [integers(count, *shape), weights.astype(np.float32).astype(np.float64), None], variables(count, 2),
             {'count': count, 'width': 2, 'combiner': 'mean'})


def rectangles():
    """Windows and steps that differ from axis to axis with same padding; and what Keras makes of a stride beyond the size."""
    layers = {2: (keras.layers.Conv2D, keras.layers.Conv2DTranspose), 3: (keras.layers.Conv3D, keras.layers.Conv3DTranspose)}
    for axes, (plain, transpose) in layers.items():
        sizes, strides = (2, 3, 1)[:axes], (2, 1, 2)[:axes]
        given = {'size': 1, 'sizes': list(sizes), 'strides': list(strides)}
        by_keras(f'layer_conv{axes}d', plain(2, sizes, strides=strides, padding='same'), normal(*SHAPES[axes]), filters=2, **given)
        by_keras(f'layer_conv{axes}d_transpose', transpose(2, sizes, strides=strides, padding='same'), normal(*SHAPES[axes]), filters=2,
                 **given)
        by_keras(f'layer_conv{axes}d_transpose', transpose(1, 1, strides=2, padding='valid'), normal(*SHAPES[axes]), filters=1, size=1,
                 stride=2, padding='valid', extra=[1] * axes)
    by_keras('layer_conv1d_transpose', keras.layers.Conv1DTranspose(2, 2, strides=3, padding='valid'), normal(3, 4, 2), filters=2, size=2,
             stride=3, padding='valid', extra=1)


def main(folder):
    for axes in (1, 2, 3):
        convolutions(axes)
        transposes(axes)
        if axes < 3:
            depthwise(axes)
            separable(axes)
        pools(axes)
        shapes(axes)
    embeddings()
    bags()
    rectangles()
    with open(os.path.join(folder, 'layers.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in DONE) + '\n]\n')
    print(f'{len(DONE)} cases of {len({one["op"] for one in DONE})} layers')


if __name__ == '__main__':
    main(sys.argv[1])
