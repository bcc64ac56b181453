# SPDX-License-Identifier: Apache-2.0
"""Cases of connectionist temporal classification for make_loss_golden.py: rows of frames and of labels, whose lengths differ.

PyTorch has the loss. Its gradient is right for what is behind a log_softmax alone, so that of logarithms of probabilities, and
small cases of logits, too, are made from the definition: by going through all sequences of classes that there are.
"""
import itertools

import numpy as np
import torch
import torch.nn.functional as F

from loss_golden_cases import Loss, normal, RANDOM, REDUCTIONS, single, TORCH, WRITTEN

SHAPES = [(5, 7, 4, 3), (3, 1, 3, 1), (1, 6, 2, 3), (4, 9, 5, 4), (7, 12, 6, 5), (6, 3, 3, 2)]
SMALL = [(5, 4, 3, 2), (3, 1, 3, 1), (1, 5, 2, 3), (4, 6, 3, 3)]
BEHIND = (-7, 0, 1, 99)  # what may stand behind the labels of a row


def frames_needed(labels):
    return len(labels) + sum(a == b for a, b in zip(labels, labels[1:]))


def row_of_labels(kind, frames, classes, most, blank):
    """As many labels as fit, none, one, equal ones, or any."""
    others = [one for one in range(classes) if one != blank]
    count = {'long': most, 'empty': 0, 'one': min(1, most), 'equal': most, 'any': int(RANDOM.integers(0, most + 1))}[kind]
    one = int(RANDOM.choice(others))
    row = [one if kind == 'equal' else int(RANDOM.choice(others)) for _ in range(count)]
    while frames_needed(row) > frames:
        row.pop()
    return row


def ragged(scores, blank=0, behind=True):
    """[scores, labels, input lengths, label lengths]"""
    def make(shape):
        rows, frames, classes, most = shape
        kinds = list(itertools.islice(itertools.cycle(('long', 'empty', 'equal', 'any', 'one')), rows))
        lengths = [frames if kind == 'long' else int(RANDOM.integers(1, frames + 1)) for kind in kinds]
        labels = [row_of_labels(kind, length, classes, most, blank) for kind, length in zip(kinds, lengths)]
        padded = [row + [int(RANDOM.choice(BEHIND)) if behind else blank] * (most - len(row)) for row in labels]
        return [scores((rows, frames, classes)), torch.tensor(padded).reshape(rows, most), torch.tensor(lengths),
                torch.tensor([len(row) for row in labels])]
    return make


def whole(scores, blank=0):
    """[scores, labels], all of them valid."""
    def make(shape):
        rows, frames, classes, most = shape
        labels = [[] for _ in range(rows)]
        while not all(labels) or any(frames_needed(row) > frames for row in labels):
            labels = [[int(RANDOM.choice([c for c in range(classes) if c != blank])) for _ in range(most)] for _ in range(rows)]
        return [scores((rows, frames, classes)), torch.tensor(labels)]
    return make


def logarithms(shape):
    return single(F.log_softmax(normal(shape), dim=-1).numpy())


def steep(shape):
    """Logits of +-10,000, of which one is the largest of each frame, so that all logarithms are whole numbers."""
    values = RANDOM.choice([-1e4, 0.0], shape)
    largest = RANDOM.integers(0, shape[-1], shape[:-1])
    np.put_along_axis(values, largest[..., None], 1e4, -1)
    return single(values)


def along_labels(shape):
    """Logits of +-10,000, large for the classes of an alignment of each row's labels and for some others."""
    inputs = ragged(steep)(shape)
    values = RANDOM.choice([-1e4, 0.0, 1e4], shape[:3], p=(0.5, 0.3, 0.2))
    for row, labels, length, count in zip(values, *(one.tolist() for one in inputs[1:])):
        path = []
        for one in labels[:count]:
            path += [0, one] if path and path[-1] == one else [one]
        path += [0] * (length - len(path))
        row[range(length), path] = 1e4
    return [single(values)] + inputs[1:]


def lengths_of(inputs):
    rows, frames = inputs[0].shape[:2]
    given = inputs[2:4] or [torch.full((rows,), frames), torch.full((rows,), inputs[1].shape[1])]
    return [one.tolist() for one in given]


def divided(values, counts, per_label):
    return values / torch.tensor(counts).clamp(min=1) if per_label else values


def by_torch(inputs, blank=0, per_label=False, zero_infinity=False):
    frames, counts = lengths_of(inputs)
    made = F.log_softmax(inputs[0], dim=-1).transpose(0, 1)
    arguments = (made, inputs[1], frames, counts, blank)
    values = divided(F.ctc_loss(*arguments, reduction='none', zero_infinity=zero_infinity), counts, per_label)
    if per_label:
        mean = F.ctc_loss(*arguments, reduction='mean', zero_infinity=zero_infinity)
        assert torch.allclose(values.mean(), mean, rtol=1e-12)
    return values


def labels_of(path, blank):
    return [one for one, _ in itertools.groupby(path) if one != blank]


def by_definition(inputs, form, blank=0, per_label=False):
    frames, counts = lengths_of(inputs)
    made = F.log_softmax(inputs[0], dim=-1) if form == 'logits' else inputs[0]
    values = []
    for row, labels, length, count in zip(made, inputs[1].tolist(), frames, counts):
        paths = [path for path in itertools.product(range(row.shape[-1]), repeat=length) if labels_of(path, blank) == labels[:count]]
        sums = [sum(row[t, c] for t, c in enumerate(path)) for path in paths]
        values.append(-torch.logsumexp(torch.stack(sums), 0))
    return divided(torch.stack(values), counts, per_label)


def without_alignment(shape):
    """The labels of the first and the last row need more frames than there are."""
    inputs = ragged(normal)(shape)
    for row in (0, -1):
        inputs[1][row, :] = 1
        inputs[2][row], inputs[3][row] = 2, shape[3]
    return inputs


def temporal():
    loss = Loss('ctc', TORCH, by_torch)
    loss.cases(ragged(normal), SHAPES)
    loss.cases(along_labels, SHAPES)
    loss.cases(ragged(steep), SHAPES, absolute=5e-3)  # paths of -100,000: single precision has no more digits
    loss.cases(whole(normal), [(4, 9, 5, 3), (2, 8, 3, 1)], kinds=('none',))
    for blank in (1, 3):
        loss.cases(ragged(normal, blank), [(5, 7, 4, 3), (4, 9, 5, 4)], blank=blank)
    loss.cases(ragged(normal), SHAPES, per_label=True)
    loss.cases(without_alignment, [(5, 7, 4, 3), (3, 4, 3, 2)], zero_infinity=True)
    written = Loss('ctc', WRITTEN, by_definition)
    for form, scores in (('logits', normal), ('log_probabilities', logarithms)):
        written.cases(ragged(scores), SMALL, form=form)
        written.cases(ragged(scores, 2), [(5, 4, 3, 2), (4, 5, 3, 3)], form=form, blank=2, per_label=True)
