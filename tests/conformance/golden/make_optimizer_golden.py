#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_optimizer_golden.py DIRECTORY: writes optimizers.json, what optimizers of PyTorch, Keras, Optax and timm make of three
variables, two matrices and a vector, in 100 steps with given gradients.

Everything is computed in double precision, from weights and gradients of single precision. Some gradients are zero, in one
case all of an element or of a variable, some are large and some small. Some cases have a learning rate that falls.

Needs PyTorch, Keras 3, Optax and timm; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import random
import struct
import sys

os.environ['KERAS_BACKEND'] = 'torch'
import jax  # noqa: E402
import keras  # noqa: E402
import optax  # noqa: E402
import timm  # noqa: E402
import timm.optim  # noqa: E402
import torch  # noqa: E402

jax.config.update('jax_enable_x64', True)
keras.backend.set_floatx('float64')
torch.set_default_dtype(torch.float64)
SHAPES = {'kernel': [7, 3], 'wide': [2, 5], 'bias': [5]}
STEPS, KEPT = 100, (1, 2, 9, 100)
RANDOM = random.Random(20261129)


SIZES = (1e-3, 1.0, 1e3)


def single(number):
    """The shortest decimal that is the same number in single precision, as itself."""
    packed = struct.pack('f', number)
    texts = (f"{struct.unpack('f', packed)[0]:.{digits}g}" for digits in range(6, 10))
    return next(float(text) for text in texts if struct.pack('f', float(text)) == packed)


def numbers(shape, size):
    return [single(size * RANDOM.gauss(0, 1)) for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1))]


def gradients(size):
    """Of each step; the first element of each variable never gets one, and the whole bias none in the last ten steps."""
    for step in range(STEPS):
        made = {name: numbers(shape, size) for name, shape in SHAPES.items()}
        for name, values in made.items():
            values[0] = 0.0
            if step % 7 == 3:
                values[1] = 0.0
            if name == 'bias' and step >= STEPS - 10:
                values[:] = [0.0] * len(values)
        yield made


def rates(first, falls):
    """As tutti_schedule_exponential with a decay of 0.5 in 50 steps."""
    return [single(first) * 0.5 ** (step / 50) if falls else single(first) for step in range(STEPS)]


class Torch:
    """Of PyTorch and of timm."""

    def __init__(self, kind, weights, **settings):
        self.weights = [torch.tensor(weights[name]).reshape(shape).requires_grad_() for name, shape in SHAPES.items()]
        self.optimizer = kind(self.weights, **settings)

    def step(self, gradients, rate):
        for group in self.optimizer.param_groups:
            group['lr'] = rate
        for weight, shape, gradient in zip(self.weights, SHAPES.values(), gradients.values()):
            weight.grad = torch.tensor(gradient).reshape(shape)
        self.optimizer.step()

    def values(self):
        return [weight.detach().reshape(-1).tolist() for weight in self.weights]


class Muon(Torch):
    """PyTorch's, of transposed matrices and without its rounding to bf16; AdamW of vectors."""

    def __init__(self, kind, weights, vector_rate=1.0, **settings):
        super().__init__(torch.optim.SGD, weights)
        self.matrices = [weight.detach().T.clone().requires_grad_() for weight in self.weights if weight.dim() == 2]
        self.vectors = [weight for weight in self.weights if weight.dim() == 1]
        self.optimizers = [kind(self.matrices, **settings), torch.optim.AdamW(self.vectors, weight_decay=settings['weight_decay'])]
        self.vector_rate = vector_rate

    def step(self, gradients, rate):
        given = [torch.tensor(gradient).reshape(shape) for gradient, shape in zip(gradients.values(), SHAPES.values())]
        for weight, gradient in zip(self.matrices, [one for one in given if one.dim() == 2]):
            weight.grad = gradient.T.clone()
        for weight, gradient in zip(self.vectors, [one for one in given if one.dim() == 1]):
            weight.grad = gradient
        rounded, torch.bfloat16 = torch.bfloat16, torch.float64
        for optimizer, now in zip(self.optimizers, (rate, rate * self.vector_rate)):
            optimizer.param_groups[0]['lr'] = now
            optimizer.step()
        torch.bfloat16 = rounded

    def values(self):
        matrices, vectors = iter(self.matrices), iter(self.vectors)
        return [(next(matrices).detach().T if len(shape) == 2 else next(vectors).detach()).reshape(-1).tolist()
                for shape in SHAPES.values()]


class Keras:
    def __init__(self, kind, weights, **settings):
        self.weights = [keras.Variable(torch.tensor(weights[name]).reshape(shape), dtype='float64') for name, shape in SHAPES.items()]
        self.optimizer = kind(**settings)
        self.optimizer.build(self.weights)

    def step(self, gradients, rate):
        self.optimizer.learning_rate = rate
        self.optimizer.apply([torch.tensor(gradient).reshape(shape) for gradient, shape in zip(gradients.values(), SHAPES.values())])

    def values(self):
        return [keras.ops.convert_to_numpy(weight).reshape(-1).tolist() for weight in self.weights]


class Optax:
    def __init__(self, kind, weights, **settings):
        self.weights = [jax.numpy.array(weights[name]).reshape(shape) for name, shape in SHAPES.items()]
        self.optimizer = optax.inject_hyperparams(kind)(learning_rate=1.0, **settings)
        self.state = self.optimizer.init(self.weights)

    def step(self, gradients, rate):
        self.state.hyperparams['learning_rate'] = rate
        given = [jax.numpy.array(gradient).reshape(shape) for gradient, shape in zip(gradients.values(), SHAPES.values())]
        updates, self.state = self.optimizer.update(given, self.state, self.weights)
        self.weights = optax.apply_updates(self.weights, updates)

    def values(self):
        return [weight.reshape(-1).tolist() for weight in self.weights]


MAKERS = {Torch: f'PyTorch {torch.__version__}', Muon: f'PyTorch {torch.__version__}', Keras: f'Keras {keras.__version__}', Optax: f'Optax {optax.__version__}'}


TYPES = {bool: 'bool', float: 'f64', int: 'i64', str: 'string'}


def case(op, attributes, library, kind, settings, rate=0.05, falls=False, size=1.0):
    optimizer, kept = library(kind, WEIGHTS, **settings), {}
    for step, (given, now) in enumerate(zip(GRADIENTS[size], rates(rate, falls))):
        optimizer.step(given, now)
        if step + 1 in KEPT:
            kept[step + 1] = dict(zip(SHAPES, [[float(f'{number:.9g}') for number in values] for values in optimizer.values()]))
    maker = f'timm {timm.__version__}' if kind.__module__.startswith('timm') else MAKERS[library]
    typed = {name: {TYPES[type(value)]: value} for name, value in attributes.items()}
    return {'op': f'optimizer_{op}', 'made_by': maker, 'attributes': typed, 'rate': single(rate), 'falls': falls,
            'gradients': SIZES.index(size), 'after': kept}


WEIGHTS = {name: numbers(shape, 1.0) for name, shape in SHAPES.items()}
GRADIENTS = {size: list(gradients(size)) for size in SIZES}


def torch_cases():
    optim = torch.optim
    for kind, op in ((optim.Adam, 'adam'), (optim.AdamW, 'adamw')):
        decay = {'weight_decay': 0.01} if op == 'adamw' else {}
        yield op, {'amsgrad': True, **decay}, kind, {'amsgrad': True, **decay}
        yield op, {'amsgrad': True, 'beta1': 0.8, 'beta2': 0.9, 'epsilon': 1e-3, **decay}, kind, {
            'amsgrad': True, 'betas': (0.8, 0.9), 'eps': 1e-3, **decay}
    yield 'adagrad', {}, optim.Adagrad, {}
    yield 'adagrad', {'rate_decay': 0.03, 'initial_sum': 0.1, 'weight_decay': 0.02, 'epsilon': 1e-4}, optim.Adagrad, {
        'lr_decay': 0.03, 'initial_accumulator_value': 0.1, 'weight_decay': 0.02, 'eps': 1e-4}
    yield 'adadelta', {}, optim.Adadelta, {}
    yield 'adadelta', {'rho': 0.7, 'epsilon': 1e-3, 'weight_decay': 0.02}, optim.Adadelta, {'rho': 0.7, 'eps': 1e-3, 'weight_decay': 0.02}
    for centered in (False, True):
        for momentum in (0.0, 0.9):
            yield 'rmsprop', {'centered': centered, 'momentum': momentum}, optim.RMSprop, {'centered': centered, 'momentum': momentum}
    yield 'rmsprop', {'rho': 0.8, 'epsilon': 1e-3, 'weight_decay': 0.02}, optim.RMSprop, {'alpha': 0.8, 'eps': 1e-3, 'weight_decay': 0.02}
    yield 'adamax', {}, optim.Adamax, {}
    yield 'adamax', {'beta1': 0.8, 'beta2': 0.9, 'epsilon': 1e-3, 'weight_decay': 0.02}, optim.Adamax, {
        'betas': (0.8, 0.9), 'eps': 1e-3, 'weight_decay': 0.02}
    yield 'nadam', {}, optim.NAdam, {}
    yield 'nadam', {'beta1': 0.8, 'beta2': 0.9, 'momentum_decay': 1.0}, optim.NAdam, {'betas': (0.8, 0.9), 'momentum_decay': 1.0}
    yield 'nadam', {'epsilon': 0.1, 'weight_decay': 0.02}, optim.NAdam, {'eps': 0.1, 'weight_decay': 0.02}
    for nesterov in (False, True):
        yield 'lars', {'nesterov': nesterov, 'weight_decay': 0.01}, timm.optim.Lars, {
            'momentum': 0.9, 'nesterov': nesterov, 'weight_decay': 0.01, 'trust_coeff': 0.001, 'eps': 0.0}
    yield 'lars', {'momentum': 0.5, 'trust': 0.1, 'epsilon': 0.01}, timm.optim.Lars, {
        'momentum': 0.5, 'trust_coeff': 0.1, 'eps': 0.01, 'always_adapt': True}


def cases():
    for op, attributes, kind, settings in torch_cases():
        for falls in (False, True):
            yield case(op, attributes, Torch, kind, settings, falls=falls)
    for op, attributes, kind, settings in torch_cases():
        if op in ('adamax', 'nadam', 'adagrad', 'adadelta'):
            for size in (1e-3, 1e3):
                yield case(op, attributes, Torch, kind, settings, size=size)
    for falls in (False, True):
        yield case('muon', {}, Muon, torch.optim.Muon, {'weight_decay': 0.0}, falls=falls)
        yield case('muon', {'momentum': 0.8, 'nesterov': False, 'rounds': 3, 'weight_decay': 0.05, 'vector_rate': 0.3}, Muon,
                   torch.optim.Muon, {'momentum': 0.8, 'nesterov': False, 'ns_steps': 3, 'weight_decay': 0.05, 'vector_rate': 0.3}, falls=falls)
        yield case('muon', {'scale': 'like_adam'}, Muon, torch.optim.Muon, {
            'weight_decay': 0.0, 'adjust_lr_fn': 'match_rms_adamw'}, falls=falls)
    optimizers = keras.optimizers
    yield case('lion', {}, Keras, optimizers.Lion, {'beta_1': 0.9, 'beta_2': 0.99})
    yield case('lion', {'beta1': 0.7, 'beta2': 0.95, 'weight_decay': 0.1}, Keras, optimizers.Lion,
               {'beta_1': 0.7, 'beta_2': 0.95, 'weight_decay': 0.1}, falls=True)
    for falls in (False, True):
        yield case('lion', {'weight_decay': 0.1}, Optax, optax.lion, {'b1': 0.9, 'b2': 0.99, 'weight_decay': 0.1}, falls=falls)
    for falls in (False, True):
        yield case('ftrl', {}, Keras, optimizers.Ftrl, {}, falls=falls)
        yield case('ftrl', {'l1': 0.3, 'l2': 0.2, 'l2_shrinkage': 0.1, 'beta': 0.5}, Keras, optimizers.Ftrl, {
            'l1_regularization_strength': 0.3, 'l2_regularization_strength': 0.2, 'l2_shrinkage_regularization_strength': 0.1,
            'beta': 0.5}, falls=falls)
        yield case('ftrl', {'rate_power': -0.3, 'initial_sum': 1.0}, Keras, optimizers.Ftrl, {
            'learning_rate_power': -0.3, 'initial_accumulator_value': 1.0}, falls=falls)
        yield case('lamb', {}, Keras, optimizers.Lamb, {'epsilon': 1e-6}, falls=falls)
        yield case('lamb', {'weight_decay': 0.1, 'beta1': 0.8, 'beta2': 0.95, 'epsilon': 1e-3}, Optax, optax.lamb, {
            'weight_decay': 0.1, 'b1': 0.8, 'b2': 0.95, 'eps': 1e-3}, falls=falls)


def main():
    given = [{name: [step[name] for step in GRADIENTS[size]] for name in SHAPES} for size in SIZES]
    made = {'shapes': SHAPES, 'weights': WEIGHTS, 'gradients': given}
    with open(os.path.join(sys.argv[1], 'optimizers.json'), 'w', encoding='utf-8') as file:
        file.write(json.dumps(made, separators=(',', ':'))[:-1] + ',"cases":[\n')
        file.write(',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases()) + '\n]}\n')


main()
