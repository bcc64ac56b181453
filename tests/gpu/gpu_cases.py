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

    @property
    def name(self):
        return f'{self.model} b{self.batch} {self.precision} {self.form}'

    def configurations(self):
        """How PyTorch may do it; the fastest of them is the peer."""
        words = ['cuda'] + (['channels_last'] if self.model not in ('toy', 'mlp') else [])
        words += ['amp'] if self.precision == 'bf16' else []
        if self.form == 'inference':
            return ['+'.join(['plain', *words])]
        return ['+'.join(['eager', 'fused', *words])]

    def compiled(self):
        """Beside the peer: its compiled form, replayed as graphs."""
        words = ['cuda'] + (['channels_last'] if self.model not in ('toy', 'mlp') else [])
        words += ['amp'] if self.precision == 'bf16' else []
        return '+'.join(['graphs', *(['fused'] if self.form == 'training' else []), *words])


CASES = [
    Case('training', 'toy', 64, 4.0),
    Case('training', 'cnn', 64, 4.0),
    Case('training', 'resnet18', 128, 1.0),
    Case('training', 'resnet50', 64, 1.0),
    Case('training', 'resnet50', 256, 1.1, 'bf16'),
    Case('inference', 'resnet50', 1, 1.25),
    Case('inference', 'resnet50', 256, 1.2),
    Case('inference', 'resnet50', 256, 1.2, 'bf16'),
]
