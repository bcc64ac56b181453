#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_recurrent_golden.py DIRECTORY: writes recurrent.json, what the recurrent layers of PyTorch make of some sequences.

Each case is a layer of lib/nn/nn.yaml with its attributes, inputs and variables; its outputs; and the gradients of the
variables and of the initial states for the loss, the mean over rows of the sum of all squared outputs. Inputs and variables
are of single precision, everything is computed from them in double precision, each row by itself, up to its length.

Needs PyTorch; the file is kept in the tree, so building and testing do not.
"""
import json
import sys
from pathlib import Path

import torch

GATES = {'rnn': 1, 'lstm': 4, 'gru': 3}
MODULES = {'rnn': torch.nn.RNN, 'lstm': torch.nn.LSTM, 'gru': torch.nn.GRU}
random = torch.Generator().manual_seed(7)


def numbers(*dims, scale=0.5):
    return (torch.randn(*dims, generator=random) * scale).to(torch.float32).to(torch.float64)


def written(tensor):
    tensor = torch.as_tensor(tensor).detach()
    return {'dims': list(tensor.shape), 'values': [float(v) for v in tensor.reshape(-1)]}


class Case:
    def __init__(self, kind, batch, length, channels, units, lengths=None, initial=False, forget_bias=0.0, **attributes):
        self.kind, self.lengths, self.forget_bias, self.attributes = kind, lengths, forget_bias, attributes
        self.layers = attributes.get('layers', 1)
        self.directions = 2 if attributes.get('bidirectional') else 1
        self.units, self.has_bias = units, attributes.get('use_bias', True)
        self.x = numbers(batch, length, channels, scale=1.0)
        shape = (batch, self.layers * self.directions, units)
        count = 2 if kind == 'lstm' else 1
        self.initial = [numbers(*shape).requires_grad_() for _ in range(count)] if initial else None
        self.variables = {}
        width = GATES[kind] * units
        for layer in range(self.layers):
            for direction in range(self.directions):
                scope = f'{kind}/layer_{layer}' + ('/backward' if direction else '')
                inputs = channels if layer == 0 else units * self.directions
                self.variables[f'{scope}/kernel'] = numbers(inputs, width)
                self.variables[f'{scope}/recurrent_kernel'] = numbers(units, width)
                if self.has_bias:
                    self.variables[f'{scope}/bias'] = numbers(width)
                if self.has_bias and kind == 'gru':
                    self.variables[f'{scope}/recurrent_bias'] = numbers(width)
        for variable in self.variables.values():
            variable.requires_grad_()

    def parameters(self, module):
        """The module's parameters by name, made of the variables, so that gradients flow to these."""
        made = {}
        shift = torch.zeros(GATES[self.kind] * self.units, dtype=torch.float64)
        if self.kind == 'lstm':
            shift[self.units:2 * self.units] = self.forget_bias
        for layer in range(self.layers):
            for direction in range(self.directions):
                scope = f'{self.kind}/layer_{layer}' + ('/backward' if direction else '')
                end = f'_l{layer}' + ('_reverse' if direction else '')
                made['weight_ih' + end] = self.variables[f'{scope}/kernel'].T
                made['weight_hh' + end] = self.variables[f'{scope}/recurrent_kernel'].T
                zero = torch.zeros_like(shift)
                made['bias_ih' + end] = (self.variables[f'{scope}/bias'] if self.has_bias else zero) + shift
                made['bias_hh' + end] = self.variables.get(f'{scope}/recurrent_bias', zero)
        assert set(made) == {name for name, _ in module.named_parameters()}
        return made

    def row(self, module, r):
        """Outputs [length, ...] and last states [layers * directions, units] of one row."""
        length = self.x.shape[1] if self.lengths is None else self.lengths[r]
        states = self.layers * self.directions
        first = [s[r] for s in self.initial] if self.initial else \
            [torch.zeros(states, self.units, dtype=torch.float64) for _ in range(2 if self.kind == 'lstm' else 1)]
        width = self.units * self.directions
        if length == 0:
            return torch.zeros(self.x.shape[1], width, dtype=torch.float64), first
        x = self.x[r, :length]
        if self.attributes.get('reverse'):
            x = x.flip(0)
        start = [s.unsqueeze(1) for s in first]
        y, last = torch.func.functional_call(module, self.parameters(module),
                                             (x.unsqueeze(0), tuple(start) if self.kind == 'lstm' else start[0]))
        y = y[0].flip(0) if self.attributes.get('reverse') else y[0]
        rest = torch.zeros(self.x.shape[1] - length, width, dtype=torch.float64)
        last = [s.squeeze(1) for s in (last if self.kind == 'lstm' else [last])]
        return torch.cat([y, rest]), last

    def write(self):
        options = {'nonlinearity': self.attributes.get('activation', 'tanh')} if self.kind == 'rnn' else {}
        module = MODULES[self.kind](self.x.shape[2], self.units, self.layers, batch_first=True,
                                    bidirectional=self.directions == 2, dtype=torch.float64, **options)
        rows = [self.row(module, r) for r in range(self.x.shape[0])]
        outputs = [torch.stack([y for y, _ in rows])]
        outputs += [torch.stack([last[s] for _, last in rows]) for s in range(len(rows[0][1]))]
        loss = sum((o ** 2).reshape(o.shape[0], -1).sum(1) for o in outputs).mean()
        loss.backward()
        attributes = dict(self.attributes, units=self.units)
        if self.kind == 'lstm':
            attributes['forget_bias'] = self.forget_bias
        return {'op': f'layer_{self.kind}', 'attributes': attributes, 'x': written(self.x), 'lengths': self.lengths,
                'initial': [written(s) for s in self.initial] if self.initial else [],
                'variables': {name: written(value) for name, value in self.variables.items()},
                'outputs': [written(o) for o in outputs], 'loss': float(loss.detach()),
                'gradients': {name: written(value.grad if value.grad is not None else torch.zeros_like(value))
                              for name, value in self.variables.items()}}


def cases():
    for kind in ('rnn', 'lstm', 'gru'):
        yield Case(kind, 5, 4, 3, 2)
        yield Case(kind, 1, 1, 1, 1)
        yield Case(kind, 7, 6, 2, 3, lengths=[6, 1, 0, 4, 2, 5, 3], initial=True)
        yield Case(kind, 4, 5, 3, 2, layers=2, bidirectional=True, initial=True)
        yield Case(kind, 5, 4, 2, 3, layers=3, lengths=[4, 2, 3, 0, 1])
        yield Case(kind, 5, 4, 2, 2, reverse=True, lengths=[1, 4, 2, 3, 4])
        yield Case(kind, 3, 4, 2, 2, bidirectional=True, lengths=[2, 4, 1], use_bias=False)
    yield Case('rnn', 5, 3, 2, 3, activation='relu')
    yield Case('lstm', 5, 4, 3, 2, forget_bias=1.0, layers=2)


def main():
    lines = [json.dumps(case.write()) for case in cases()]
    Path(sys.argv[1], 'recurrent.json').write_text('[\n' + ',\n'.join(lines) + '\n]\n', encoding='utf-8')


if __name__ == '__main__':
    main()
