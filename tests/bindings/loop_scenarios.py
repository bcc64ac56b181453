#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes loops.txt, scenarios of loops of one's own, without the library: the model "regression" of scenarios.txt, its gradient
and Nesterov's momentum (Sutskever et al., 2013) worked out here with doubles.

usage: loop_scenarios.py [--check]      --check compares with the file beside this program instead
"""
import os
import struct
import sys

from plateau_model import Plateau

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'loops.txt')
ROWS, COLUMNS, CLASSES, SEED, MOST = 11, 4, 3, 5, 7
RATE, MOMENTUM = 0.05, 0.9


def data():
    seed, rows = SEED, []
    for i in range(ROWS):
        row = []
        for j in range(COLUMNS):
            seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
            number = (seed >> 8) / 2 ** 24 + (0.5 if j % CLASSES == i % CLASSES else 0)
            row.append(struct.unpack('f', struct.pack('f', number))[0])
        rows.append((row, i % CLASSES))
    return rows


class Line:
    """y = x * slope, trained on the mean of (y - target)^2."""

    def __init__(self, plateau=None):
        self.slope, self.velocity, self.step, self.plateau = [0.0] * COLUMNS, [0.0] * COLUMNS, 0, plateau

    def at(self, x):
        return sum(a * b for a, b in zip(x, self.slope))

    def train(self, batch):
        """The loss and what the line gave, before it moves, and the learning rate of the step."""
        given = [self.at(x) for x, _ in batch]
        errors = [y - target for y, (_, target) in zip(given, batch)]
        rate = RATE * 0.5 ** (self.step // 4) * (1 if self.plateau is None else self.plateau.factor)
        for j in range(COLUMNS):
            gradient = sum(2 * error * x[j] for error, (x, _) in zip(errors, batch)) / len(batch)
            self.velocity[j] = MOMENTUM * self.velocity[j] + gradient
            self.slope[j] -= rate * (gradient + MOMENTUM * self.velocity[j])
        self.step += 1
        loss = sum(error * error for error in errors) / len(batch)
        if self.plateau is not None:
            is_loss = self.plateau.metric == 'loss'
            self.plateau.after(self.step, loss if is_loss else sum(target for _, target in batch) / len(batch))
        return loss, given, rate


def evaluation(line, rows):
    """Over all rows, of the line as it is now."""
    given = [line.at(x) for x, _ in rows]
    yield f'= loss {sum((y - target) ** 2 for y, (_, target) in zip(given, rows)) / len(rows):.5f}\n'
    yield f'= target {sum(target for _, target in rows) / len(rows):.5f}\n'


def live(line, rows):
    """An evaluation, and predictions of two rows, while the session is open."""
    yield from evaluation(line, rows)
    yield from (f'= y {line.at(x):.5f}\n' for x, _ in rows[:2])


def loop(line, sizes):
    rows, first = data(), 0
    yield f'loop {MOST} {" ".join(map(str, sizes))}\n'
    for number, size in enumerate(sizes, 1):
        batch = [rows[(first + i) % ROWS] for i in range(size)]
        first += size
        loss, given, rate = line.train(batch)
        if number == len(sizes):
            yield from evaluation(line, rows)  # by a hook
        target = sum(label for _, label in batch) / size
        yield f'= step {line.step} examples {size} loss {loss:.5f} learning_rate {rate:.5f} target {target:.5f}\n'
        yield from (f'= y {y:.5f}\n' for y in given)
    yield from live(line, rows)
    yield f'= end of input, examples 0 of {sum(sizes)}\n'


def begin(devices, *options):
    yield f'devices {devices}\ndata {ROWS} {COLUMNS} {CLASSES} {SEED}\npipeline batch {MOST}\nmodel regression\n'
    yield from (f'run {option}\n' for option in options)


def loops(devices, *options, plateau=None):
    line = Line(plateau and Plateau(plateau.split()))
    yield from begin(devices, 'keep_outputs 1', *options)
    if plateau:
        yield f'plateau {plateau}\n'
    yield from loop(line, [1, 7, 2, 5, 5, 3])
    yield from loop(line, [4, 6])
    for restored in ('', f'restore\n= step {line.step}\n'):  # what was saved in the open session
        yield f'{restored}variable line/slope\n= shape {COLUMNS} 1 sum {sum(line.slope):.5f}\n'


def mistakes():
    yield from begin(2, 'keep_outputs 1')
    yield "loop 0 1\n= INVALID_ARGUMENT: argument 'most_rows' must be 1 or more, got 0\n"
    for size in (0, MOST + 1):
        yield f'loop {MOST} {size}\n= INVALID_ARGUMENT: feed: a batch of {size} rows, expected 1 to {MOST}\n'


def without_outputs():
    yield from begin(3)
    head = list(loop(Line(), [5]))[:4]
    yield f'{"".join(head)}= FAILED_PRECONDITION: outputs are kept only with the run option keep_outputs\n'


def scenario(name, lines):
    return f'\nscenario {name}\n' + ''.join(lines)


HEAD = """# Made by loop_scenarios.py, which works these results out; scenarios.txt says what the lines mean.
"""


def text():
    parts = [scenario(name, loops(devices, *options)) for name, devices, options in (
        ('batches on one device', 1, ()),
        ('batches on two devices', 2, ()),
        ('batches on three devices', 3, ()),
        ('batches on three devices with weights of their own', 3, ('all_reduce host',)),
        ('batches on two devices as one', 2, ('determinism invariant',)),
    )]
    parts += [scenario(f'reductions of the rate on {name}', loops(devices, plateau=plateau)) for name, devices, plateau in (
        ('one device', 1, 'loss 0 1 0 0 0.5 0.1 0.2'),
        ('two devices', 2, 'target 1 1 1 1 0.25 0.05 0'),
        ('three devices', 3, 'loss 0 2 0 1 0.25 0.5 0'),
    )]
    return HEAD + ''.join(parts) + scenario('no batches', mistakes()) + scenario('no outputs', without_outputs())


def main(arguments):
    if arguments != ['--check']:
        with open(PATH, 'w', encoding='utf-8') as target:
            target.write(text())
        return 0
    with open(PATH, encoding='utf-8') as found:
        if found.read() == text():
            return 0
    print('tests/bindings/loops.txt is not what loop_scenarios.py writes')
    return 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
