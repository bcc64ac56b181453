#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_block_golden.py DIRECTORY: writes blocks.json, what some layers of PyTorch make of their inputs, and what they are after
some steps of training: constraints (those of Keras), normalized kernels, positions, transformers and residual blocks.

Each case is an entry of lib/nn/nn.yaml with its attributes, features and variables. The loss is the mean over rows of the sum
of (y - target)^2. There are the loss, the output and the gradients of the first step, and the variables and the loss of all
rows in evaluation after the last one. Features and variables are of single precision, everything is computed from them in
double precision.

Needs PyTorch and Keras 3; the file is kept in the tree, so building and testing do not.
"""
import json
import math
import os
import sys
from pathlib import Path

os.environ['KERAS_BACKEND'] = 'torch'
import keras  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402

keras.backend.set_floatx('float64')
torch.set_default_dtype(torch.float64)
RANDOM = torch.Generator().manual_seed(11)
torch.manual_seed(11)  # for the vectors that spectral_norm begins with
ROWS, STEPS = 6, 3


def numbers(*dims, scale=1.0):
    return (torch.randn(*dims, generator=RANDOM) * scale).to(torch.float32).to(torch.float64)


def shortest(number):
    """The shortest decimal of the same number in single precision."""
    texts = (f'{number:.{digits}g}' for digits in range(6, 10))
    return next((float(text) for text in texts if torch.tensor(float(text)).to(torch.float32).double() == number), number)


def given(tensor):
    """What the case begins with: numbers of single precision, or integers."""
    values = tensor.detach().reshape(-1).tolist()
    if not tensor.is_floating_point():
        return {'dtype': 'i32', 'dims': list(tensor.shape), 'values': values}
    return {'dtype': 'f32', 'dims': list(tensor.shape), 'values': [shortest(value) for value in values]}


def made_of(tensor):
    return {'dims': list(tensor.shape), 'values': [float(f'{value:.9g}') for value in tensor.detach().reshape(-1).tolist()]}


def typed(attributes):
    kinds = {bool: 'bool', int: 'i64', float: 'f64', str: 'string'}
    return {name: {kinds[type(value)]: value} for name, value in attributes.items()}


class View:
    """A variable as a part of a parameter of PyTorch, which it has in another order."""

    def __init__(self, parameter, order=lambda t: t):
        self.parameter, self.order = parameter, order

    def value(self):
        return self.order(self.parameter.detach()).contiguous()

    def gradient(self):
        return self.order(self.parameter.grad).contiguous()


def transposed(parameter):
    return View(parameter, lambda t: t.T)


def filters(parameter):
    """[filters, channels, height, width] as [height, width, channels, filters], or of other numbers of axes."""
    return View(parameter, lambda t: t.movedim((1, 0), (-2, -1)))


class Case:
    """`forward` gives y of features of one step, where x has been multiplied by the variable front, one number for each channel.
    `variables` are views by name, those in `kept` are not trained. `constrain` is called after each update."""

    def __init__(self, name, op, attributes, features, inputs, forward, variables, target, kept=(), constrain=None,
                 optimizer=('optimizer_sgd', {}, torch.optim.SGD, {}), rate=0.05, entries=(), module=None, outputs=1, whole_batch=False,
                 steps=STEPS):
        self.name, self.op, self.attributes, self.features, self.inputs = name, op, attributes, features, inputs
        self.forward, self.kept, self.target = forward, kept, target
        self.constrain, self.rate, self.entries, self.module, self.outputs = constrain, rate, entries, module, outputs
        self.optimizer, self.whole_batch, self.steps = optimizer, whole_batch, steps
        self.front = (1 + numbers(features['x'].shape[-1], scale=0.1)).to(torch.float32).to(torch.float64).requires_grad_()
        self.variables = {'front': View(self.front), **variables}

    def batch(self, step):
        rows = slice(step * ROWS, (step + 1) * ROWS)
        return {name: value[rows] for name, value in self.features.items()}, self.target[rows]

    def loss(self, step):
        features, target = self.batch(step)
        features['x'] = features['x'] * self.front
        y = self.forward(**features)
        return ((y - target) ** 2).reshape(ROWS, -1).sum(1).mean(), y

    def write(self):
        op, settings, kind, torch_settings = self.optimizer
        parameters = list({id(v.parameter): v.parameter for n, v in self.variables.items() if n not in self.kept}.values())
        optimizer = kind(parameters, lr=self.rate, **torch_settings)
        if self.module is not None:
            self.module.train()
        case = {'name': self.name, 'op': self.op, 'attributes': typed(self.attributes), 'entries': list(self.entries),
                'features': {n: given(v[:self.steps * ROWS]) for n, v in self.features.items()},
                'inputs': self.inputs, 'outputs': self.outputs, 'target': given(self.target[:self.steps * ROWS]), 'rows': ROWS, 'steps': self.steps,
                'whole_batch': self.whole_batch, 'optimizer': {'op': op, 'attributes': typed(settings)}, 'rate': self.rate,
                'variables': {name: given(view.value()) for name, view in self.variables.items()}}
        for step in range(self.steps):
            optimizer.zero_grad()
            loss, y = self.loss(step)
            loss.backward()
            if step == 0:
                case.update(loss=float(loss.detach()), output=made_of(y), gradients={
                    name: made_of(view.gradient()) for name, view in self.variables.items() if name not in self.kept})
            optimizer.step()
            if self.constrain is not None:
                self.constrain()
        case['after'] = {name: made_of(view.value()) for name, view in self.variables.items()}
        if self.module is not None:
            self.module.eval()
        case['evaluated'] = sum(float(self.loss(step)[0].detach()) for step in range(self.steps)) / self.steps
        return case


# ---- constraints -----------------------------------------------------------------------------------------------------


def keras_constraint(text, rank):
    """What Keras calls the constraint, along all axes but the last unless the text has others."""
    kind, _, arguments = text.rstrip(')').partition('(')
    axes, limit = list(range(max(rank - 1, 1))), 2.0
    for argument in filter(None, arguments.split(',')):
        name, _, value = argument.strip().rpartition('=')
        if name == 'axes':
            axes = [int(axis) for axis in value.split()]
        else:
            limit = float(value)
    made = {'max_norm': lambda: keras.constraints.MaxNorm(limit, axis=axes), 'unit_norm': lambda: keras.constraints.UnitNorm(axis=axes),
            'non_negative': keras.constraints.NonNeg}
    return made[kind]()


def apply(constraint, parameter):
    with torch.no_grad():
        parameter.copy_(constraint(parameter.detach().clone()))


class Muon:
    """PyTorch's of matrices, transposed and without its rounding to bf16; AdamW of vectors."""

    def __init__(self, parameters, lr):
        self.parameters = parameters
        self.ways = [(lambda t: t.T) if p.dim() == 2 else (lambda t: t) for p in parameters]
        self.copies = [way(p.detach()).clone().requires_grad_() for p, way in zip(parameters, self.ways)]
        matrices = [copy for copy in self.copies if copy.dim() == 2]
        vectors = [copy for copy in self.copies if copy.dim() == 1]
        self.optimizers = [torch.optim.Muon(matrices, lr=lr, weight_decay=0.0), torch.optim.AdamW(vectors, lr=lr, weight_decay=0.0)]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        rounded, torch.bfloat16 = torch.bfloat16, torch.float64
        with torch.no_grad():
            for copy, parameter, way in zip(self.copies, self.parameters, self.ways):
                copy.copy_(way(parameter))
                copy.grad = way(parameter.grad).clone()
            for optimizer in self.optimizers:
                optimizer.step()
            for copy, parameter, way in zip(self.copies, self.parameters, self.ways):
                parameter.copy_(way(copy))
        torch.bfloat16 = rounded


class Lamb:
    """Keras'."""

    def __init__(self, parameters, lr):
        self.parameters = parameters
        self.copies = [keras.Variable(p.detach().clone(), dtype='float64') for p in parameters]
        self.optimizer = keras.optimizers.Lamb(learning_rate=lr, epsilon=1e-6)
        self.optimizer.build(self.copies)

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        with torch.no_grad():
            for copy, parameter in zip(self.copies, self.parameters):
                copy.assign(parameter.detach())
            self.optimizer.apply([parameter.grad for parameter in self.parameters])
            for copy, parameter in zip(self.copies, self.parameters):
                parameter.copy_(copy.value)


OPTIMIZERS = {
    'muon': ('optimizer_muon', {}, Muon, {}),
    'lamb': ('optimizer_lamb', {}, Lamb, {}),
    'sgd': ('optimizer_sgd', {}, torch.optim.SGD, {}),
    'momentum': ('optimizer_sgd', {'momentum': 0.9}, torch.optim.SGD, {'momentum': 0.9}),
    'adam': ('optimizer_adam', {}, torch.optim.Adam, {'eps': 1e-7}),
    'adagrad': ('optimizer_adagrad', {}, torch.optim.Adagrad, {}),
    'nadam': ('optimizer_nadam', {}, torch.optim.NAdam, {}),
}


def dense_constraints():
    cases = [('sgd', 'max_norm(0.7)'), ('momentum', 'max_norm(limit=1.1, axes=1)'), ('adam', 'max_norm(1, axes=0 1)'), ('sgd', 'max_norm'),
             ('nadam', 'max_norm(0.6)'), ('sgd', 'unit_norm'), ('adagrad', 'unit_norm(axes=-1)'), ('adam', 'unit_norm'),
             ('muon', 'max_norm(0.5)'), ('muon', 'unit_norm(axes=1)'), ('muon', 'non_negative'), ('lamb', 'max_norm(0.7)'),
             ('lamb', 'unit_norm'), ('sgd', 'non_negative'), ('nadam', 'non_negative'), ('momentum', 'non_negative')]
    for optimizer, text in cases:
        for units in (1, 5):
            x, kernel, bias = numbers(ROWS * STEPS, 3), numbers(3, units).requires_grad_(), numbers(units).requires_grad_()
            constraint = keras_constraint(text, 2)
            yield Case(f'{text} of dense by {optimizer}', 'layer_dense', {'units': units, 'kernel_constraint': text}, {'x': x}, ['x'],
                       lambda x, kernel=kernel, bias=bias: x @ kernel + bias,
                       {'dense/kernel': View(kernel), 'dense/bias': View(bias)}, numbers(ROWS * STEPS, units),
                       constrain=lambda c=constraint, k=kernel: apply(c, k), optimizer=OPTIMIZERS[optimizer], rate=0.2)


def other_constraints():
    for optimizer, text in (('sgd', 'max_norm(0.8)'), ('adam', 'unit_norm'), ('nadam', 'max_norm(0.5, axes=0 2)'), ('momentum', 'non_negative'),
                            ('nadam', 'unit_norm(axes=1 -1)')):
        x, kernel = numbers(ROWS * STEPS, 4, 3, 2), numbers(3, 3, 2, 4, scale=0.5).requires_grad_()
        constraint = keras_constraint(text, 4)
        yield Case(f'{text} of conv2d by {optimizer}', 'layer_conv2d', {'filters': 4, 'size': 3, 'use_bias': False, 'kernel_constraint': text},
                   {'x': x}, ['x'], lambda x, k=kernel: F.conv2d(x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1),
                   {'conv2d/kernel': View(kernel)}, numbers(ROWS * STEPS, 4, 3, 4), constrain=lambda c=constraint, k=kernel: apply(c, k),
                   optimizer=OPTIMIZERS[optimizer], rate=0.02)
    for optimizer, of_kernel, of_bias in (('sgd', 'unit_norm', 'max_norm(0.5)'), ('nadam', 'max_norm(0.5)', 'unit_norm'),
                                          ('adam', 'max_norm', 'non_negative')):
        x, kernel, bias = numbers(ROWS * STEPS, 4), numbers(4, 3).requires_grad_(), numbers(3).requires_grad_()

        def constrain(k=kernel, b=bias, first=keras_constraint(of_kernel, 2), second=keras_constraint(of_bias, 1)):
            apply(first, k), apply(second, b)
        entries = [{'op': 'parameter_constraint', 'attributes': typed({'pattern': pattern, 'constraint': text})}
                   for pattern, text in (('*/kernel', of_kernel), ('dense/b?as', of_bias))]
        yield Case(f'{of_kernel} and {of_bias} by {optimizer}', 'layer_dense', {'units': 3}, {'x': x}, ['x'],
                   lambda x, k=kernel, b=bias: x @ k + b, {'dense/kernel': View(kernel), 'dense/bias': View(bias)},
                   numbers(ROWS * STEPS, 3), constrain=constrain, optimizer=OPTIMIZERS[optimizer], rate=0.2, entries=entries)


# ---- normalized kernels ----------------------------------------------------------------------------------------------


def normalized(kind, module, order):
    """The module with its kernel normalized, and its variables behind the scope."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape, scale=0.7))
    if kind == 'weight_norm':
        module = parametrizations.weight_norm(module)
        made = module.parametrizations.weight
        with torch.no_grad():
            made.original0.copy_(numbers(*made.original0.shape))
        variables = {'kernel_scale': View(made.original0, lambda t: t.reshape(-1)), 'kernel': order(made.original1)}
    else:
        module = parametrizations.spectral_norm(module)
        made = module.parametrizations.weight
        for buffer in (made[0]._u, made[0]._v):
            buffer.copy_(buffer.to(torch.float32))
        # PyTorch has inputs as [channels, height, width], a kernel has them as [height, width, channels].
        weight = made.original
        inputs = weight.shape[1:] if weight.dim() > 2 else None
        right = (lambda t: t.reshape(inputs).movedim(0, -1).reshape(-1)) if inputs else (lambda t: t)
        variables = {'kernel': order(weight), 'kernel_left': View(made[0]._u), 'kernel_right': View(made[0]._v, right)}
    if module.bias is not None:
        variables['bias'] = View(module.bias)
    return module, variables


def normalized_kernels():
    for kind in ('weight_norm', 'spectral_norm'):
        for inputs, units in ((3, 4), (5, 1), (1, 3)):
            module, variables = normalized(kind, nn.Linear(inputs, units), transposed)
            yield Case(f'{kind} of dense {inputs} to {units}', 'layer_dense', {'units': units, 'kernel_normalization': kind},
                       {'x': numbers(ROWS * STEPS, inputs)}, ['x'], lambda x, m=module: m(x), {f'dense/{n}': v for n, v in variables.items()},
                       numbers(ROWS * STEPS, units), kept=('dense/kernel_left', 'dense/kernel_right'), module=module)
        convolutions = (('conv2d', {'filters': 4, 'size': 3}, nn.Conv2d(2, 4, 3, padding=1)),
                        ('conv2d', {'filters': 4, 'size': 1, 'groups': 2, 'use_bias': False}, nn.Conv2d(2, 4, 1, groups=2, bias=False)),
                        ('depthwise_conv2d', {'size': 3, 'multiplier': 2}, nn.Conv2d(2, 4, 3, padding=1, groups=2)))
        for layer, attributes, module in convolutions:
            module, variables = normalized(kind, module, filters)
            yield Case(f'{kind} of {layer}', f'layer_{layer}', {**attributes, 'kernel_normalization': kind},
                       {'x': numbers(ROWS * STEPS, 3, 4, 2)}, ['x'],
                       lambda x, m=module: m(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), {f'{layer}/{n}': v for n, v in variables.items()},
                       numbers(ROWS * STEPS, 3, 4, 4), kept=(f'{layer}/kernel_left', f'{layer}/kernel_right'), module=module, rate=0.01,
                       optimizer=OPTIMIZERS['momentum'])


def normalized_sequences_and_volumes():
    """The same of convolutions of one axis and of three."""
    for kind in ('weight_norm', 'spectral_norm'):
        for layer, attributes, module, sides in (
                ('conv1d', {'filters': 3, 'size': 3}, nn.Conv1d(2, 3, 3, padding=1), (5,)),
                ('depthwise_conv1d', {'size': 3, 'multiplier': 2}, nn.Conv1d(2, 4, 3, padding=1, groups=2), (4,)),
                ('conv3d', {'filters': 2, 'size': 3}, nn.Conv3d(2, 2, 3, padding=1), (2, 3, 2))):
            module, variables = normalized(kind, module, filters)
            results = module.out_channels
            yield Case(f'{kind} of {layer}', f'layer_{layer}', {**attributes, 'kernel_normalization': kind},
                       {'x': numbers(ROWS * STEPS, *sides, 2)}, ['x'], lambda x, m=module: m(x.movedim(-1, 1)).movedim(1, -1),
                       {f'{layer}/{n}': v for n, v in variables.items()}, numbers(ROWS * STEPS, *sides, results),
                       kept=(f'{layer}/kernel_left', f'{layer}/kernel_right'), module=module, rate=0.01)


# ---- positions -------------------------------------------------------------------------------------------------------


def sinusoids(positions, channels, base):
    """As the paper has them, channel by channel."""
    table = torch.zeros(*positions.shape, channels)
    for channel in range(channels):
        angle = positions.double() / base ** (2 * (channel // 2) / channels)
        table[..., channel] = torch.sin(angle) if channel % 2 == 0 else torch.cos(angle)
    return table


def turned(x, positions, base, pairs):
    """Pairs of channels as complex numbers, times exp(i angle). x [batch, length, ..., channels]"""
    channels = x.shape[-1]
    first, second = (x[..., :channels // 2], x[..., channels // 2:]) if pairs == 'halves' else (x[..., 0::2], x[..., 1::2])
    rates = torch.tensor([base ** (-2 * i / channels) for i in range(channels // 2)])
    angles = positions.double()[..., None] * rates
    angles = angles.reshape(*angles.shape[:-1], *[1] * (x.dim() - 3), channels // 2)
    made = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)
    if pairs == 'halves':
        return torch.cat([made.real, made.imag], -1)
    return torch.stack([made.real, made.imag], -1).reshape(x.shape)


def positions():
    count = ROWS * STEPS
    far = torch.randint(0, 5000, (count, 4), generator=RANDOM, dtype=torch.int32)
    for channels in (6, 5, 1):
        for where in (None, far):
            x = numbers(count, 4, channels)
            features = {'x': x} if where is None else {'x': x, 'positions': where}

            def forward(x, positions=None, channels=channels, base=10000.0 if where is None else 77.0):
                return x + sinusoids(torch.arange(4) if positions is None else positions, channels, base)
            yield Case('sinusoidal positions', 'layer_sinusoidal_positions', {} if where is None else {'base': 77.0}, features,
                       list(features), forward, {}, numbers(count, 4, channels), steps=1)
    for where in (None, far % 7):
        x, table = numbers(count, 4, 3), numbers(7, 3).requires_grad_()
        features = {'x': x} if where is None else {'x': x, 'positions': where}
        yield Case('learned positions', 'layer_learned_positions', {'count': 7}, features, list(features),
                   lambda x, positions=None, t=table: x + (t[:4] if positions is None else t[positions.long()]),
                   {'learned_positions/positions': View(table)}, numbers(count, 4, 3))
    for pairs in ('halves', 'adjacent'):
        for shape, where in (((4, 3, 6), None), ((4, 2), far), ((4, 1, 4), far)):
            x = numbers(count, *shape)
            features = {'x': x} if where is None else {'x': x, 'positions': where}
            base = 10000.0 if where is None else 50.0
            yield Case(f'rotary positions of {pairs}', 'layer_rotary_positions', {'rotary_pairs': pairs, 'base': base}, features, list(features),
                       lambda x, positions=None, p=pairs, b=base: turned(x, torch.arange(4) if positions is None else positions, b, p),
                       {}, numbers(count, *shape), steps=1)


# ---- blocks ----------------------------------------------------------------------------------------------------------


def attention_views(attention, scope, has_memory, has_bias):
    channels = attention.embed_dim
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    parts = {'query': slice(0, channels), 'memory': slice(channels, 3 * channels)} if has_memory else {'input': slice(0, 3 * channels)}
    views = {}
    for name, part in parts.items():
        views[f'{scope}/{name}_kernel'] = View(weight, lambda t, p=part: t[p].T)
        if has_bias:
            views[f'{scope}/{name}_bias'] = View(bias, lambda t, p=part: t[p])
    views[f'{scope}/output_kernel'] = transposed(attention.out_proj.weight)
    if has_bias:
        views[f'{scope}/output_bias'] = View(attention.out_proj.bias)
    return views


def block_views(module, scope, has_bias):
    is_decoder = hasattr(module, 'multihead_attn')
    views = attention_views(module.self_attn, f'{scope}/self_attention', False, has_bias)
    norms = [('attention_norm', module.norm1), ('output_norm', module.norm3 if is_decoder else module.norm2)]
    if is_decoder:
        views.update(attention_views(module.multihead_attn, f'{scope}/cross_attention', True, has_bias))
        norms.append(('cross_norm', module.norm2))
    for name, norm in norms:
        views[f'{scope}/{name}/scale'] = View(norm.weight)
        if has_bias:
            views[f'{scope}/{name}/offset'] = View(norm.bias)
    for name, dense in (('hidden', module.linear1), ('output', module.linear2)):
        views[f'{scope}/{name}/kernel'] = transposed(dense.weight)
        if has_bias:
            views[f'{scope}/{name}/bias'] = View(dense.bias)
    return views


def made(kind, channels, heads, hidden, **settings):
    module = kind(channels, heads, hidden, dropout=0.0, batch_first=True, **settings)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape, scale=0.4))
    return module


def masked(lengths, length):
    return torch.arange(length) >= lengths[:, None]


CAUSAL = nn.Transformer.generate_square_subsequent_mask


def encoders():
    count, settings = ROWS * STEPS, ((False, 'relu', 1e-5, True, False), (True, 'gelu', 1e-3, True, True), (False, 'gelu', 1e-5, False, True),
                                     (True, 'relu', 1e-5, False, False))
    for pre_norm, activation, epsilon, has_bias, causal in settings:
        for has_lengths in (False, True):
            module = made(nn.TransformerEncoderLayer, 6, 2, 5, activation=activation, layer_norm_eps=epsilon, norm_first=pre_norm,
                          bias=has_bias)
            features = {'x': numbers(count, 5, 6)}
            if has_lengths:
                features['lengths'] = torch.randint(1, 6, (count,), generator=RANDOM, dtype=torch.int32)

            def forward(x, lengths=None, m=module, causal=causal):
                bias = None if lengths is None else torch.zeros(ROWS, 5).masked_fill(masked(lengths, 5), -math.inf)
                return m(x, src_mask=CAUSAL(5) if causal else None, src_key_padding_mask=bias)
            yield Case('encoder', 'layer_transformer_encoder',
                       {'heads': 2, 'hidden': 5, 'pre_norm': pre_norm, 'activation': activation, 'epsilon': epsilon, 'use_bias': has_bias,
                        'causal': causal}, features, list(features), forward, block_views(module, 'transformer_encoder', has_bias),
                       numbers(count, 5, 6), module=module, rate=0.01)


def decoders():
    count = ROWS * STEPS
    for pre_norm, activation, has_bias in ((False, 'relu', True), (True, 'gelu', True), (True, 'relu', False)):
        for has_lengths in (False, True):
            module = made(nn.TransformerDecoderLayer, 4, 2, 3, activation=activation, norm_first=pre_norm, bias=has_bias)
            features = {'x': numbers(count, 3, 4), 'memory': numbers(count, 5, 4)}
            if has_lengths:
                features['lengths'] = torch.randint(1, 4, (count,), generator=RANDOM, dtype=torch.int32)
                features['memory_lengths'] = torch.randint(1, 6, (count,), generator=RANDOM, dtype=torch.int32)

            def forward(x, memory, lengths=None, memory_lengths=None, m=module):
                def bias(lengths, length):
                    return None if lengths is None else torch.zeros(ROWS, length).masked_fill(masked(lengths, length), -math.inf)
                return m(x, memory, tgt_mask=CAUSAL(3), tgt_key_padding_mask=bias(lengths, 3), memory_key_padding_mask=bias(memory_lengths, 5))
            yield Case('decoder', 'layer_transformer_decoder',
                       {'heads': 2, 'hidden': 3, 'pre_norm': pre_norm, 'activation': activation, 'use_bias': has_bias}, features,
                       list(features), forward, block_views(module, 'transformer_decoder', has_bias), numbers(count, 3, 4),
                       module=module, rate=0.01, outputs=3)
    for pre_norm in (False, True):  # without a memory it is an encoder's block that is causal
        module = made(nn.TransformerEncoderLayer, 4, 1, 6, norm_first=pre_norm)
        yield Case('decoder without a memory', 'layer_transformer_decoder', {'heads': 1, 'hidden': 6, 'pre_norm': pre_norm},
                   {'x': numbers(count, 4, 4)}, ['x'], lambda x, m=module: m(x, src_mask=CAUSAL(4)),
                   block_views(module, 'transformer_decoder', True), numbers(count, 4, 4), module=module, rate=0.01, outputs=3)


class Rotary(nn.Module):
    """Attention of x to itself with queries and keys turned by their positions; several query heads share a key head."""

    def __init__(self, heads, key_heads, size, channels, base, pairs):
        super().__init__()
        self.heads, self.key_heads, self.size, self.base, self.pairs = heads, key_heads, size, base, pairs
        width = (heads + 2 * key_heads) * size
        self.kernel, self.bias = nn.Parameter(numbers(channels, width, scale=0.5)), nn.Parameter(numbers(width, scale=0.5))
        self.output, self.last = nn.Parameter(numbers(heads * size, channels, scale=0.5)), nn.Parameter(numbers(channels))

    def forward(self, x):
        q, k, v = (x @ self.kernel + self.bias).split([n * self.size for n in (self.heads, self.key_heads, self.key_heads)], -1)
        q, k, v = (t.reshape(*x.shape[:2], -1, self.size) for t in (q, k, v))
        q, k = (turned(t, torch.arange(x.shape[1]), self.base, self.pairs) for t in (q, k))
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True)
        return y.transpose(1, 2).reshape(*x.shape[:2], -1) @ self.output + self.last


def rotary_attentions():
    for pairs, heads, key_heads, size in (('halves', 2, 2, 4), ('adjacent', 4, 2, 2)):
        module = Rotary(heads, key_heads, size, 3, 100.0, pairs)
        views = {f'multi_head_attention/{name}': View(value) for name, value in (
            ('input_kernel', module.kernel), ('input_bias', module.bias), ('output_kernel', module.output), ('output_bias', module.last))}
        yield Case('rotary attention', 'layer_multi_head_attention',
                   {'heads': heads, 'key_heads': key_heads, 'head_channels': size, 'causal': True, 'rotary_base': 100.0, 'rotary_pairs': pairs},
                   {'x': numbers(ROWS * STEPS, 5, 3)}, ['x'], module, views, numbers(ROWS * STEPS, 5, 3), module=module, rate=0.02)


class Residual(nn.Module):
    """The basic block of ResNet; its batch norms keep variances that divide by n, as Keras' do."""

    def __init__(self, channels, filters, stride):
        super().__init__()
        self.steps = nn.ModuleDict({'first': nn.Conv2d(channels, filters, 3, stride, 1, bias=False),
                                    'second': nn.Conv2d(filters, filters, 3, 1, 1, bias=False)})
        if stride != 1 or channels != filters:
            self.steps['shortcut'] = nn.Conv2d(channels, filters, 1, stride, bias=False)
        self.norms = nn.ModuleDict({name: nn.BatchNorm2d(filters, 1e-3, 0.1) for name in self.steps})
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(numbers(*parameter.shape, scale=0.5))

    def normalized(self, name, x):
        x, norm = self.steps[name](x), self.norms[name]
        if not self.training:
            return norm(x)
        made = x.detach()
        for running, batch in ((norm.running_mean, made.mean((0, 2, 3))), (norm.running_var, made.var((0, 2, 3), unbiased=False))):
            running.copy_(0.9 * running + 0.1 * batch)
        return F.batch_norm(x, None, None, norm.weight, norm.bias, True, eps=norm.eps)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2)
        y = self.normalized('second', F.relu(self.normalized('first', x)))
        return F.relu(y + (self.normalized('shortcut', x) if 'shortcut' in self.steps else x)).permute(0, 2, 3, 1)


def residuals():
    for channels, made_filters, stride, height in ((3, 3, 1, 4), (2, 3, 1, 3), (2, 2, 2, 5), (3, 4, 2, 4)):
        module = Residual(channels, made_filters, stride)
        views, kept = {}, []
        for name in module.steps:
            scope, norm = f'residual_block2d/{name}', module.norms[name]
            views[f'{scope}/kernel'] = filters(module.steps[name].weight)
            views[f'{scope}/batch_norm/scale'], views[f'{scope}/batch_norm/offset'] = View(norm.weight), View(norm.bias)
            views[f'{scope}/batch_norm/running_mean'] = View(norm.running_mean)
            views[f'{scope}/batch_norm/running_variance'] = View(norm.running_var)
            kept += [f'{scope}/batch_norm/running_mean', f'{scope}/batch_norm/running_variance']
        side = -(-height // stride)
        yield Case('residual block', 'layer_residual_block2d', {'filters': made_filters, 'stride': stride, 'momentum': 0.9},
                   {'x': numbers(ROWS * STEPS, height, height, channels)}, ['x'], module, views,
                   numbers(ROWS * STEPS, side, side, made_filters), kept=kept, module=module, rate=0.002, whole_batch=True)


def main():
    makers = (dense_constraints, other_constraints, normalized_kernels, positions, rotary_attentions, encoders, decoders, residuals,
              normalized_sequences_and_volumes)
    lines = [json.dumps(case.write()) for maker in makers for case in maker()]
    Path(sys.argv[1], 'blocks.json').write_text('[\n' + ',\n'.join(lines) + '\n]\n', encoding='utf-8')


if __name__ == '__main__':
    main()
