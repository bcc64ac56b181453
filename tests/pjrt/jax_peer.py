#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of networks of tests/backend/cpu/step_networks.cc in JAX: mlp, cnn, resnet20, with Adam.

usage: jax_peer.py

Answers requests as step_bench --serve does (tests/bench/step_server.h): "measure training MODEL BATCH THREADS f32
SECONDS" with {"wall_ms", "steps"}. State is donated; devices are waited for at the end of a stretch of steps.
"""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
PRODUCTS = ('NHWC', 'HWIO', 'NHWC')


class Network:
    """Makes its variables in the first call, and finds them in the others."""

    def __init__(self):
        self.random, self.variables, self.running = np.random.default_rng(1), {}, {}

    def variable(self, name, shape, scale, around=0.0):
        if name not in self.variables:
            values = around + self.random.uniform(-scale, scale, shape) if scale else np.full(shape, around)
            self.variables[name] = values.astype(np.float32)
        return self.variables[name]


def dense(net, name, x, out):
    scale = (6 / (x.shape[-1] + out)) ** 0.5
    return x @ net.variable(f'{name}/kernel', (x.shape[-1], out), scale) + net.variable(f'{name}/bias', (out,), 0)


def convolution(net, name, x, out, size=3, stride=1, padded=True, bias=False):
    channels = x.shape[-1]
    kernel = net.variable(f'{name}/kernel', (size, size, channels, out), (3 / (size * size * channels)) ** 0.5)
    pads = 'VALID' if not padded else 'SAME' if stride == 1 else [(size // 2, size // 2)] * 2
    y = lax.conv_general_dilated(x, kernel, (stride, stride), pads, dimension_numbers=PRODUCTS)
    return y + net.variable(f'{name}/bias', (out,), 0) if bias else y


def norm(net, name, x):
    scale = net.variable(f'{name}/scale', x.shape[-1:], 0.2, 1)
    offset = net.variable(f'{name}/offset', x.shape[-1:], 0)
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    net.running[name] = (mean, variance)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def mlp(net, x):
    x = jax.nn.relu(dense(net, 'dense1', x, 512))
    return dense(net, 'dense3', jax.nn.relu(dense(net, 'dense2', x, 256)), 10)


def cnn(net, x):
    x = jax.nn.relu(convolution(net, 'conv1', x, 32, padded=False, bias=True))
    x = jax.nn.relu(convolution(net, 'conv2', x, 64, padded=False, bias=True))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')
    return dense(net, 'dense2', jax.nn.relu(dense(net, 'dense1', x.reshape(x.shape[0], -1), 128)), 10)


def resnet20(net, x):
    x, width = jax.nn.relu(norm(net, 'norm0', convolution(net, 'conv0', x, 16))), 16
    for block in range(9):
        out, stride = 16 << block // 3, 2 if block in (3, 6) else 1
        y = jax.nn.relu(norm(net, f'norm{block}a', convolution(net, f'conv{block}a', x, out, stride=stride)))
        y = norm(net, f'norm{block}b', convolution(net, f'conv{block}b', y, out))
        if width != out:
            x = norm(net, f'norm{block}c', convolution(net, f'conv{block}c', x, out, size=1, stride=stride))
        x, width = jax.nn.relu(x + y), out
    return dense(net, 'dense', x.mean((1, 2)), 10)


MODELS = {'mlp': (mlp, (784,)), 'cnn': (cnn, (28, 28, 1)), 'resnet20': (resnet20, (32, 32, 3))}


def make_step(model, batch):
    forward, shape = MODELS[model]
    random = np.random.default_rng(2)
    x = jnp.asarray(random.uniform(-1, 1, (batch, *shape)).astype(np.float32))
    labels = jnp.asarray(random.integers(0, 10, batch).astype(np.int32))
    first = Network()
    forward(first, x)
    weights = {name: jnp.asarray(value) for name, value in first.variables.items()}
    running = {name: (jnp.zeros_like(mean), jnp.ones_like(mean)) for name, (mean, _) in first.running.items()}
    slots = {name: (jnp.zeros_like(value), jnp.zeros_like(value)) for name, value in weights.items()}

    def loss_of(variables, x, labels):
        net = Network()
        net.variables = variables
        logits = forward(net, x)
        shares = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(shares, labels[:, None], 1).mean(), net.running

    def step(weights, slots, running, count, x, labels):
        (loss, batch_statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, x, labels)
        count = count + 1
        new_weights, new_slots = {}, {}
        for name, g in gradients.items():
            m, v = slots[name]
            m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
            change = m / (1 - BETA1 ** count) / (jnp.sqrt(v / (1 - BETA2 ** count)) + EPSILON)
            new_weights[name], new_slots[name] = weights[name] - RATE * change, (m, v)
        kept = {name: tuple(0.9 * old + 0.1 * new for old, new in zip(running[name], batch_statistics[name]))
                for name in running}
        return new_weights, new_slots, kept, count, loss

    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    state = [weights, slots, running, jnp.float32(0)]

    def run(steps):
        for _ in range(steps):
            *state[:], loss = compiled(*state, x, labels)
        loss.block_until_ready()
        return float(loss)

    run(3)
    return run


def measure(kept, model, batch, seconds):
    key = (model, batch)
    if key not in kept:
        kept.clear()
        kept[key] = make_step(model, batch)
    stretch, steps, begin = 1, 0, time.perf_counter()
    while (now := time.perf_counter()) - begin < seconds or steps == 0:
        kept[key](stretch)
        steps += stretch
        if time.perf_counter() - now < 0.1:
            stretch = min(256, stretch * 2)
    return {'wall_ms': (time.perf_counter() - begin) / steps * 1e3, 'steps': steps}


def main():
    print(json.dumps({'name': f'JAX {jax.__version__}', 'devices': [str(device) for device in jax.devices()]}), flush=True)
    kept = {}
    for line in sys.stdin:
        words = line.split()
        answer = {}
        if words[0] == 'measure':
            answer = measure(kept, words[2], int(words[3]), float(words[6]))
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
