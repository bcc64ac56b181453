# SPDX-License-Identifier: Apache-2.0
"""The programs that are measured: processes that answer requests as step_server.h says."""
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
# Of a PyTorch whose name has this, no ratio says anything.
SLOW_BLAS = 'reference BLAS'
# What did not work is said once.
COMPLAINTS = set()
# An OpenBLAS may not know its processor; the other kernels are tried too.
CORE_TYPES = ['SkylakeX', 'Zen', 'Haswell', '']


class Ended(Exception):
    """A program that ended where an answer was expected."""


class Program:
    def __init__(self, command, threads=1, **environment):
        settings = {**os.environ, 'OMP_NUM_THREADS': str(threads), 'OPENBLAS_NUM_THREADS': str(threads), **environment}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)
        self.name = self.answer(command[0])['name']

    def answer(self, request):
        line = self.process.stdout.readline()
        if not line:
            raise Ended(f'{getattr(self, "name", " ".join(self.process.args))}: ended with status {self.process.wait()} '
                        f'without an answer to: {request}')
        return json.loads(line)

    def ask(self, *words):
        request = ' '.join(str(word) for word in words)
        self.process.stdin.write(request + '\n')
        self.process.stdin.flush()
        return self.answer(request)

    def drop(self):
        self.ask('drop')

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@dataclasses.dataclass
class Candidate:
    """A program with a configuration: one way to do a case."""
    program: Program
    configuration: str
    extra: tuple = ()
    threads: int = 1

    @property
    def name(self):
        return f'{self.program.name}, {self.configuration}'

    def measure(self, case, seconds):
        answer = self.program.ask('measure', case.form, case.model, case.batch, self.threads, self.configuration,
                                  seconds, *self.extra)
        if 'error' in answer:
            complaint = f'{self.name}: {answer["error"]}'
            if complaint not in COMPLAINTS:
                print(f'{case.name}: {complaint}', file=sys.stderr)
            COMPLAINTS.add(complaint)
            return {'cpu_ms': math.inf, 'wall_ms': math.inf}
        return answer


class Peers:
    """The other libraries: PyTorch for each interpreter given, and ONNX Runtime where there is one."""

    def __init__(self, pythons, onnx_python, threads=1):
        self.threads = threads
        self.torch = [self.open_torch(python) for python in pythons]
        self.onnx = Program([onnx_python, os.path.join(HERE, 'onnx_peer.py')], threads) if onnx_python else None
        self.models = tempfile.TemporaryDirectory(prefix='tutti-bench-')

    def open_torch(self, python):
        """With the kernels, and the threads, of its BLAS that are fastest here."""
        opened = {}
        for core_type, blas_threads in itertools.product(CORE_TYPES, {1, self.threads}):
            environment = {'OPENBLAS_NUM_THREADS': str(blas_threads)}
            if core_type:
                environment['OPENBLAS_CORETYPE'] = core_type
            command = [python, os.path.join(HERE, 'torch_peer.py')]
            try:
                program = Program(command, self.threads, **environment)
                if SLOW_BLAS in program.name:
                    sys.exit(f'{python}: {program.name}: several times slower than with libopenblas0-pthread; install that')
                if 'OpenBLAS' not in program.name:
                    return program
                if self.threads > 1:
                    program.name += f' with {blas_threads} threads'
                opened[program] = self.typical_ms(program)
                program.drop()
            except Ended as ended:
                if not core_type:
                    raise
                print(f'# OPENBLAS_CORETYPE={core_type} is none of this processor: {ended}', file=sys.stderr)
        best = min(opened, key=opened.get)
        for program, milliseconds in opened.items():
            print(f'# {program.name}: {milliseconds:.2f} ms for a step of mlp b256', file=sys.stderr)
            if program is not best:
                program.close()
        return best

    def typical_ms(self, program):
        words = ('measure', 'training', 'mlp', 256, self.threads, 'eager', 0.3)
        return min(program.ask(*words)['cpu_ms' if self.threads == 1 else 'wall_ms'] for _ in range(2))

    def candidates(self, case):
        found = [Candidate(program, configuration, (), self.threads) for program in self.torch
                 for configuration in cases.configurations(case)]
        if case.form == 'inference' and self.onnx:
            found.append(Candidate(self.onnx, 'all optimisations', (self.exported(case),), self.threads))
        for candidate in found:
            candidate.configuration = candidate.configuration.replace(' ', '_')
        return found

    def compiled(self, case):
        return [Candidate(program, configuration, (), self.threads) for program in self.torch
                for configuration in cases.compiled_configurations(case)]

    def exported(self, case):
        """The path of the network for ONNX Runtime."""
        path = os.path.join(self.models.name, f'{case.model}-{case.batch}.onnx')
        for program in self.torch if not os.path.exists(path) else []:
            answer = program.ask('export', case.model, case.batch, path)
            if 'error' not in answer:
                break
            print(f'{case.name}: export: {answer["error"]}', file=sys.stderr)
        return path

    def close(self):
        for program in self.torch + ([self.onnx] if self.onnx else []):
            program.close()
        self.models.cleanup()
