#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_table_golden.py DIRECTORY: writes tables.json, what optimizers of PyTorch make of a table that a model looks rows
up in: twice for each example, four rows by one feature and one by another.

Everything is computed in double precision, from weights and data of single precision. A lazy optimizer is PyTorch's dense
one, after each step of which weight and state of the rows that were not looked up are put back; Adam, SGD and Adagrad are
also those that take sparse gradients themselves.

Needs PyTorch; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import random
import struct
import sys

import torch

torch.set_default_dtype(torch.float64)
RANDOM = random.Random(20261129)
COUNT, WIDTH, IDS, ROWS, BATCHES = 13, 3, 4, 7, 4
KEPT = (1, 2, 11)


def single(number):
    """The shortest decimal that is the same number in single precision, as itself."""
    packed = struct.pack('f', number)
    texts = (f"{struct.unpack('f', packed)[0]:.{digits}g}" for digits in range(6, 10))
    return next(float(text) for text in texts if struct.pack('f', float(text)) == packed)


def normal(count, size=1.0):
    return [single(size * RANDOM.gauss(0, 1)) for _ in range(count)]


def lookups():
    """Rows of which one is in every batch, some in none, and some again and again."""
    return RANDOM.choice([0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 11])


DATA = {
    'table': normal(COUNT * WIDTH),
    'kernel': normal(WIDTH),
    'ids': [lookups() for _ in range(BATCHES * ROWS * IDS)],
    'id': [RANDOM.choice([1, 6, 12]) for _ in range(BATCHES * ROWS)],
    'target': normal(BATCHES * ROWS),
    'weight': [single(RANDOM.uniform(0.1, 2)) for _ in range(BATCHES * ROWS)],
}


def batch(number):
    rows = slice(number % BATCHES * ROWS, (number % BATCHES + 1) * ROWS)
    ids = torch.tensor(DATA['ids']).reshape(-1, IDS)[rows]
    return ids, torch.tensor(DATA['id'])[rows], torch.tensor(DATA['target'])[rows], torch.tensor(DATA['weight'])[rows]


def loss_of(table, kernel, data, is_weighted, is_sparse):
    ids, one, target, weight = data
    look_up = lambda at: torch.nn.functional.embedding(at, table, sparse=is_sparse)  # noqa: E731
    features = torch.tanh(look_up(ids)).sum(1) + 2 * look_up(one)
    error = (features @ kernel - target) ** 2
    return (weight * error).sum() / weight.sum() if is_weighted else error.mean()


def limit(parameters, case):
    """As torch.nn.utils does it, which takes no sparse gradients."""
    if case.get('clip_value'):
        for parameter in parameters:
            dense = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
            parameter.grad = dense.clamp(-case['clip_value'], case['clip_value'])
    if case.get('clip_norm'):
        norm = torch.sqrt(sum((p.grad.to_dense() if p.grad.is_sparse else p.grad).pow(2).sum() for p in parameters))
        for parameter in parameters:
            parameter.grad = parameter.grad * (case['clip_norm'] / max(norm.item(), case['clip_norm']))


def put_back(table, optimizer, before, slots, looked_up):
    others = [row for row in range(COUNT) if row not in looked_up]
    with torch.no_grad():
        table[others] = before[others]
    for name, value in slots.items():
        optimizer.state[table][name][others] = value[others]


def train(case, make):
    table = torch.tensor(DATA['table']).reshape(COUNT, WIDTH).requires_grad_()
    kernel = torch.tensor(DATA['kernel']).requires_grad_()
    is_sparse = case['made_by'].endswith('sparse')
    optimizers = [make([table]), make([kernel])]
    if case['made_by'] == 'SparseAdam, sparse':
        optimizers[1] = torch.optim.Adam([kernel], lr=case['rate'])
    after = {}
    for step in range(max(KEPT)):
        data = batch(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss_of(table, kernel, data, case['weighted'], is_sparse).backward()
        limit([table, kernel], case)
        before = table.detach().clone()
        state = optimizers[0].state[table]
        if not state:  # made by the first step: from zeros
            slots = {}
        else:
            slots = {name: value.clone() for name, value in state.items() if getattr(value, 'shape', ()) == table.shape}
        for optimizer in optimizers:
            optimizer.step()
        if case['attributes'].get('lazy') and not is_sparse:
            if not slots:
                first = case.get('first', 0.0)
                slots = {name: torch.full_like(value, first) for name, value in optimizers[0].state[table].items()
                         if getattr(value, 'shape', ()) == table.shape}
            put_back(table, optimizers[0], before, slots, set(data[0].flatten().tolist() + data[1].tolist()))
        if step + 1 in KEPT:
            after[str(step + 1)] = {'table': table.detach().flatten().tolist(), 'kernel': kernel.detach().tolist()}
    return after


def attributes_of(values):
    return {key: {'bool': value} if isinstance(value, bool) else {'f64': value} for key, value in values.items()}


def cases():
    optim = torch.optim
    lazy = {'lazy': True}
    forms = [
        ('sgd', 'SGD, sparse', {}, 0.0078125, lambda p: optim.SGD(p, lr=0.0078125)),
        ('sgd', 'SGD', {'weight_decay': 0.25}, 0.0078125, lambda p: optim.SGD(p, lr=0.0078125, weight_decay=0.25)),
        ('sgd', 'SGD', {'weight_decay': 0.25, **lazy}, 0.0078125, lambda p: optim.SGD(p, lr=0.0078125, weight_decay=0.25)),
        ('sgd', 'SGD', {'momentum': 0.5, **lazy}, 0.0078125, lambda p: optim.SGD(p, lr=0.0078125, momentum=0.5)),
        ('sgd', 'SGD', {'momentum': 0.5}, 0.0078125, lambda p: optim.SGD(p, lr=0.0078125, momentum=0.5)),
        ('adam', 'Adam', {}, 0.0625, lambda p: optim.Adam(p, lr=0.0625)),
        ('adam', 'Adam', {**lazy}, 0.0625, lambda p: optim.Adam(p, lr=0.0625)),
        ('adam', 'SparseAdam, sparse', {**lazy}, 0.0625, lambda p: optim.SparseAdam(p, lr=0.0625)),
        ('adam', 'Adam', {'amsgrad': True, **lazy}, 0.0625, lambda p: optim.Adam(p, lr=0.0625, amsgrad=True)),
        ('adamw', 'AdamW', {'weight_decay': 0.5, **lazy}, 0.0625, lambda p: optim.AdamW(p, lr=0.0625, weight_decay=0.5)),
        ('adagrad', 'Adagrad, sparse', {}, 0.25, lambda p: optim.Adagrad(p, lr=0.25)),
        ('adagrad', 'Adagrad', {'weight_decay': 0.25, **lazy}, 0.25,
         lambda p: optim.Adagrad(p, lr=0.25, weight_decay=0.25)),
        ('adadelta', 'Adadelta', {**lazy}, 0.5, lambda p: optim.Adadelta(p, lr=0.5, rho=0.9)),
        ('rmsprop', 'RMSprop', {'momentum': 0.5, **lazy}, 0.0625, lambda p: optim.RMSprop(p, lr=0.0625, momentum=0.5)),
        ('adamax', 'Adamax', {**lazy}, 0.0625, lambda p: optim.Adamax(p, lr=0.0625)),
        ('nadam', 'NAdam', {**lazy}, 0.0625, lambda p: optim.NAdam(p, lr=0.0625)),
    ]
    limits = [{}, {'clip_norm': 0.5}, {'clip_value': 0.25}, {'clip_value': 0.5, 'clip_norm': 0.25}]
    for form, (op, made_by, attributes, rate, make) in enumerate(forms):
        for weighted in (False, True):
            for limited in (limits[0], limits[1 + (form + weighted) % 3]):
                if limited.get('clip_value') and made_by.endswith('sparse'):
                    limited = limits[1]
                if limited and made_by.startswith('SparseAdam'):
                    continue  # its epsilon is another one, which tells where gradients are small
                case = {'op': 'optimizer_' + op, 'made_by': made_by, 'attributes': attributes, 'rate': rate,
                        'weighted': weighted, **limited}
                after = train(case, make)
                yield {**case, 'attributes': attributes_of(attributes), 'after': after}


def main(directory):
    golden = {'count': COUNT, 'width': WIDTH, 'ids_each': IDS, 'rows': ROWS, 'data': DATA, 'cases': list(cases())}
    with open(os.path.join(directory, 'tables.json'), 'w', encoding='ascii') as file:
        json.dump(golden, file, allow_nan=False, separators=(',', ':'))
        file.write('\n')


main(sys.argv[1])
