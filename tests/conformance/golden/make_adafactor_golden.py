#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_adafactor_golden.py DIRECTORY: writes adafactor.json, what Adafactor of PyTorch, Keras and Optax makes of variables of
0 to 4 axes, some of length 1, in 100 steps with given gradients. In the form of make_optimizer_golden.py.

Everything is computed in double precision, from weights and gradients of single precision. Some gradients are zero, in one
case all of an element, a row or a variable, some are large and some small, less than the epsilon that variables of single
precision have. Some cases have a learning rate that falls.

Needs PyTorch, Keras 3 and Optax; the file is kept in the tree, so building and testing do not.
"""
import json
import math
import os
import random
import struct
import sys

os.environ['KERAS_BACKEND'] = 'torch'
import jax  # noqa: E402
import keras  # noqa: E402
import optax  # noqa: E402
import torch  # noqa: E402

jax.config.update('jax_enable_x64', True)
keras.backend.set_floatx('float64')
torch.set_default_dtype(torch.float64)
# The last two axes are the longest, which Optax takes for rows and columns.
SHAPES = {'kernel': [7, 3], 'row': [1, 4], 'column': [4, 1], 'one': [1, 1], 'bias': [5], 'scale': [], 'stack': [2, 3, 4],
          'image': [2, 1, 3, 5]}
STEPS, KEPT = 100, (1, 2, 9, 100)
SIZES = (1e-5, 1.0, 1e3)
EPSILON = torch.finfo(torch.float32).eps
RANDOM = random.Random(20261130)


def single(number):
    """The shortest decimal that is the same number in single precision, as itself."""
    packed = struct.pack('f', number)
    texts = (f"{struct.unpack('f', packed)[0]:.{digits}g}" for digits in range(6, 10))
    return next(float(text) for text in texts if struct.pack('f', float(text)) == packed)


def numbers(shape, size):
    return [single(size * RANDOM.gauss(0, 1)) for _ in range(math.prod(shape))]


def gradients(size):
    """Of each step; some elements and the first row of the kernel never get one, and the whole bias none in the last ten
    steps."""
    for step in range(STEPS):
        made = {name: numbers(shape, size) for name, shape in SHAPES.items()}
        for name, values in made.items():
            if len(values) > 1:
                values[0] = 0.0
            if len(values) > 1 and step % 7 == 3:
                values[1] = 0.0
        made['kernel'][:SHAPES['kernel'][1]] = [0.0] * SHAPES['kernel'][1]
        if step >= STEPS - 10:
            made['bias'] = [0.0] * len(made['bias'])
        yield made


def rates(first, falls):
    """As tutti_schedule_exponential with a decay of 0.5 in 50 steps."""
    return [single(first) * 0.5 ** (step / 50) if falls else single(first) for step in range(STEPS)]


def tensors(values):
    return [torch.tensor(values[name]).reshape(shape) for name, shape in SHAPES.items()]


class Torch:
    maker = f'PyTorch {torch.__version__}'

    def __init__(self, **settings):
        self.weights = [weight.requires_grad_() for weight in tensors(WEIGHTS)]
        self.optimizer = torch.optim.Adafactor(self.weights, **settings)

    def step(self, gradients, rate):
        self.optimizer.param_groups[0]['lr'] = rate
        for weight, gradient in zip(self.weights, tensors(gradients)):
            weight.grad = gradient
        self.optimizer.step()

    def values(self):
        return [weight.detach().reshape(-1).tolist() for weight in self.weights]


class Keras:
    maker = f'Keras {keras.__version__}'

    def __init__(self, **settings):
        self.weights = [keras.Variable(weight, dtype='float64') for weight in tensors(WEIGHTS)]
        self.optimizer = keras.optimizers.Adafactor(**settings)
        self.optimizer.build(self.weights)

    def step(self, gradients, rate):
        self.optimizer.learning_rate = rate
        self.optimizer.apply(tensors(gradients))

    def values(self):
        return [keras.ops.convert_to_numpy(weight).reshape(-1).tolist() for weight in self.weights]


class Optax:
    """Whose learning rate has no limit."""
    maker = f'Optax {optax.__version__}'

    def __init__(self, **settings):
        self.weights = [jax.numpy.array(WEIGHTS[name]).reshape(shape) for name, shape in SHAPES.items()]
        self.optimizer = optax.inject_hyperparams(optax.adafactor, static_args=('min_dim_size_to_factor', 'factored'))(
            learning_rate=1.0, min_dim_size_to_factor=1, **settings)
        self.state = self.optimizer.init(self.weights)

    def step(self, gradients, rate):
        self.state.hyperparams['learning_rate'] = rate
        given = [jax.numpy.array(gradients[name]).reshape(shape) for name, shape in SHAPES.items()]
        updates, self.state = self.optimizer.update(given, self.state, self.weights)
        self.weights = optax.apply_updates(self.weights, updates)

    def values(self):
        return [weight.reshape(-1).tolist() for weight in self.weights]


TYPES = {bool: 'bool', float: 'f64'}


def case(attributes, library, settings, rate=0.05, falls=False, size=1.0):
    optimizer, kept = library(**settings), {}
    for step, (given, now) in enumerate(zip(GRADIENTS[size], rates(rate, falls))):
        optimizer.step(given, now)
        if step + 1 in KEPT:
            kept[step + 1] = dict(zip(SHAPES, [[float(f'{number:.9g}') for number in values] for values in optimizer.values()]))
    typed = {name: {TYPES[type(value)]: value} for name, value in attributes.items()}
    return {'op': 'optimizer_adafactor', 'made_by': library.maker, 'attributes': typed, 'rate': single(rate), 'falls': falls,
            'gradients': SIZES.index(size), 'after': kept}


WEIGHTS = {name: numbers(shape, 1.0) for name, shape in SHAPES.items()}
GRADIENTS = {size: list(gradients(size)) for size in SIZES}


def cases():
    for size in SIZES:
        for falls in (False, True):
            yield case({}, Torch, {'eps': (EPSILON, 1e-3)}, falls=falls, size=size)
            yield case({'weight_decay': 0.1, 'beta2_decay': -0.5, 'clip_threshold': 2.0}, Torch, {
                'eps': (EPSILON, 1e-3), 'weight_decay': 0.1, 'beta2_decay': -0.5, 'd': 2.0}, falls=falls, size=size)
            yield case({'adds_epsilon': True}, Keras, {}, falls=falls, size=size)
            yield case({'adds_epsilon': True, 'limits_rate': False}, Optax, {}, rate=0.3, falls=falls, size=size)
    # A rate beyond what update t may have; weights below the least scale; epsilons that matter.
    yield case({}, Torch, {'eps': (EPSILON, 1e-3)}, rate=0.7)
    yield case({'epsilon': 0.3, 'least_scale': 2.0}, Torch, {'eps': (0.3, 2.0)})
    yield case({'adds_epsilon': True, 'epsilon': 0.2, 'least_scale': 1.5, 'clip_threshold': 0.6, 'beta2_decay': -0.6}, Keras, {
        'epsilon_1': 0.2, 'epsilon_2': 1.5, 'clip_threshold': 0.6, 'beta_2_decay': -0.6})
    yield case({'adds_epsilon': True}, Keras, {}, rate=0.7)


def main():
    given = [{name: [step[name] for step in GRADIENTS[size]] for name in SHAPES} for size in SIZES]
    made = {'shapes': SHAPES, 'weights': WEIGHTS, 'gradients': given}
    with open(os.path.join(sys.argv[1], 'adafactor.json'), 'w', encoding='utf-8') as file:
        file.write(json.dumps(made, separators=(',', ':'))[:-1] + ',"cases":[\n')
        file.write(',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases()) + '\n]}\n')


main()
