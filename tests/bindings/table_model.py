# SPDX-License-Identifier: Apache-2.0
"""The model "tables" of scenarios.txt for training_oracle.py, without the library: a table whose rows are looked up by the
largest number of x. A lazy optimizer leaves rows alone that a step does not look up: their weights and what is kept of them.
"""
import math

from optimizer_model import adamw, kept

WIDTH = 3


def momentum(rate, share):
    def rule(w, g, state, _):
        velocity = kept(state, 'velocity', len(w))
        velocity[:] = [share * v + x for v, x in zip(velocity, g)]
        return [a - rate * v for a, v in zip(w, velocity)]
    return rule


ADAM = adamw(0.25, 0, 0.9, 0.999, 1e-8)
# Rules, and whether they are lazy.
RULES = {'adam': (ADAM, False), 'lazy_adam': (ADAM, True), 'sgd': (momentum(0.25, 0.9), False),
         'lazy_sgd': (momentum(0.25, 0.9), True), 'lazy_rule': (momentum(0.125, 0.5), True)}


class ByRows:
    """The optimizer that the run option params names, of each row by itself."""

    def __init__(self, name):
        (self.rule, self.is_lazy), self.states, self.looked_up = RULES[name], {}, set()

    def update(self, weights, gradients, step):
        for name, gradient in gradients.items():
            for row in range(len(gradient) // WIDTH):
                if self.is_lazy and row not in self.looked_up:
                    continue
                part = slice(row * WIDTH, (row + 1) * WIDTH)
                weights[name][part] = self.rule(weights[name][part], gradient[part], self.states.setdefault(row, {}), step + 1)
        self.looked_up = set()


class Tables:
    def __init__(self, columns, _):
        self.shapes = {'embedding/table': (columns, WIDTH)}
        self.weights = {'embedding/table': [1.0] * columns * WIDTH}

    def set_params(self, name):
        self.optimizer = ByRows(name)

    def looked_up(self, row):
        return max(range(len(row)), key=row.__getitem__)

    def scores(self, row):
        first = self.looked_up(row) * WIDTH
        return self.weights['embedding/table'][first:first + WIDTH]

    def shares(self, row):
        powers = [math.exp(z) for z in self.scores(row)]
        return [power / sum(powers) for power in powers]

    def gradients(self, batch, count, *_):
        gradient = [0.0] * len(self.weights['embedding/table'])
        for row, label in batch:
            place = self.looked_up(row)
            self.optimizer.looked_up.add(place)
            for j, share in enumerate(self.shares(row)):
                gradient[place * WIDTH + j] += (share - (j == label)) / count
        return self.losses(batch), {'embedding/table': gradient}

    def losses(self, batch):
        return -sum(math.log(self.shares(row)[label]) for row, label in batch)

    def metrics(self, _):
        return {}

    def outputs(self, row):
        return {'z': self.scores(row)}
