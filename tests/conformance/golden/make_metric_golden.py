#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_metric_golden.py DIRECTORY: writes metric_entries.json, what scikit-learn and Keras make of some predictions.

Each case is an entry of lib/nn/nn.yaml with its attributes, its inputs (predictions, targets and, where there are, weights), all
of as many rows, and the metric of all rows. Inputs are of single precision, metrics are computed in double precision. Where
neither library has a metric, or limits it, it is written out in NumPy ("made_by" says so).

Needs scikit-learn and Keras 3 with PyTorch; the file is kept in the tree, so building and testing do not.
"""
import json
import os
import sys
import warnings

import numpy as np

os.environ['KERAS_BACKEND'] = 'torch'
import keras  # noqa: E402
import sklearn  # noqa: E402
from sklearn import metrics as sk  # noqa: E402

keras.config.set_floatx('float64')
warnings.simplefilter('ignore')
RANDOM = np.random.default_rng(20261129)
ROWS, CLASSES = 23, 4
SKLEARN, KERAS, WRITTEN = f'scikit-learn {sklearn.__version__}', f'Keras {keras.__version__}', f'definition, in NumPy {np.__version__}'
DONE = []


# ---- numbers ----


def single(array):
    return np.asarray(array, np.float32).astype(np.float64)


def labels(*shape, most=CLASSES):
    return RANDOM.integers(0, most, (ROWS, *shape))


def uniform(*shape, low=0.0, high=1.0):
    return single(RANDOM.uniform(low, high, (ROWS, *shape)))


def normal(*shape, size=2.0):
    return single(size * RANDOM.standard_normal((ROWS, *shape)))


def weights_of(kind, shape=()):
    """None, one for each row, or one for each of `shape` in a row; zeros among them."""
    if kind == 'none':
        return None
    return single(RANDOM.choice([0.0, 0.5, 1.0, 2.5], (ROWS, *(shape if kind == 'elements' else ()))))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def spread(weights, shape):
    if weights is None:
        return np.ones(shape)
    return np.broadcast_to(weights.reshape(weights.shape + (1,) * (len(shape) - weights.ndim)), shape)


# ---- cases ----


def shortest(number):
    """As few digits as tell numbers of single precision apart."""
    return number.item() if number.dtype.kind == 'i' else float(str(np.float32(number)))


def tensor(values):
    kind = 'i32' if values.dtype.kind == 'i' else 'f32'
    return {'dtype': kind, 'dims': list(values.shape), 'values': [shortest(one) for one in values.reshape(-1)]}


def attribute(value):
    if isinstance(value, bool):
        return {'bool': value}
    if isinstance(value, str):
        return {'string': value}
    if isinstance(value, list):
        return {'ints' if isinstance(value[0], int) else 'doubles': value}
    return {'i64': value} if isinstance(value, int) else {'f64': float(value)}


def case(name, made_by, inputs, result, **attributes):
    result = np.asarray(result, np.float64)
    assert np.isfinite(result).all(), (name, attributes, result)
    inputs = [one for one in inputs if one is not None]
    assert all(len(one) == ROWS for one in inputs)
    DONE.append({'op': f'metric_{name}', 'made_by': made_by, 'attributes': {k: attribute(v) for k, v in attributes.items()},
                 'inputs': [tensor(one) for one in inputs],
                 'outputs': [{'dtype': 'f64', 'dims': list(result.shape), 'values': result.reshape(-1).tolist()}],
                 'relative': 1e-5, 'absolute': 1e-7})


# ---- classes ----


def score_functions(average):
    """By name: (truth, predicted, sample weights, classes or None) to what scikit-learn has."""
    given, beta = {'average': average, 'zero_division': 0}, {'micro': 0.5, 'macro': 2.0, 'weighted': 2.0}.get(average, 1.0)

    def scores(function, **more):
        return lambda t, p, w, classes: function(t, p, sample_weight=w, labels=classes, **given, **more)
    return {'precision': (scores(sk.precision_score), {}), 'recall': (scores(sk.recall_score), {}),
            'f_beta': (scores(sk.fbeta_score, beta=beta), {'beta': beta})}


def quotient(x, y):
    return np.where(y == 0, 0.0, x / np.where(y == 0, 1, y))


def specificity(hits, predicted, actual, everything, average):
    if average == 'micro':
        hits, predicted, actual, everything = (np.sum(one, keepdims=True) for one in (hits, predicted, actual, everything))
    others = everything - actual
    values = quotient(others - predicted + hits, others)
    if average == 'none':
        return values
    return quotient((values * actual).sum(), actual.sum()) if average == 'weighted' else values.mean()


def counts_of(truth, predicted, weights):
    """Of arrays of 0 and 1 [rows, classes] and weights of the same shape."""
    return [(one * weights).sum(0) for one in (truth * predicted, predicted, truth, np.ones_like(truth))]


def binary():
    for kind, shape in (('none', ()), ('rows', ()), ('rows', (3,)), ('elements', (3,))):
        for threshold, from_logits in ((0.5, False), (0.3, False), (0.8, True)):
            scores = normal(*shape) if from_logits else uniform(*shape)
            targets = labels(*shape, most=2)
            weights = weights_of(kind, shape)
            inputs = [scores, targets.astype(np.float64) if threshold == 0.3 else targets, weights]
            given = {'threshold': threshold, 'from_logits': from_logits}
            probability = sigmoid(scores) if from_logits else scores
            t, p = targets.reshape(-1), (probability > np.float32(threshold)).astype(int).reshape(-1)
            w = spread(weights, targets.shape).reshape(-1)
            for name, (function, more) in score_functions('binary').items():
                case(name, SKLEARN, inputs, function(t, p, w, None), average='binary', **more, **given)
            case('specificity', f'{SKLEARN}: recall of class 0', inputs, sk.recall_score(t, p, sample_weight=w, pos_label=0), **given)
            case('binary_accuracy', SKLEARN, inputs, sk.accuracy_score(t, p, sample_weight=w), **given)
            two_classes(inputs, t, p, w, given)
    column, targets = uniform(1), labels(most=2)
    case('precision', SKLEARN, [column, targets], sk.precision_score(targets, column[:, 0] > 0.5))
    never, targets = single(np.full(ROWS, 0.25)), labels(most=2)
    for name in ('precision', 'recall', 'f_beta', 'matthews_correlation'):  # nothing is predicted
        case(name, SKLEARN, [never, targets], 0.0)
    case('specificity', SKLEARN, [never, targets], 1.0)


def two_classes(inputs, t, p, w, given):
    for adjusted in (False, True):
        case('balanced_accuracy', SKLEARN, inputs, sk.balanced_accuracy_score(t, p, sample_weight=w, adjusted=adjusted),
             adjusted=adjusted, **given)
    case('matthews_correlation', SKLEARN, inputs, sk.matthews_corrcoef(t, p, sample_weight=w), **given)
    mean_iou(inputs, t, p, w, 2, given)
    confusion(inputs, t, p, w, 2, **given)


def mean_iou(inputs, t, p, w, classes, given):
    """Keras' metric rounds weights; without any they agree."""
    overlaps = sk.jaccard_score(t, p, labels=range(classes), average=None, sample_weight=w, zero_division=0)
    occurs = sk.confusion_matrix(t, p, labels=range(classes), sample_weight=w)
    occurs = occurs.sum(0) + occurs.sum(1) > 0
    for chosen in (None, [1, 0] if classes == 2 else [0, 2]):
        numbers = chosen or list(range(classes))
        result = overlaps[numbers][occurs[numbers]].mean()
        if (w == 1).all():
            metric = keras.metrics.IoU(num_classes=classes, target_class_ids=numbers)
            metric.update_state(t, p)
            assert abs(float(metric.result()) - result) < 1e-6
        case('mean_iou', f'{SKLEARN}, of classes that occur', inputs, result, **({} if chosen is None else {'classes': chosen}),
             **given)


def averages(inputs, t, p, w, made_by, names, given, everything):
    """`t` and `p` as scikit-learn takes them; `everything`: truth, predictions and weights by class."""
    counts = counts_of(*everything)
    for average in names:
        for classes in (None, [2, 0]) if len(inputs) > 2 and inputs[2] is not None else (None,):
            numbers = classes or list(range(counts[0].shape[0]))
            chosen = {} if classes is None else {'classes': classes}
            for name, (function, more) in score_functions(None if average == 'none' else average).items():
                case(name, made_by, inputs, function(t, p, w, numbers), average=average, **chosen, **more, **given)
            case('specificity', WRITTEN, inputs, specificity(*(one[numbers] for one in counts), average), average=average,
                 **chosen, **given)


def exclusive():
    for kind, shape in (('none', ()), ('rows', ()), ('rows', (3,)), ('elements', (3,))):
        scores, targets, weights = normal(*shape, CLASSES), labels(*shape), weights_of(kind, shape)
        targets[targets == 1] = 3 if kind == 'rows' else 1  # a class that does not occur
        t, p, w = targets.reshape(-1), scores.argmax(-1).reshape(-1), spread(weights, targets.shape).reshape(-1)
        inputs = [scores, targets[..., None] if kind == 'none' else targets, weights]
        hot = np.eye(CLASSES)
        averages(inputs, t, p, w, SKLEARN, AVERAGES, {}, (hot[t], hot[p], np.repeat(w[:, None], CLASSES, 1)))
        for adjusted in (False, True):
            case('balanced_accuracy', SKLEARN, inputs, sk.balanced_accuracy_score(t, p, sample_weight=w, adjusted=adjusted),
                 adjusted=adjusted)
        case('matthews_correlation', SKLEARN, inputs, sk.matthews_corrcoef(t, p, sample_weight=w))
        mean_iou(inputs, t, p, w, CLASSES, {})
        case('accuracy', SKLEARN, inputs, sk.accuracy_score(t, p, sample_weight=w))
        confusion(inputs, t, p, w, CLASSES)
    always = single(np.tile([0.0, 1.0, 0.0, 0.0], (ROWS, 1)))
    case('matthews_correlation', SKLEARN, [always, labels()], 0.0)


def confusion(inputs, t, p, w, classes, **given):
    for normalized in ('none', 'targets', 'predictions', 'all'):
        known = {'none': None, 'targets': 'true', 'predictions': 'pred', 'all': 'all'}[normalized]
        case('confusion_matrix', SKLEARN, inputs, sk.confusion_matrix(t, p, labels=range(classes), sample_weight=w, normalize=known),
             normalize=normalized, **given)


def multi_label():
    for kind in ('none', 'rows', 'elements'):
        for from_logits in (False, True):
            scores = normal(CLASSES) if from_logits else uniform(CLASSES)
            targets, weights = labels(CLASSES, most=2), weights_of(kind, (CLASSES,))
            targets[:, 1] *= kind != 'none'
            predicted = ((sigmoid(scores) if from_logits else scores) > 0.5).astype(int)
            w = spread(weights, targets.shape)
            given = {'from_logits': from_logits}
            if kind == 'elements':  # scikit-learn has weights of rows only
                for average in AVERAGES:
                    case('specificity', WRITTEN, [scores, targets, weights],
                         specificity(*counts_of(targets, predicted, w), average), average=average, **given)
                continue
            averages([scores, targets, weights], targets, predicted, weights, SKLEARN, AVERAGES, given, (targets, predicted, w))


# ---- curves ----


def quantized(*shape):
    """Scores between the thresholds i / 199, many of them equal."""
    return single((RANDOM.integers(0, 199, (ROWS, *shape)) // 12 * 12 + 0.5) / 199)


def keras_area(curve, scores, targets, weights, **more):
    metric = keras.metrics.AUC(curve={'roc': 'ROC', 'precision_recall': 'PR'}[curve], **more)
    metric.update_state(targets, scores, sample_weight=weights)
    return float(metric.result())


def curves():
    for kind, shape in (('none', ()), ('rows', ()), ('elements', (3,))):
        scores, targets, weights = quantized(*shape), labels(*shape, most=2), weights_of(kind, shape)
        inputs, w = [scores, targets, weights], spread(weights, targets.shape)
        flat = (targets.reshape(-1), scores.reshape(-1))
        case('auc', SKLEARN, inputs, sk.roc_auc_score(*flat, sample_weight=w.reshape(-1)), curve='roc')
        case('auc', SKLEARN, inputs, sk.average_precision_score(*flat, sample_weight=w.reshape(-1)), curve='precision_recall',
             summation='step')
        logits = single(np.log(scores) - np.log1p(-scores))
        case('auc', SKLEARN, [logits, targets, weights], sk.roc_auc_score(*flat, sample_weight=w.reshape(-1)), from_logits=True)
        coarse = uniform(*shape)
        inputs = [coarse, targets, weights]
        for curve in ('roc', 'precision_recall'):
            case('auc', KERAS, inputs, keras_area(curve, coarse, targets, w), curve=curve)
            case('auc', KERAS, inputs, keras_area(curve, coarse, targets, w, num_thresholds=5), curve=curve, threshold_count=5)
            case('auc', KERAS, inputs, keras_area(curve, coarse, targets, w, thresholds=[0.7, 0.2, 0.45]), curve=curve,
                 thresholds=[0.7, 0.2, 0.45])
    for kind in ('none', 'rows'):
        scores, targets, weights = quantized(CLASSES), labels(CLASSES, most=2), weights_of(kind)
        for average in ('micro', 'macro', 'weighted', 'none'):
            known = None if average == 'none' else average
            case('auc', SKLEARN, [scores, targets, weights], sk.roc_auc_score(targets, scores, average=known, sample_weight=weights),
                 average=average)
            case('auc', SKLEARN, [scores, targets, weights],
                 sk.average_precision_score(targets, scores, average=known, sample_weight=weights), average=average,
                 curve='precision_recall', summation='step')
        numbers = labels()
        hot = np.eye(CLASSES)[numbers]
        for average in ('micro', 'macro', 'weighted', 'none'):
            known = None if average == 'none' else average
            case('auc', f'{SKLEARN}, one against the rest', [scores, numbers, weights],
                 sk.roc_auc_score(hot, scores, average=known, sample_weight=weights), average=average)
    case('auc', WRITTEN, [quantized(), np.zeros(ROWS, np.int64)], 0.0)


# ---- numbers ----


def regression():
    for kind, shape in (('none', ()), ('rows', ()), ('rows', (3,)), ('elements', (2, 2))):
        targets = single(100 + normal(*shape))
        predictions, weights = single(targets + normal(*shape, size=0.7)), weights_of(kind, shape)
        t, p, w = targets.reshape(-1), predictions.reshape(-1), spread(weights, targets.shape).reshape(-1)
        inputs = [predictions, targets, weights]
        case('mean_squared_error', SKLEARN, inputs, sk.mean_squared_error(t, p, sample_weight=w))
        case('root_mean_squared_error', SKLEARN, inputs, sk.root_mean_squared_error(t, p, sample_weight=w))
        case('mean_absolute_error', SKLEARN, inputs, sk.mean_absolute_error(t, p, sample_weight=w))
        case('mean_absolute_percentage_error', f'{SKLEARN}, times 100', inputs,
             100 * sk.mean_absolute_percentage_error(t, p, sample_weight=w))
        if kind == 'elements':
            continue
        for multioutput in ('uniform_average', 'variance_weighted'):
            case('r_squared', SKLEARN, inputs, sk.r2_score(targets, predictions, sample_weight=weights, multioutput=multioutput),
                 multioutput=multioutput)
        case('mean', WRITTEN, [targets, weights], np.average(t, weights=w))
    constant = single(np.full((ROWS, 2), 0.3))
    constant_predictions = constant + np.array([0.0, 0.5])
    case('r_squared', SKLEARN, [single(constant_predictions), constant], sk.r2_score(constant, constant_predictions))
    predictions, zeros = uniform(), single(np.where(labels(most=2), normal(), 0.0))
    case('mean_absolute_percentage_error', WRITTEN, [predictions, zeros],
         100 * np.mean(np.abs(predictions - zeros) / np.maximum(np.abs(zeros), 0.5)), epsilon=0.5)


def logarithms():
    for kind, shape in (('none', ()), ('rows', ()), ('elements', (3,))):
        logits, targets, weights = normal(*shape, CLASSES), labels(*shape), weights_of(kind, shape)
        p = single(softmax(logits))
        w = spread(weights, targets.shape).reshape(-1)
        flat = targets.reshape(-1), softmax(logits).reshape(-1, CLASSES)
        loss = sk.log_loss(*flat, sample_weight=w, labels=range(CLASSES))
        for from_logits, predictions in ((True, logits), (False, p)):
            case('log_loss', SKLEARN, [predictions, targets, weights], loss, from_logits=from_logits)
            case('perplexity', f'exp of {SKLEARN}', [predictions, targets, weights], np.exp(loss), from_logits=from_logits)
        sure = single(np.eye(CLASSES)[labels(*shape)])
        least = np.where(np.take_along_axis(sure, targets[..., None], -1)[..., 0] > 0, 1, 0.01)
        values = np.log1p(0.01 * (CLASSES - 1)) - np.log(least)
        limited = np.average(values.reshape(-1), weights=w)
        case('log_loss', WRITTEN, [sure, targets, weights], limited, epsilon=0.01)
        case('perplexity', WRITTEN, [sure, targets, weights], np.exp(limited), epsilon=0.01)
        top = (-logits).argsort(-1)[..., :2]
        case('top_k_accuracy', WRITTEN, [logits, targets, weights],
             np.average((top == targets[..., None]).any(-1).reshape(-1), weights=w), k=2)
        binary_scores, binary_targets = normal(*shape), labels(*shape, most=2)
        loss = sk.log_loss(binary_targets.reshape(-1), sigmoid(binary_scores).reshape(-1), sample_weight=w, labels=[0, 1])
        case('binary_log_loss', SKLEARN, [binary_scores, binary_targets, weights], loss, from_logits=True)
        case('binary_log_loss', SKLEARN, [single(sigmoid(binary_scores)), binary_targets.astype(np.float64), weights], loss)
        certain = binary_targets.astype(np.float64)
        certain.reshape(-1)[::5] = 1 - certain.reshape(-1)[::5]
        missed = np.where(certain == binary_targets, 0, -np.log(0.001))
        case('binary_log_loss', WRITTEN, [certain, binary_targets, weights], np.average(missed.reshape(-1), weights=w), epsilon=0.001)
    huge = single(RANDOM.choice([-1e4, -3.0, 0.0, 2.0, 1e4], (ROWS, CLASSES)))
    numbers = huge.argmax(-1)
    values = -np.log(softmax(huge)[np.arange(ROWS), numbers])
    case('log_loss', WRITTEN, [huge, numbers], values.mean(), from_logits=True)


def cosines():
    for kind in ('none', 'rows'):
        p, t, weights = normal(5), normal(5), weights_of(kind)
        p[3] = 0
        values = [0.0 if not x.any() else sk.pairwise.cosine_similarity(x[None], y[None])[0, 0] for x, y in zip(p, t)]
        case('cosine_similarity', SKLEARN, [p, t, weights], np.average(values, weights=weights))


AVERAGES = ('micro', 'macro', 'weighted', 'none')


def main():
    for make in (binary, exclusive, multi_label, curves, regression, logarithms, cosines):
        make()
    lines = [json.dumps(one, ensure_ascii=False, separators=(', ', ': ')) for one in DONE]
    with open(os.path.join(sys.argv[1], 'metric_entries.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(lines) + '\n]\n')
    print(f'{len(DONE)} cases of {len({one["op"] for one in DONE})} metrics')


if __name__ == '__main__':
    main()
