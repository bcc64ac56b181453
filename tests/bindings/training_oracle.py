#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Works out what training must give in scenarios.txt and workers.txt, without the library (training_models.py). Prints what a
file says otherwise.

usage: training_oracle.py FILE...

The files have 5 digits behind the point, half a unit of the last of which is rounding; the other half is left to sums of
floats in another order.
"""
import struct
import sys

from plateau_model import Plateau
from training_models import MASK32, MODELS, Draws, key_of

TOLERANCE = 1.001e-5


# ---- data ------------------------------------------------------------------------------------------------------------


def single(number):
    return struct.unpack('f', struct.pack('f', number))[0]


def rows_of(count, columns, classes, seed):
    rows = []
    for i in range(count):
        features = []
        for j in range(columns):
            seed = (seed * 1664525 + 1013904223) & MASK32
            features.append(single((seed >> 8) / 2 ** 24 + (0.5 if j % classes == i % classes else 0)))
        rows.append((features, i % classes))
    return rows


def shuffled(rows, buffer, key):
    """All at once where they fit the buffer (Fisher-Yates), else from a buffer that is refilled in order."""
    draws, order = Draws(key), list(rows)
    if len(rows) <= buffer:
        for i in range(len(order), 1, -1):
            pick = draws.below(i)
            order[i - 1], order[pick] = order[pick], order[i - 1]
        return order
    held, waiting, order = order[:buffer], order[buffer:], []
    while held:
        pick = draws.below(len(held))
        order.append(held[pick])
        held[pick] = held[-1]
        held.pop()
        held += waiting[:1]
        waiting = waiting[1:]
    return order


def one_pass(rows, transforms, seed, number):
    for name, count in transforms:
        if name == 'skip':
            rows = rows[count:]
        elif name == 'take':
            rows = rows[:count]
        elif name == 'shuffle':
            rows = shuffled(rows, count, key_of(seed, 1, number))
    return rows


def elements(rows, transforms, repeats, seed):
    number = 0
    while number == 0 or repeats:
        yield from one_pass(rows, transforms, seed, number)
        number += 1


def parsed_transforms(words):
    """(transforms in front of the batches, whether they repeat, the size of a batch, whether each worker has a part)"""
    words, transforms, repeats, size, is_own = iter(words), [], False, 1, False
    for name in words:
        if name == 'repeat':
            repeats = True
        elif name == 'shard':
            is_own = True
        elif name == 'batch':
            size = int(next(words))
        else:
            transforms.append((name, int(next(words))))
    return transforms, repeats, size, is_own


def batches(rows, words, seed, workers):
    """Where each worker has a part of the data, it has rows w, w + workers, ...; a batch has as many rows of each part."""
    transforms, repeats, size, is_own = parsed_transforms(words)
    parts = workers if is_own else 1
    streams = [elements(rows[part::parts], transforms, repeats, seed) for part in range(parts)]
    while True:
        batch = [row for stream in streams for _, row in zip(range(size // parts), stream)]
        if not batch:
            return
        yield batch


# ---- scenarios -------------------------------------------------------------------------------------------------------


class Scenario:
    """What the lines up to here have set up. The methods results_... give lists of words and numbers, one for each line."""

    def __init__(self):
        self.workers, self.rows, self.transforms, self.model_name, self.options = 1, [], [], None, {}
        self.plateau_words = None
        self.forget()

    def forget(self):
        self.plateau = None if self.plateau_words is None else Plateau(self.plateau_words)
        self.model, self.batches, self.step, self.batch_number = None, None, 0, 0

    def do(self, words):
        """Results, or None where they are not worked out here."""
        name = words[0]
        if name in ('workers', 'data', 'pipeline', 'model', 'run', 'plateau'):
            getattr(self, f'set_{name}')(words[1:])
        return getattr(self, f'results_{name}')(*words[1:]) if hasattr(self, f'results_{name}') else None

    def set_workers(self, words):
        self.workers = int(words[0])

    def set_data(self, words):
        self.rows = rows_of(*map(int, words))
        self.forget()

    def set_pipeline(self, words):
        self.transforms = words

    def set_model(self, words):
        self.model_name = words[0]
        self.forget()

    def set_run(self, words):
        self.options[words[0]] = words[1]
        self.forget()

    def set_plateau(self, words):
        """Of models with the optimizer Nesterov, from their first step on."""
        self.plateau_words = words
        self.forget()

    def seed(self):
        return int(self.options.get('seed', 0))

    def need_model(self):
        if self.model is None:
            self.model = MODELS[self.model_name](len(self.rows[0][0]), self.seed())
            if 'params' in self.options:
                self.model.set_params(self.options['params'])
            self.batches = batches(self.rows, self.transforms, self.seed(), self.workers)

    def train_step(self):
        """The loss, or None at the end of the data."""
        count = int(self.options.get('accumulation_steps', 1))
        taken = [batch for _, batch in zip(range(count), self.batches)]
        if not taken:
            return None
        rows = sum(map(len, taken))
        results = [self.model.gradients(batch, rows, self.seed(), self.batch_number + i) for i, batch in enumerate(taken)]
        gradients = {name: [sum(numbers) for numbers in zip(*(one[name] for _, one in results))] for name in results[0][1]}
        self.model.optimizer.update(self.model.weights, gradients, self.step)
        if hasattr(self.model, 'end_step'):
            self.model.end_step()
        self.step, self.batch_number = self.step + 1, self.batch_number + len(taken)
        loss = sum(loss for loss, _ in results) / rows
        if self.plateau is not None:
            self.plateau.after(self.step, loss if self.plateau.metric == 'loss' else sum(
                self.model.metrics(batch)[self.plateau.metric] for batch in taken) / rows)
            self.model.optimizer.factor = self.plateau.factor
        return loss

    def with_averages(self, function):
        """What a function gives while the averages of weights, where there are any, are the weights."""
        averages = getattr(self.model.optimizer, 'averages', {})
        if not averages or 'raw_weights' in self.options:
            return function()
        own, self.model.weights = self.model.weights, averages
        result = function()
        self.model.weights = own
        return result

    def results_train(self, steps):
        self.need_model()
        last = None
        for _ in range(int(steps)):
            loss = self.train_step()
            if loss is None:
                break
            last = loss
        return [['step', self.step, 'loss', last]]

    def results_evaluate(self, _):
        self.need_model()
        loss, metrics = self.with_averages(lambda: (self.model.losses(self.rows), self.model.metrics(self.rows)))
        lists = {name: value if isinstance(value, list) else [value] for name, value in metrics.items()}
        return [['loss', loss / len(self.rows)],
                *([name, *(one / len(self.rows) for one in lists[name])] for name in sorted(lists))]

    def outputs(self, count):
        self.need_model()
        rows = [row for row, _ in self.rows[:int(count)]]
        return self.with_averages(lambda: [self.model.outputs(row) for row in rows])

    def results_predict(self, count):
        outputs = self.outputs(count)
        return [[name, *one[name]] for name in sorted(outputs[0]) for one in outputs]

    def results_predict_own(self, count):
        outputs = self.outputs(count)
        return [[name, i, *one[name]] for name in sorted(outputs[0]) for i, one in enumerate(outputs)]

    def results_variable(self, name):
        stem = name.removesuffix('/average')
        values = self.model.optimizer.averages[stem] if stem != name else self.model.weights[name]
        return [['shape', *self.model.shapes[stem], 'sum', sum(values)]]

    def results_save(self):
        """The state of the data is its number of batches: it is read again."""
        self.saved = self.step
        return []

    def results_restore(self):
        steps = self.saved
        self.forget()
        self.results_train(steps)
        return [['step', self.step]]


def is_number(word):
    return word.lstrip('-').replace('.', '', 1).isdigit()


def is_same(word, wanted):
    if isinstance(wanted, str) or not is_number(word):
        return word == wanted
    return abs(float(word) - wanted) <= (TOLERANCE if '.' in word else 0)


def differences(command, found, wanted):
    """Of the lines behind a command. Lines of single workers are those of all, one worker after the other."""
    found = sorted(found, key=lambda words: (words[0], int(words[1]))) if command.startswith('predict_own') else found
    if len(found) == len(wanted) and all(
            len(words) == len(others) and all(map(is_same, words, others)) for words, others in zip(found, wanted)):
        return
    yield command
    for sign, lines in (('-', found), ('+', wanted)):
        yield from (f'  {sign} ' + ' '.join(f'{word:.7f}' if isinstance(word, float) else str(word) for word in line)
                    for line in lines)


def commands_of(path):
    """(words of a line, lists of words of the results behind it)"""
    with open(path, encoding='utf-8') as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith('#')]
    starts = [i for i, words in enumerate(lines) if not words[0].startswith('=')] + [len(lines)]
    return [(lines[begin], [words[1:] for words in lines[begin + 1:end]]) for begin, end in zip(starts, starts[1:])]


def check(path):
    """Complaints."""
    complaints, compared, scenario, title = [], 0, None, ''
    for words, found in commands_of(path):
        if words[0] == 'scenario':
            scenario, title = Scenario(), ' '.join(words)
            continue
        if found and found[0][0].rstrip(':').isupper():
            continue  # an error, which changes nothing
        wanted = scenario.do(words)
        if wanted is None:
            continue
        compared += len(found)
        complaints += [f'{path}: {title}: {line}' for line in differences(' '.join(words), found, wanted)]
    print(f'{path}: {compared} lines compared')
    return complaints if compared > 0 else [f'{path}: there is nothing to compare']


def main(paths):
    complaints = [line for path in paths for line in check(path)]
    print('\n'.join(complaints))
    return 1 if complaints or not paths else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
