#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_adam_golden.py DIRECTORY: writes adam.json, what Adam and AdamW of PyTorch and Keras make of some weights and gradients.

The defaults of both are there, decay, and gradients from 1e-12 to 1e15. Everything is computed in double precision, from
weights and gradients of single precision. Keras adds its epsilon to the root of the second moment before that is corrected,
PyTorch behind: their results are one where epsilon is small beside the gradients, and only such are asked of Keras.

Needs PyTorch and Keras 3; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import random
import struct
import sys

os.environ['KERAS_BACKEND'] = 'torch'
import keras  # noqa: E402
import torch  # noqa: E402

ELEMENTS, STEPS, SKIPPED = 7, 20, 6
RANDOM = random.Random(20201120)


def single(number):
    return struct.unpack('f', struct.pack('f', number))[0]


def floats(values):
    return {'dtype': 'f32', 'dims': [ELEMENTS], 'values': [single(value) for value in values]}


def problem(size):
    """Weights, and of each step the gradient and the rate. Elements 0 to 2 keep their sign, the last ends in zeros."""
    weights = [single(RANDOM.gauss(0, 1)) for _ in range(ELEMENTS)]
    steps = []
    for step in range(STEPS):
        gradient = [single(size * RANDOM.gauss(0, 1)) for _ in range(ELEMENTS)]
        gradient[:3] = map(abs, gradient[:3])
        gradient[-1] *= step < STEPS // 2
        steps.append((gradient, single(0.1 / (1 + step % 5))))
    return weights, steps


class Torch:
    def __init__(self, weights, settings, decay):
        self.weights = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
        kind = torch.optim.AdamW if decay else torch.optim.Adam
        more = {'betas': (settings['beta1'], settings['beta2']), 'eps': settings['epsilon']} if settings else {}
        self.optimizer = kind([self.weights], weight_decay=decay, **more)

    def defaults(self):
        group = self.optimizer.param_groups[0]
        return {'beta1': group['betas'][0], 'beta2': group['betas'][1], 'epsilon': group['eps']}

    def step(self, gradient, rate):
        self.optimizer.param_groups[0]['lr'] = rate
        self.weights.grad = torch.tensor(gradient, dtype=torch.float64)
        self.optimizer.step()

    def state(self):
        slots = self.optimizer.state[self.weights]
        return [one.tolist() for one in (self.weights.detach(), slots['exp_avg'], slots['exp_avg_sq'])]


class Keras:
    def __init__(self, weights, settings, decay):
        keras.backend.set_floatx('float64')
        self.weights = keras.Variable(weights, dtype='float64')
        more = {'beta_1': settings['beta1'], 'beta_2': settings['beta2'], 'epsilon': settings['epsilon']} if settings else {}
        self.optimizer = keras.optimizers.AdamW(weight_decay=decay, **more) if decay else keras.optimizers.Adam(**more)
        self.optimizer.build([self.weights])

    def defaults(self):
        return {'beta1': self.optimizer.beta_1, 'beta2': self.optimizer.beta_2, 'epsilon': self.optimizer.epsilon}

    def step(self, gradient, rate):
        self.optimizer.learning_rate = rate
        self.optimizer.apply([keras.ops.convert_to_tensor(gradient, dtype='float64')])

    def state(self):
        slots = [one for one in self.optimizer.variables if one.name.endswith(('momentum', 'velocity'))]
        return [keras.ops.convert_to_numpy(one).tolist() for one in (self.weights, *slots)]


MAKERS = {Torch: f'PyTorch {torch.__version__}', Keras: f'Keras {keras.__version__}'}


def trajectory(library, settings, decay, size):
    """Absolute tolerances: of the weights, and of the moments by the size of gradients. Squares do not cancel."""
    weights, steps = problem(size)
    optimizer = library(weights, settings, decay)
    attributes = {**optimizer.defaults(), 'weight_decay': decay}
    done, count, state = [], 0, [weights, [0.0] * ELEMENTS, [0.0] * ELEMENTS]
    for step, (gradient, rate) in enumerate(steps):
        if step != SKIPPED:
            optimizer.step(gradient, rate)
            count, state = count + 1, optimizer.state()
        done.append({'gradient': floats(gradient), 'rate': rate, 'ok': step != SKIPPED, 'iteration': max(count, 1),
                     'state': [floats(one) for one in state]})
    return {'op': 'adam_update', 'made_by': MAKERS[library],
            'attributes': {name: {'f64': float(value)} for name, value in attributes.items()},
            'state': [floats(weights), floats([0.0] * ELEMENTS), floats([0.0] * ELEMENTS)],
            'absolute': [2e-6, 1e-6 * size, 1e-9 * size ** 2], 'steps': done}


def trajectories():
    other = {'beta1': 0.8, 'beta2': 0.95, 'epsilon': 1e-3}
    for size in (1e-12, 1e-8, 1e-4, 1.0, 1e4, 1e15):
        for decay in (0.0, 0.01):
            yield trajectory(Torch, None, decay, size)
    yield trajectory(Torch, other, 0.3, 1.0)
    for size in (1e3, 1e15):
        for decay in (0.0, 0.004):
            yield trajectory(Keras, None, decay, size)


def main():
    with open(os.path.join(sys.argv[1], 'adam.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in trajectories()) + '\n]\n')


main()
