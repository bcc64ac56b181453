# SPDX-License-Identifier: Apache-2.0
"""What is measured on a GPU, with the ratios that must hold (PyTorch's time over ours), in the order of what they are
worth."""
import dataclasses

# Of a step that is replayed, and of memory against PyTorch as it is written.
MOST_ISSUE_US = 40
MOST_MEMORY_SHARE = 0.9
# How much slower a step may be whose gradients lie in memory between two programs.
MOST_BUCKETED = 1.015
# Of tests/backend/cpu/step_networks.h.
IMAGELESS = ('toy', 'mlp', 'gpt2', 'lstm')
WORDS_OF_A_ROW = {'gpt2': 1024}


@dataclasses.dataclass(frozen=True)
class Case:
    form: str  # training or inference
    model: str  # of tests/backend/cpu/step_networks.h
    batch: int
    gate: float
    precision: str = 'f32'  # or bf16: factors of products and convolutions
    against_compiled: bool = False  # the gate is that of compiled PyTorch, where that is faster than as it is written
    bucketed: bool = False  # the peer is our own program that keeps no gradients
    latency: bool = False  # one at a time, each waited for

    @property
    def name(self):
        return f'{self.model} b{self.batch} {self.precision} {self.form}' + \
            (' bucketed' if self.bucketed else '') + (' latency' if self.latency else '')

    def speed(self, milliseconds):
        """A step in so long: (things a second, what they are)."""
        words = WORDS_OF_A_ROW.get(self.model)
        what = 'tokens' if words else 'examples' if self.model in IMAGELESS else 'images'
        return self.batch * (words or 1) / milliseconds * 1e3, what

    def ours(self):
        """How we do it."""
        return '+'.join([self.precision, *(['bucketed'] if self.bucketed else []), *(['latency'] if self.latency else [])])

    def eager(self):
        """PyTorch as it is written."""
        return '+'.join(['eager', 'fused', *self.words()] if self.form == 'training' else ['plain', *self.words()])

    def configurations(self):
        """How PyTorch may do it; the fastest of them is the peer."""
        if not self.against_compiled:
            return [self.eager()]
        optimizer = ['fused'] if self.form == 'training' else []
        return [self.eager(), *('+'.join([form, *optimizer, *self.words()]) for form in ('compiled', 'graphs'))]

    def words(self):
        words = ['cuda'] + (['channels_last'] if self.model not in IMAGELESS else [])
        return words + (['amp'] if self.precision == 'bf16' else []) + (['latency'] if self.latency else [])


CASES = [
    Case('training', 'resnet50', 256, 1.1, 'bf16', against_compiled=True),
    Case('training', 'gpt2', 16, 1.0, 'bf16', against_compiled=True),
    Case('training', 'toy', 64, 4.0),
    Case('training', 'cnn', 64, 4.0),
    Case('inference', 'resnet50', 1, 1.25, latency=True),
    Case('inference', 'resnet50', 256, 1.2, 'bf16'),
    Case('training', 'resnet50', 256, 1 / MOST_BUCKETED, 'bf16', bucketed=True),
    Case('training', 'lstm', 32, 0.9),
    Case('inference', 'resnet50', 256, 1.2),
    Case('training', 'resnet50', 64, 1.0),
    Case('training', 'resnet18', 128, 1.0),
]
