# SPDX-License-Identifier: Apache-2.0
"""What is measured on a GPU, with the ratios that must hold (PyTorch's time over ours)."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    form: str  # training or inference
    model: str  # of tests/backend/cpu/step_networks.h
    batch: int
    gate: float
    precision: str = 'f32'  # or bf16: factors of products and convolutions
    against_compiled: bool = False  # the gate is that of compiled PyTorch, where that is faster than as it is written

    @property
    def name(self):
        return f'{self.model} b{self.batch} {self.precision} {self.form}'

    def configurations(self):
        """How PyTorch may do it; the fastest of them is the peer."""
        if self.form == 'inference':
            return ['+'.join(['plain', *self.words()])]
        forms = ['eager', 'compiled', 'graphs'] if self.against_compiled else ['eager']
        return ['+'.join([form, 'fused', *self.words()]) for form in forms]

    def compiled(self):
        """Beside the peer: its compiled form, replayed as graphs."""
        return '+'.join(['graphs', *(['fused'] if self.form == 'training' else []), *self.words()])

    def words(self):
        words = ['cuda'] + (['channels_last'] if self.model not in ('toy', 'mlp', 'gpt2') else [])
        return words + (['amp'] if self.precision == 'bf16' else [])


CASES = [
    Case('training', 'toy', 64, 4.0),
    Case('training', 'cnn', 64, 4.0),
    Case('training', 'resnet18', 128, 1.0),
    Case('training', 'resnet50', 64, 1.0),
    Case('training', 'resnet50', 256, 1.1, 'bf16'),
    Case('training', 'gpt2', 16, 1.0, 'bf16', against_compiled=True),
    Case('inference', 'resnet50', 1, 1.25),
    Case('inference', 'resnet50', 256, 1.2),
    Case('inference', 'resnet50', 256, 1.2, 'bf16'),
]
