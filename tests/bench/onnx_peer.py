#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ONNX Runtime side of the benchmarks; requests and answers as in step_server.h.

measure inference MODEL BATCH THREADS onnxruntime SECONDS PATH   PATH: what torch_peer.py exported
"""
import numpy
import onnxruntime

import peer_server


def make_case(_form, _model, _batch, threads, _configuration, path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    image = session.get_inputs()[0]
    # Bound once, so that a call copies nothing.
    binding = session.io_binding()
    x = numpy.random.default_rng(0).standard_normal(image.shape, dtype=numpy.float32)
    binding.bind_ortvalue_input(image.name, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    binding.bind_output(session.get_outputs()[0].name)
    return lambda: session.run_with_iobinding(binding)


if __name__ == '__main__':
    peer_server.serve(f'ONNX Runtime {onnxruntime.__version__}', make_case)
