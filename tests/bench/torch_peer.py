#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of the benchmarks; requests and answers as in step_server.h.

measure FORM MODEL BATCH THREADS CONFIGURATION SECONDS
    training: eager or channels_last, with +fused (one kernel for the optimizer) or +compiled behind it
    inference: torchscript (traced, frozen, optimized for inference) or compiled, with +channels_last behind it
    both: +cuda (on the GPU), +amp (bf16 where autocast says so), +graphs (compiled and replayed as CUDA graphs), +latency
    (waits after each call)
export MODEL BATCH PATH      writes the network for ONNX Runtime
check FORM MODEL BATCH PATH  starts where step_bench's "dump" started: {"logits_distance", "losses"}
"""
import contextlib
import gc
import os
import warnings

import torch
from torch import nn

import peer_server
from torch_models import MODELS, WORDS, load_values, words_of


def on_device(model, tensors, words):
    """The network and its data where the configuration wants them."""
    if 'cuda' not in words:
        return model, tensors
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    gc.collect()
    torch.cuda.empty_cache()  # of the configuration before
    return model.cuda(), [tensor.cuda() for tensor in tensors]


def precision(words):
    return torch.autocast('cuda', torch.bfloat16) if 'amp' in words else contextlib.nullcontext()


class Training:
    """One step: forward, cross-entropy, backward, Adam."""

    def __init__(self, model, x, y, configuration):
        self.words = words = configuration.split('+')
        self.model, (self.x, self.y) = model, (x, y) = on_device(model, [x, y], words)
        if 'channels_last' in words and x.dim() == 4:
            self.model = model.to(memory_format=torch.channels_last)
            self.x = x.contiguous(memory_format=torch.channels_last)
        form = {'fused': True} if 'fused' in words else {'foreach': True}
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3, **form)
        self.loss = self.forward
        if 'compiled' in words or 'graphs' in words:
            self.loss = torch.compile(self.forward, mode='reduce-overhead' if 'graphs' in words else None)

    def forward(self, x, y):
        with precision(self.words):
            return nn.functional.cross_entropy(self.model(x).flatten(0, -2), y.flatten())

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.x, self.y)
        loss.backward()
        self.optimizer.step()
        return loss


class Inference:
    """Logits of a batch."""

    def __init__(self, model, x, configuration):
        self.words = words = configuration.split('+')
        model, (x,) = on_device(model.eval(), [x], words)
        self.x = x
        if 'channels_last' in words and x.dim() == 4:
            model = model.to(memory_format=torch.channels_last)
            self.x = x.contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            if 'torchscript' in words:
                self.model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, self.x)))
            elif 'compiled' in words:
                from torch._inductor import config as inductor
                inductor.freezing = True
                self.model = torch.compile(model)
            elif 'graphs' in words:
                self.model = torch.compile(model, mode='reduce-overhead')
            else:
                self.model = model

    def __call__(self):
        with torch.inference_mode(), precision(self.words):
            return self.model(self.x)


def random_batch(model, batch):
    torch.manual_seed(0)
    make, shape, classes = MODELS[model]
    if model in WORDS:
        return make(), torch.randint(0, WORDS[model], (batch, *shape)), torch.randint(0, classes, (batch, *shape))
    return make(), torch.randn(batch, *shape), torch.randint(0, classes, (batch,))


def make_case(form, model, batch, threads, configuration):
    torch.set_num_threads(threads)
    network, x, y = random_batch(model, batch)
    if form == 'training':
        return Training(network.train(), x, y, configuration)
    return Inference(network, x, configuration)


def export(model, batch, path):
    network, x, _ = random_batch(model, int(batch))
    # A release that exports through a package of its own is asked for the older way first.
    with contextlib.redirect_stdout(open(os.devnull, 'w', encoding='utf-8')):
        try:
            torch.onnx.export(network.eval(), x, path, dynamo=False, input_names=['image'], output_names=['logits'])
        except TypeError:
            torch.onnx.export(network.eval(), x, path, input_names=['image'], output_names=['logits'])
    return {'path': path}


def read_values(path):
    values = {}
    with open(path, 'rb') as file:
        while line := file.readline():
            name, kind, *dims = line.decode().split()
            dims = [int(dim) for dim in dims]
            dtype = {'f32': torch.float32, 'i64': torch.int64}[kind]
            count = 1
            for dim in dims:
                count *= dim
            data = bytearray(file.read(count * (4 if kind == 'f32' else 8)))
            values[name] = torch.frombuffer(data, dtype=dtype).reshape(dims)
    return values


def check(_form, model, _batch, path):
    torch.set_num_threads(1)
    values = read_values(path)
    network = MODELS[model][0]()
    load_values(network, values)
    x = values['image'].permute(0, 3, 1, 2).contiguous() if values['image'].dim() == 4 else values['image']
    if model in WORDS:
        x = words_of(model, x)
    with torch.no_grad():
        logits = network.eval()(x)
    distance = ((logits - values['logits']).norm() / logits.norm()).item()
    step = Training(network.train(), x, values['label'], 'eager')
    return {'logits_distance': distance, 'losses': [step().item() for _ in range(4)]}


def device_memory():
    """Of the steps since the last call, so that what is tried before the first measured one does not count."""
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return {'device_mb': most / 1e6}


def blas_in_use():
    if torch.backends.mkl.is_available():
        return 'MKL'
    with open('/proc/self/maps') as maps:
        return 'OpenBLAS' if 'openblas' in maps.read() else 'reference BLAS'


def main():
    warnings.simplefilter('ignore')  # TorchScript is deprecated, and in the list all the same
    blas = blas_in_use()
    core = os.environ.get('OPENBLAS_CORETYPE')
    name = f'PyTorch {torch.__version__}, {blas}' + (f' as {core}' if blas == 'OpenBLAS' and core else '')
    if torch.cuda.is_available():
        peer_server.synchronize = torch.cuda.synchronize
        peer_server.device_memory = device_memory
    peer_server.serve(name, make_case, {'export': export, 'check': check})


if __name__ == '__main__':
    main()
