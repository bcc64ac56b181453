#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_loss_golden.py DIRECTORY: writes loss_entries.json, what the losses of PyTorch and Keras make of some numbers.

Each case is an entry of lib/nn/nn.yaml with its attributes and inputs, the loss, and the gradient of its sum for the first
inputs, those that are differentiated. Inputs are of single precision, everything is computed from them in double precision.
The loss of each element comes from the library that has it, called as a user would; where neither has it, or both limit it
where it must be exact, it is written out in PyTorch ("made_by" says so). Weights and reductions are applied here in one way
and compared with those of the libraries. Logits of +-10,000, shapes of one row or one class and zero weights are there.

Needs PyTorch and Keras 3; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import sys

from loss_golden_cases import (  # noqa: I001  it chooses the backend of Keras
    by_binary_target, by_label, by_target, distributions, DONE, each, huge, KERAS, labels, Loss, normal,
    one_hot, RANDOM, reduce, REDUCTIONS, single, spread, tensor, TORCH, uniform, WRITTEN)
from ctc_golden_cases import temporal
import keras
import numpy as np
import torch
import torch.nn.functional as F

# ---- numbers against numbers ----

ELEMENTWISE = [(4, 3), (1,), (5,), (1, 1), (3, 2, 2)]


def pair(shape):
    predictions, targets = normal(shape), normal(shape)
    predictions.reshape(-1)[0] = targets.reshape(-1)[0] + 1e-3
    return [single(predictions), targets]


def far_pair(shape):
    predictions, targets = pair(shape)
    return [predictions + huge(shape), targets]


def pinball(inputs, quantile):
    error = inputs[1] - inputs[0]
    return torch.where(error >= 0, quantile * error, (quantile - 1) * error)


def regression():
    squared = Loss('mean_squared_error', TORCH, lambda i: F.mse_loss(*i, reduction='none'))
    absolute = Loss('mean_absolute_error', TORCH, lambda i: F.l1_loss(*i, reduction='none'))
    huber = Loss('huber', TORCH, lambda i, delta: F.huber_loss(*i, reduction='none', delta=delta))
    log_cosh = Loss('log_cosh', KERAS, each(keras.losses.log_cosh))
    quantile = Loss('quantile', WRITTEN, pinball)
    for loss in (squared, absolute, log_cosh):
        loss.cases(pair, ELEMENTWISE)
        loss.cases(pair, [(7, 2), (3,), (5, 3, 1), (4,), (9, 1)])
        loss.cases(far_pair, [(4, 5), (7,), (5, 1, 2)])
    log_cosh.case([single([[1e-3, -1e-2, 0.1, 0.9999, 1.0, 1.0001, 9.0, -30.0]]), single(np.zeros((1, 8)))], reduction='none')
    for delta in (0.25, 1.0, 3.0):
        huber.cases(pair, ELEMENTWISE, delta=delta)
        huber.case(far_pair((4, 5)), 'values', 'weighted_mean', delta=delta)
    for share in (0.1, 0.5, 0.95):
        quantile.cases(pair, ELEMENTWISE, quantile=share)
        quantile.case(far_pair((4, 5)), 'rows', 'mean', quantile=share)


def with_counts(predictions):
    return lambda shape: [predictions(shape), single(RANDOM.integers(0, 6, shape))]


counts, log_counts = with_counts(lambda shape: uniform(shape, 0.1, 4)), with_counts(lambda shape: normal(shape, 1))


def poisson():
    Loss('poisson', KERAS, each(keras.losses.poisson)).cases(counts, ELEMENTWISE)
    loss = Loss('poisson', TORCH, lambda i, log_predictions, full, epsilon: F.poisson_nll_loss(
        i[0], i[1], log_input=log_predictions, full=full, eps=epsilon, reduction='none'))
    for full in (False, True):
        loss.cases(counts, ELEMENTWISE[:2], log_predictions=False, full=full, epsilon=1e-8)
        loss.cases(log_counts, ELEMENTWISE[:2], log_predictions=True, full=full, epsilon=1e-7)
    loss.case([single([[-1e4, 3.0], [0.0, 20.0]]), single([[0.0, 2.0], [1.0, 5.0]])], log_predictions=True, full=False,
              epsilon=1e-7)


# ---- binary classes ----


def with_bits(scores):
    return lambda shape: [scores(shape), single(RANDOM.integers(0, 2, shape))]


binary, huge_binary = with_bits(normal), with_bits(huge)
probabilities = with_bits(lambda shape: uniform(shape, 0.02, 0.98))


def soft_binary(shape):
    return [normal(shape), uniform(shape)]


def limited_probabilities(shape):
    """Where they are below 0.1 the target is 1: Keras limits them before it takes 1 - p."""
    predictions = uniform(shape, 0.01, 0.8)
    return [predictions, torch.where(predictions < 0.1, 1.0, single(RANDOM.integers(0, 2, shape)))]


def binary_cross_entropies():
    plain = Loss('sigmoid_cross_entropy', TORCH, lambda i: F.binary_cross_entropy_with_logits(*i, reduction='none'),
                 by_binary_target(1))
    for make in (binary, soft_binary, huge_binary):
        plain.cases(make, ELEMENTWISE)
        plain.cases(make, ELEMENTWISE, class_weights=[0.25, 3.0])
    smooth = Loss('sigmoid_cross_entropy', KERAS, each(lambda t, p, label_smoothing: keras.losses.binary_crossentropy(
        t, p, from_logits=True, label_smoothing=label_smoothing)), by_binary_target(1))
    smooth.cases(binary, ELEMENTWISE, label_smoothing=0.2)
    smooth.cases(soft_binary, ELEMENTWISE, label_smoothing=0.1, class_weights=[2.0, 0.5])
    positive = Loss('sigmoid_cross_entropy', TORCH, lambda i, positive_weights: F.binary_cross_entropy_with_logits(
        *i, pos_weight=single(positive_weights), reduction='none'), by_binary_target(1))
    for make in (binary, soft_binary, huge_binary):
        positive.cases(make, ELEMENTWISE, positive_weights=[0.3])
        positive.cases(make, [(4, 3), (1, 3), (2, 2, 3)], positive_weights=[0.5, 7.0, 0.0])
    positive.cases(binary, ELEMENTWISE, positive_weights=[4.0], class_weights=[0.5, 1.5])
    plain = Loss('binary_cross_entropy', TORCH, lambda i: F.binary_cross_entropy(*i, reduction='none'), by_binary_target(1))
    plain.cases(probabilities, ELEMENTWISE)
    plain.cases(probabilities, ELEMENTWISE, class_weights=[0.25, 3.0])
    keras_loss = Loss('binary_cross_entropy', KERAS, each(lambda t, p, label_smoothing: keras.losses.binary_crossentropy(
        t, p, label_smoothing=label_smoothing)), by_binary_target(1))
    keras_loss.cases(probabilities, ELEMENTWISE, label_smoothing=0.2)
    keras_loss.case([single([[0.0, 1e-9], [1e-6, 0.25]]), single([[1.0, 1.0], [1.0, 0.0]])], label_smoothing=0.0)
    limited = Loss('binary_cross_entropy', KERAS, each(with_epsilon(keras.losses.binary_crossentropy)))
    limited.cases(limited_probabilities, ELEMENTWISE, epsilon=0.1)
    weighted = Loss('binary_cross_entropy', WRITTEN, lambda i, positive_weights: -(
        single(positive_weights) * i[1] * torch.log(i[0]) + (1 - i[1]) * torch.log1p(-i[0])), by_binary_target(1))
    weighted.cases(probabilities, [(4, 3), (1, 3)], positive_weights=[0.5, 7.0, 0.0])


def sigmoid_focal(inputs, gamma, alpha=0.0):
    """Of targets 0 and 1, as torchvision.ops.sigmoid_focal_loss, but with 1 - p computed without loss."""
    side = torch.where(inputs[1] > 0, inputs[0], -inputs[0])
    values = torch.exp(gamma * F.logsigmoid(-side)) * F.softplus(-side)
    return values * torch.where(inputs[1] > 0, alpha, 1 - alpha) if alpha else values


def binary_focals():
    by_keras = Loss('sigmoid_focal', KERAS, each(lambda t, p, gamma, label_smoothing, alpha: keras.losses.binary_focal_crossentropy(
        t, p, apply_class_balancing=alpha != 0, alpha=alpha, gamma=gamma, from_logits=True, label_smoothing=label_smoothing)),
        by_binary_target(1))
    for gamma, smoothing, alpha in ((2.0, 0.0, 0.0), (2.0, 0.0, 0.25), (0.5, 0.1, 0.0), (3.5, 0.2, 0.9), (1.0, 0.0, 0.6)):
        by_keras.cases(binary, ELEMENTWISE, gamma=gamma, label_smoothing=smoothing, alpha=alpha)
    by_keras.cases(soft_binary, ELEMENTWISE, gamma=2.0, label_smoothing=0.0, alpha=0.0, class_weights=[0.5, 4.0])
    loss = Loss('sigmoid_focal', WRITTEN, sigmoid_focal, by_binary_target(1))
    for gamma in (0.0, 0.5, 1.0, 2.0, 5.0):
        loss.cases(huge_binary, ELEMENTWISE, gamma=gamma, alpha=0.25)
        loss.cases(huge_binary, ELEMENTWISE[:1], gamma=gamma, class_weights=[0.5, 4.0])


def signs(shape):
    return [normal(shape), single(2 * RANDOM.integers(0, 2, shape) - 1)]


def hinges():
    by_sign = by_binary_target(1, lambda targets: (targets > 0).to(torch.float64))
    for name, function, power in (('hinge', keras.losses.hinge, 1), ('squared_hinge', keras.losses.squared_hinge, 2)):
        loss = Loss(name, KERAS, each(function), by_sign)
        loss.cases(signs, ELEMENTWISE)
        loss.cases(signs, ELEMENTWISE, class_weights=[0.25, 2.0])
        # Keras takes targets for 0 and 1 where none of them is anything else.
        loss.cases(binary, [(4, 3), (5,)])
        wide = Loss(name, WRITTEN, lambda i, margin, power=power: F.relu(
            margin - torch.where(i[1] > 0, i[0], -i[0])) ** power, by_sign)
        for margin in (0.0, 2.5):
            wide.cases(signs, ELEMENTWISE, margin=margin)
        wide.cases(huge_binary, ELEMENTWISE, margin=1.0)


# ---- exclusive classes ----

CLASSES = [(4, 3), (1, 5), (1, 1), (2, 3, 4), (5, 2)]


def with_labels(scores):
    return lambda shape: [scores(shape), labels(shape[:-1], shape[-1])]


def with_one_hot(scores):
    return lambda shape: [scores(shape), one_hot(labels(shape[:-1], shape[-1]), shape[-1])]


hard, huge_hard, hot, huge_hot = with_labels(normal), with_labels(huge), with_one_hot(normal), with_one_hot(huge)


def soft(shape):
    return [normal(shape), distributions(shape)]


def flat(function):
    """A loss of PyTorch, which has classes on axis 1, of [..., classes]."""
    def call(inputs, **attributes):
        scores, targets = inputs
        rows = targets.reshape(-1) if targets.dtype == torch.int64 else targets.reshape(-1, scores.shape[-1])
        return function(scores.reshape(-1, scores.shape[-1]), rows, reduction='none', **attributes).reshape(scores.shape[:-1])
    return call


def log_of(function):
    def call(inputs, epsilon=1e-7, **attributes):
        return function([torch.log(torch.clamp(inputs[0], min=epsilon)), inputs[1]], **attributes)
    return call


def with_epsilon(function):
    """A loss of Keras with another epsilon than its own."""
    def call(*inputs, epsilon):
        usual = keras.config.epsilon()
        keras.config.set_epsilon(epsilon)
        try:
            return function(*inputs)
        finally:
            keras.config.set_epsilon(usual)
    return call


def check_class_weights():
    """PyTorch's weights by class with its reduction mean are class_weights with weighted_mean."""
    scores, numbers = hard((6, 3))
    weights = single([0.25, 3.0, 1.0])
    values = F.cross_entropy(scores, numbers, reduction='none')
    ours = reduce(values, weights[numbers], 'weighted_mean')
    assert torch.allclose(ours, F.cross_entropy(scores, numbers, weight=weights))
    theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='mean_with_sample_weight', dtype='float64')
    margins = reduce(F.multi_margin_loss(scores, numbers, reduction='none'), weights[numbers], 'sum')
    assert torch.allclose(margins, F.multi_margin_loss(scores, numbers, weight=weights, reduction='sum'))
    assert torch.allclose(ours, theirs(numbers, scores, sample_weight=weights[numbers]).double())


def class_weights(classes):
    return [float(w) for w in RANDOM.choice([0.25, 0.5, 1.0, 3.0], classes)]


def weighted_cases(loss, make, shapes, **attributes):
    for i, shape in enumerate(shapes):
        loss.case(make(shape), ('none', 'rows', 'values')[i % 3], REDUCTIONS[(i + i // 3) % 4],
                  class_weights=class_weights(shape[-1]), **attributes)


def cross_entropies():
    check_class_weights()
    sparse = Loss('sparse_softmax_cross_entropy', TORCH, flat(F.cross_entropy), by_label)
    dense = Loss('softmax_cross_entropy', TORCH, flat(F.cross_entropy), by_target)
    for smoothing in (0.0, 0.1):
        for loss, makes in ((sparse, (hard, huge_hard)), (dense, (soft, hot, huge_hot))):
            for make in makes:
                loss.cases(make, CLASSES, label_smoothing=smoothing)
                weighted_cases(loss, make, CLASSES * 2, label_smoothing=smoothing)
    # Neither predictions nor targets add up to 1 here.
    unscaled_hard = with_labels(lambda shape: uniform(shape, 0.05, 1))

    def unscaled(shape):
        return [uniform(shape, 0.05, 1), distributions(shape)]

    dense = Loss('categorical_cross_entropy', KERAS, lambda i, label_smoothing: keras.losses.categorical_crossentropy(
        i[1], i[0], label_smoothing=label_smoothing), by_target)
    dense_by_torch = Loss('categorical_cross_entropy', TORCH, log_of(flat(F.cross_entropy)), by_target)
    many = [shape for shape in CLASSES if shape[-1] > 1]
    dense.cases(unscaled, many, label_smoothing=0.0)
    dense.cases(unscaled, many, label_smoothing=0.3)
    dense_by_torch.cases(unscaled, CLASSES, label_smoothing=0.1)
    dense_by_torch.cases(unscaled, CLASSES, epsilon=0.3)
    weighted_cases(dense, unscaled, many * 2, label_smoothing=0.1)
    sparse = Loss('sparse_categorical_cross_entropy', KERAS, lambda i: keras.losses.sparse_categorical_crossentropy(
        i[1], i[0]), by_label)
    by_torch = Loss('sparse_categorical_cross_entropy', TORCH, log_of(flat(F.cross_entropy)), by_label)
    sparse.cases(lambda shape: [distributions(shape), labels(shape[:-1], shape[-1])], many)
    by_torch.cases(unscaled_hard, CLASSES, label_smoothing=0.1)
    by_torch.cases(unscaled_hard, CLASSES, epsilon=0.3)
    weighted_cases(by_torch, unscaled_hard, CLASSES * 2, label_smoothing=0.0)
    certain = single([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 1e-9, 1.0]])
    by_torch.case([certain, torch.tensor([1, 0, 2])], 'rows', 'none')
    dense_by_torch.case([certain, single([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])], 'rows', 'none')


def divergences():
    def both(shape):
        return [distributions(shape), distributions(shape)]

    loss = Loss('kullback_leibler', KERAS, lambda i: keras.losses.kl_divergence(i[1], i[0]), by_target)
    loss.cases(both, [shape for shape in CLASSES if shape[-1] > 1])
    weighted_cases(loss, both, [shape for shape in CLASSES if shape[-1] > 1])
    by_log = Loss('kullback_leibler', TORCH, lambda i: F.kl_div(*i, reduction='none').sum(-1), by_target)
    by_logit = Loss('kullback_leibler', TORCH, lambda i: F.kl_div(
        F.log_softmax(i[0], -1), i[1], reduction='none').sum(-1), by_target)
    for one in (by_log, by_logit):
        form = {'form': 'log_probabilities' if one is by_log else 'logits'}
        for shape, reduction in zip(CLASSES, REDUCTIONS * 2):
            one.case(soft(shape), 'rows', reduction, given=form)
            one.case(huge_hot(shape), 'values', reduction, given=form)  # 0 * log(0) = 0


def focal_of_class(log_p, gamma):
    return -torch.pow(-torch.expm1(log_p), gamma) * log_p if gamma else -log_p


def softmax_focal(inputs, gamma):
    """Terms of targets 0 are left out, so that no slope of a power at 0 comes in."""
    log_p = F.log_softmax(inputs[0], -1)
    used = (inputs[1] > 0) & (log_p < 0)
    terms = focal_of_class(torch.where(used, log_p, -1.0), gamma)
    return torch.where(used, inputs[1] * terms, 0.0).sum(-1)


def sparse_focal(inputs, gamma, label_smoothing=0.0):
    classes = inputs[0].shape[-1]
    targets = one_hot(inputs[1], classes) * (1 - label_smoothing) + label_smoothing / classes
    return softmax_focal([inputs[0], targets], gamma)


def focals():
    by_keras = Loss('softmax_focal', KERAS, lambda i, gamma, label_smoothing: keras.losses.categorical_focal_crossentropy(
        i[1], i[0], alpha=1.0, gamma=gamma, from_logits=True, label_smoothing=label_smoothing), by_target)
    many = [shape for shape in CLASSES if shape[-1] > 1]
    for gamma, smoothing in ((2.0, 0.0), (0.5, 0.1), (0.0, 0.2), (3.5, 0.0)):
        by_keras.cases(soft, many, gamma=gamma, label_smoothing=smoothing)
        weighted_cases(by_keras, hot, many, gamma=gamma, label_smoothing=smoothing)
    dense = Loss('softmax_focal', WRITTEN, softmax_focal, by_target)
    sparse = Loss('sparse_softmax_focal', WRITTEN, sparse_focal, by_label)
    for gamma in (0.0, 0.5, 1.0, 2.0, 5.0):
        dense.cases(huge_hot, CLASSES, gamma=gamma)
        sparse.cases(hard, many, gamma=gamma, label_smoothing=0.2)
        sparse.cases(huge_hard, CLASSES, gamma=gamma, label_smoothing=0.0)
        weighted_cases(sparse, hard, many, gamma=gamma, label_smoothing=0.0)


def class_hinges():
    by_keras = Loss('categorical_hinge', KERAS, lambda i: keras.losses.categorical_hinge(i[1], i[0]), by_target)
    by_keras.cases(hot, CLASSES)
    weighted_cases(by_keras, hot, CLASSES * 2)
    wide = Loss('categorical_hinge', WRITTEN, lambda i, margin: F.relu(
        margin + ((1 - i[1]) * i[0]).amax(-1) - (i[1] * i[0]).sum(-1)), by_target)
    wide.cases(hot, CLASSES, margin=2.5)
    wide.cases(huge_hot, [(5, 3)], margin=0.5)
    loss = Loss('multi_margin', TORCH, lambda i, margin, squared: flat(F.multi_margin_loss)(
        i, margin=margin, p=2 if squared else 1), by_label)
    for margin, squared in ((1.0, False), (0.5, True), (3.0, True)):
        loss.cases(hard, CLASSES, margin=margin, squared=squared)
        weighted_cases(loss, hard, CLASSES * 2, margin=margin, squared=squared)
        loss.case(huge_hard((5, 3)), margin=margin, squared=squared)


# ---- masks and vectors ----


masks = with_bits(lambda shape: uniform(shape, 0.05, 0.95))


def dice(inputs, smooth=0.0, epsilon=1e-7, squared=False, per_class=False):
    axes = tuple(range(1, inputs[0].dim() - (1 if per_class else 0)))

    def total(x):
        return x.sum(axes) if axes else x
    size = sum(total(x * x if squared else x) for x in inputs)
    return 1 - (2 * total(inputs[0] * inputs[1]) + smooth) / (size + smooth + epsilon)


def weighted_dice(inputs, over, smooth, squared):
    """Of all elements together, each times its weight, which is the third input."""
    predictions, targets = inputs[:2]
    weights = spread(inputs[2], predictions)
    size = sum((weights * (x * x if squared else x)).sum() for x in (predictions, targets))
    return 1 - (2 * (weights * predictions * targets).sum() + smooth) / (size + smooth + 1e-7)


def overlaps():
    def by_position(inputs, weights):
        return weights.expand(inputs[0].shape[0], -1)

    shapes = [(4, 3), (1, 5), (2, 3, 2, 2), (3,)]
    by_keras = Loss('dice', KERAS, lambda i: keras.losses.dice(i[1], i[0], axis=tuple(range(1, i[0].dim()))))
    by_keras.cases(masks, shapes[:3])
    by_class = Loss('dice', KERAS, lambda i, per_class: keras.losses.dice(i[1], i[0], axis=tuple(range(1, i[0].dim() - 1))),
                    by_position)
    by_class.cases(masks, [(2, 3, 2, 2), (4, 5, 3), (1, 1, 1)], per_class=True)
    weighted_cases(by_class, masks, [(2, 3, 2, 2), (4, 5, 3), (1, 1, 1), (3, 2, 4)], per_class=True)
    loss = Loss('dice', WRITTEN, dice, by_position)
    for smooth, epsilon, squared in ((1.0, 1e-7, False), (0.0, 1e-3, True), (0.5, 1e-7, True)):
        loss.cases(masks, shapes, smooth=smooth, epsilon=epsilon, squared=squared)
    whole = Loss('dice', KERAS, lambda i, over: keras.losses.dice(i[1], i[0]))
    weighted = Loss('dice', WRITTEN, weighted_dice)
    for shape, reduction in zip(shapes * 2, REDUCTIONS * 2):
        whole.case(masks(shape), reduction=reduction, over='batch')
        for weights in (uniform(shape), single(RANDOM.choice([0.0, 1.0, 2.5], shape[:1]))):
            weighted.case(masks(shape) + [weights], reduction=reduction, over='batch', smooth=0.5, squared=reduction == 'sum')
    loss.case([uniform((3, 4)), single(np.zeros((3, 4)))], smooth=0.0, epsilon=1e-7)
    loss.case([single(np.zeros((3, 4))), single(np.zeros((3, 4)))], smooth=1.0, epsilon=1e-7)


VECTORS = [(4, 3), (1, 5), (3, 1), (2, 3, 4)]


def vectors(count, size=2.0):
    return lambda shape: [normal(shape, size) for _ in range(count)]


def cosines():
    by_keras = Loss('cosine_similarity', KERAS, lambda i: keras.losses.cosine_similarity(i[1], i[0]), differentiated=(0,))
    by_torch = Loss('cosine_similarity', TORCH, lambda i: -F.cosine_similarity(i[0], i[1], dim=-1, eps=0.0), differentiated=(0, 1))
    by_keras.cases(vectors(2), VECTORS)
    by_torch.cases(vectors(2), VECTORS)
    by_torch.cases(vectors(2, 1e4), VECTORS)
    by_torch.cases(vectors(2, 1e-3), VECTORS, absolute=1e-3)  # where gradients of 1000 cancel each other out


def contrastive(inputs, margin):
    distance = torch.linalg.vector_norm(inputs[0] - inputs[1], dim=-1)
    return inputs[2] * distance ** 2 + (1 - inputs[2]) * F.relu(margin - distance) ** 2


def triplet(inputs, margin, swap=False):
    rows = [one.reshape(-1, one.shape[-1]) for one in inputs]
    values = F.triplet_margin_loss(*rows, margin=margin, p=2, eps=0.0, swap=swap, reduction='none')
    return values.reshape(inputs[0].shape[:-1])


def squared_triplet(inputs, margin, squared):
    anchor, positive, negative = inputs
    return F.relu(((anchor - positive) ** 2).sum(-1) - ((anchor - negative) ** 2).sum(-1) + margin)


def distances():
    pairs = Loss('contrastive', WRITTEN, contrastive, by_binary_target(2), differentiated=(0, 1))
    for margin in (0.0, 1.0, 5.0):
        for make in (vectors(2), vectors(2, 0.5)):
            pairs.cases(lambda shape, make=make: make(shape) + [single(RANDOM.integers(0, 2, shape[:-1]))], VECTORS,
                        margin=margin, absolute=1e-5)  # a distance close to the margin
    pairs.cases(lambda shape: vectors(2)(shape) + [uniform(shape[:-1])], VECTORS, margin=4.0, class_weights=[0.5, 2.0])
    pairs.case(vectors(2, 1e4)((4, 3)) + [single([0, 1, 0, 1])], margin=1.0)
    three = Loss('triplet', TORCH, triplet, differentiated=(0, 1, 2))
    for margin, swap in ((1.0, False), (0.2, True), (5.0, False), (5.0, True)):
        three.cases(vectors(3), VECTORS, margin=margin, swap=swap)
    three.cases(vectors(3, 1e4), VECTORS, margin=1.0, swap=False)
    Loss('triplet', WRITTEN, squared_triplet, differentiated=(0, 1, 2)).cases(vectors(3), VECTORS, margin=0.5, squared=True)


def main():
    for make in (regression, poisson, binary_cross_entropies, binary_focals, hinges, cross_entropies, divergences, focals,
                 class_hinges, overlaps, cosines, distances, temporal):
        make()
    with open(os.path.join(sys.argv[1], 'loss_entries.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in DONE) + '\n]\n')
    print(f'{len(DONE)} cases of {len({one["op"] for one in DONE})} losses')


main()
