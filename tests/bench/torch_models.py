# SPDX-License-Identifier: Apache-2.0
"""The networks of tests/backend/cpu/step_networks.h in PyTorch; the modules come in the order of the variables there."""
import torch
from torch import nn


def conv_bn(inputs, outputs, size, stride=1, groups=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    """relu(body(x) + skip(x)); the skip is a strided 1x1 convolution where the shapes differ."""

    def __init__(self, body, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(*body)
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Sequential(*conv_bn(inputs, outputs, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.skip(x))


def basic_block(inputs, outputs, stride):
    body = [*conv_bn(inputs, outputs, 3, stride), nn.ReLU(inplace=True), *conv_bn(outputs, outputs, 3)]
    return Residual(body, inputs, outputs, stride)


def bottleneck(inputs, width, stride):
    body = [*conv_bn(inputs, width, 1), nn.ReLU(inplace=True), *conv_bn(width, width, 3, stride), nn.ReLU(inplace=True),
            *conv_bn(width, 4 * width, 1)]
    return Residual(body, inputs, 4 * width, stride)


def basic_resnet(width, stages, blocks):
    layers, channels = [*conv_bn(3, width, 3), nn.ReLU(inplace=True)], width
    for stage in range(stages):
        for block in range(blocks):
            layers.append(basic_block(channels, width << stage, 2 if stage > 0 and block == 0 else 1))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def separable():
    layers, channels = [*conv_bn(3, 32, 3), nn.ReLU(inplace=True)], 32
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)):
        layers += [*conv_bn(channels, channels, 3, stride, channels), nn.ReLU(inplace=True)]
        layers += [*conv_bn(channels, width, 1), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def mlp(*sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1])] + ([nn.ReLU()] if i < len(sizes) - 2 else [])
    return nn.Sequential(*layers)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


class Gpt2Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(channels)
        self.queries_keys_values = nn.Linear(channels, 3 * channels)
        self.queries_keys_values.parts = 3  # layers of step_networks.h
        self.out = nn.Linear(channels, channels)
        self.dense = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, 4 * channels), nn.GELU('tanh'),
                                   nn.Linear(4 * channels, channels))

    def forward(self, x):
        rows, length, channels = x.shape
        parts = self.queries_keys_values(self.norm(x)).split(channels, 2)
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, channels))
        return x + self.dense(x)


class Gpt2(nn.Module):
    """Radford et al., 2019; words [rows, length] to logits [rows, length, words]."""

    def __init__(self, blocks, channels, heads, length, words):
        super().__init__()
        self.table = nn.Embedding(words, channels)
        self.places = nn.Embedding(length, channels)
        self.blocks = nn.Sequential(*(Gpt2Block(channels, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(channels)
        nn.init.normal_(self.table.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, x):
        x = self.table(x) + self.places.weight
        return nn.functional.linear(self.norm(self.blocks(x)), self.table.weight)


class Lstm(nn.Module):
    """Positions [rows, length, channels] to logits, of what the last layer gives at the last position."""

    def __init__(self, channels, units, layers, classes):
        super().__init__()
        self.lstm = nn.LSTM(channels, units, layers, batch_first=True)
        self.dense = nn.Linear(units, classes)

    def forward(self, x):
        return self.dense(self.lstm(x)[0][:, -1])


# name: how it is made, the shape of one row, classes
MODELS = {
    'toy': (lambda: mlp(10, 16, 2), (10,), 2),
    'mlp': (lambda: mlp(784, 512, 256, 10), (784,), 10),
    'cnn': (cnn, (1, 28, 28), 10),
    'resnet20': (lambda: basic_resnet(16, 3, 3), (3, 32, 32), 10),
    'separable': (separable, (3, 32, 32), 10),
    'resnet18': (lambda: basic_resnet(64, 4, 2), (3, 32, 32), 10),
    'resnet50': (resnet50, (3, 224, 224), 1000),
    'gpt2': (lambda: Gpt2(12, 768, 12, 1024, 50304), (1024,), 50304),
    'gpt2_tiny': (lambda: Gpt2(2, 64, 4, 48, 320), (48,), 320),
    'lstm': (lambda: Lstm(256, 256, 2, 10), (64, 256), 10),
}
# Those that read words and have a label for each; how many words are drawn.
WORDS = {'gpt2': 32768, 'gpt2_tiny': 256}


def words_of(model, image):
    """The words that step_networks.h picks by numbers in [-1, 1)."""
    half = WORDS[model] / 2
    return (image * half + half).floor().long()


def load_values(model, values):
    """Takes weights and statistics from arrays by the names of step_networks.h."""
    counts = {'conv': 0, 'dense': 0, 'norm': 0}
    image_channels = None
    tables = iter(('embedding/table', 'embedding/places'))

    def take(kind, suffix):
        return values[f'{kind}{counts[kind]}/{suffix}']

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                counts['conv'] += 1
                module.weight.copy_(take('conv', 'kernel').permute(3, 2, 0, 1))
                if module.bias is not None:
                    module.bias.copy_(take('conv', 'bias'))
                image_channels = module.out_channels
            elif isinstance(module, nn.Linear):
                kernels, biases = [], []
                for _ in range(getattr(module, 'parts', 1)):
                    counts['dense'] += 1
                    kernels.append(channels_first(take('dense', 'kernel'), image_channels))
                    biases.append(take('dense', 'bias'))
                module.weight.copy_(torch.cat(kernels, 1).t())
                module.bias.copy_(torch.cat(biases))
                image_channels = None
            elif isinstance(module, nn.LSTM):
                for layer in range(module.num_layers):
                    for name, suffix in (('weight_ih', 'kernel'), ('weight_hh', 'recurrent_kernel'), ('bias_ih', 'bias'),
                                         ('bias_hh', 'recurrent_bias')):
                        getattr(module, f'{name}_l{layer}').copy_(values[f'lstm{layer + 1}/{suffix}'].t())
            elif isinstance(module, nn.Embedding):
                module.weight.copy_(values[next(tables)])
            elif isinstance(module, nn.LayerNorm):
                counts['norm'] += 1
                module.weight.copy_(take('norm', 'scale'))
                module.bias.copy_(take('norm', 'offset'))
            elif isinstance(module, nn.BatchNorm2d):
                counts['norm'] += 1
                for name, suffix in (('weight', 'scale'), ('bias', 'offset'), ('running_mean', 'mean'),
                                     ('running_var', 'variance')):
                    getattr(module, name).copy_(take('norm', suffix))


def channels_first(kernel, channels):
    """The rows of a kernel that follows a flattened image, from [height, width, channel] to [channel, height, width]."""
    if channels is None or kernel.shape[0] == channels:
        return kernel
    positions = kernel.shape[0] // channels
    return kernel.reshape(positions, channels, -1).transpose(0, 1).reshape(kernel.shape)
