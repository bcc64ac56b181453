# SPDX-License-Identifier: Apache-2.0
"""How make_loss_golden.py makes cases: random inputs, weights and reductions, and what is written down of each."""
import itertools
import os

import numpy as np

os.environ['KERAS_BACKEND'] = 'torch'
import keras  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

keras.config.set_floatx('float64')
RANDOM = np.random.default_rng(20201120)
TORCH, KERAS = f'PyTorch {torch.__version__}', f'Keras {keras.__version__}'
WRITTEN = f'definition, in PyTorch {torch.__version__}'
REDUCTIONS = ('mean', 'sum', 'weighted_mean', 'none')
NAMES = {torch.float64: 'f32', torch.int64: 'i32'}
DONE = []


# ---- numbers ----


def single(array):
    return torch.from_numpy(np.asarray(array, np.float32).astype(np.float64))


def normal(shape, size=2.0):
    return single(size * RANDOM.standard_normal(shape))


def uniform(shape, low=0.0, high=1.0):
    return single(RANDOM.uniform(low, high, shape))


def labels(shape, classes):
    return torch.from_numpy(RANDOM.integers(0, classes, shape))


def one_hot(numbers, classes):
    return F.one_hot(numbers, classes).to(torch.float64)


def distributions(shape):
    """Probabilities over the last dimension, which add up to 1 as far as single precision has it."""
    values = RANDOM.uniform(0.05, 1, shape)
    return single(values / values.sum(-1, keepdims=True))


def huge(shape):
    """Logits of +-10,000 between small ones."""
    values = RANDOM.choice([-1e4, -3.0, 0.0, 2.0, 1e4], shape)
    return single(values)


# ---- weights and reductions ----


def spread(weights, values):
    return weights.reshape(weights.shape + (1,) * (values.dim() - weights.dim())).expand(values.shape)


def reduce(values, weights, reduction):
    if weights is not None:
        values = values * weights
    if reduction == 'none' or values.dim() == 0:
        return values
    rows = values.shape[0]
    total = values.reshape(rows, -1).mean(1).sum()
    if reduction == 'sum':
        return total
    if reduction == 'mean' or weights is None:
        return total / rows
    return total / weights.reshape(rows, -1).mean(1).sum()


def combined(values, weights, by_class):
    """The weight of each value, or None."""
    all_weights = None if weights is None else spread(weights, values)
    if by_class is None:
        return all_weights
    return by_class if all_weights is None else all_weights * by_class


def make_weights(kind, shape):
    """For values of that shape: none, one for each row, one for each value; zeros among them."""
    if kind == 'none':
        return None
    values = RANDOM.choice([0.0, 0.5, 1.0, 2.5], shape if kind == 'values' else shape[:1])
    values.reshape(-1)[0] = 1.5
    return single(values)


# ---- cases ----


def tensor(value):
    flat = value.detach().reshape(-1).tolist()
    values = flat if value.dtype == torch.int64 else [float(np.float32(v)) for v in flat]
    return {'dtype': NAMES[value.dtype], 'dims': list(value.shape), 'values': values}


def attribute(value):
    if isinstance(value, bool):
        return {'bool': value}
    if isinstance(value, str):
        return {'string': value}
    if isinstance(value, int):
        return {'i64': value}
    return {'doubles': list(value)} if isinstance(value, (list, tuple)) else {'f64': float(value)}


class Loss:
    """An entry: `elements(inputs, **attributes)` gives the loss of each value, `by_class(inputs, class_weights)` its weight."""

    def __init__(self, name, made_by, elements, by_class=None, differentiated=(0,)):
        self.name, self.made_by, self.elements, self.by_class = name, made_by, elements, by_class
        self.differentiated = differentiated

    def case(self, inputs, kind='none', reduction='mean', given=None, absolute=1e-6, **attributes):
        """`attributes` are those of the elements, `given` is written down for them where it differs."""
        inputs = [one.clone() for one in inputs]
        for i in self.differentiated:
            inputs[i].requires_grad_()
        class_weights = attributes.pop('class_weights', None)
        values = self.elements(inputs, **attributes).to(torch.float64)  # Keras' hinge is of single precision
        weights = make_weights(kind, tuple(values.shape))
        by_class = None if class_weights is None else self.by_class(inputs, single(class_weights))
        result = reduce(values, combined(values, weights, by_class), reduction)
        result.sum().backward()
        written = dict(attributes if given is None else given, reduction=reduction)
        if class_weights is not None:
            written['class_weights'] = class_weights
        DONE.append({
            'op': f'loss_{self.name}', 'made_by': self.made_by,
            'attributes': {name: attribute(value) for name, value in written.items()},
            'inputs': [tensor(one) for one in inputs + ([] if weights is None else [weights])],
            'gradients': [tensor(inputs[i].grad) for i in self.differentiated],
            'outputs': [tensor(result)], 'relative': 1e-5, 'absolute': absolute})
        assert bool(torch.isfinite(result).all()) and all(bool(torch.isfinite(inputs[i].grad).all()) for i in self.differentiated)

    def cases(self, make, shapes, kinds=('rows', 'none', 'values'), **attributes):
        """All reductions with these attributes; shapes and kinds of weights take turns."""
        turns = zip(itertools.cycle(shapes), itertools.cycle(kinds), REDUCTIONS * 2)
        for shape, kind, reduction in list(turns)[:max(4, len(shapes))]:
            self.case(make(shape), kind, reduction, **attributes)


def by_label(inputs, weights):
    return weights[inputs[1]]


def by_target(inputs, weights):
    return (inputs[1] * weights).sum(-1)


def by_binary_target(index, positive=lambda targets: targets):
    return lambda inputs, weights: weights[0] + (weights[1] - weights[0]) * positive(inputs[index])


def each(function):
    """A loss of Keras, which takes the mean over the last dimension, of each element."""
    return lambda inputs, **attributes: function(inputs[1][..., None], inputs[0][..., None], **attributes)


