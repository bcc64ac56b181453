# SPDX-License-Identifier: Apache-2.0
"""What is measured, with the ratios that must hold and that are aimed at (the peer's time over ours)."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    form: str  # training or inference
    model: str  # of step_networks.h
    batch: int
    gate: float
    aim: float

    @property
    def name(self):
        return f'{self.model} b{self.batch}'


TRAINING = [
    Case('training', 'toy', 64, 12, 25),
    Case('training', 'mlp', 64, 2.0, 2.6),
    Case('training', 'cnn', 64, 1.75, 2.4),
    Case('training', 'resnet20', 128, 1.4, 1.7),
    Case('training', 'separable', 128, 2.1, 2.9),
    Case('training', 'resnet18', 32, 1.5, 1.8),
    Case('training', 'resnet50', 8, 1.3, 1.6),
]
# Compared in what they compute, beside those; on processors there is no gate for its time.
VALUES_ONLY = [Case('training', 'gpt2_tiny', 8, 0, 0), Case('training', 'lstm', 8, 0, 0)]
# Beside the gates above: against the compiled form of the peer.
COMPILED_GATE = {'toy': 3.0}
COMPILED_GATE_ELSE = 1.15

INFERENCE = [
    Case('inference', model, batch, 0.9, 1.1)
    for model in ('toy', 'mlp', 'cnn', 'resnet20', 'separable', 'resnet18', 'resnet50')
    for batch in ((1, 8) if model == 'resnet50' else (1, 32, 256))
]


def selected(cases, words):
    """Those whose model, or model:batch, is among the words; all of them without words."""
    return [case for case in cases if not words or case.model in words or f'{case.model}:{case.batch}' in words]


def configurations(case):
    """How PyTorch may do it."""
    images = case.model not in ('toy', 'mlp')
    if case.form == 'inference':
        return ['torchscript'] + (['torchscript+channels_last'] if images else [])
    return ['eager', 'eager+fused'] + (['channels_last', 'channels_last+fused'] if images else [])


def compiled_configurations(case):
    images = case.model not in ('toy', 'mlp')
    if case.form == 'inference':
        return ['compiled'] + (['compiled+channels_last'] if images else [])
    return ['channels_last+fused+compiled' if images else 'eager+fused+compiled']
