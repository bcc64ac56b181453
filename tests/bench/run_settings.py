# SPDX-License-Identifier: Apache-2.0
"""What a run of compare.py works with: the programs of this build, the other libraries, the report."""
import os
import tempfile

import cases
import method
import programs
from report import Report


class Bench:
    """The programs of this build and the settings of this run."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.report = Report(f'{arguments.what}', arguments.json, arguments.markdown, arguments.bound)
        # Times of kernels are measured anew for each run, by this build.
        self.cache = tempfile.TemporaryDirectory(prefix='tutti-bench-')
        self.steps = self.open('step_bench')

    def open(self, name, threads=1, cache=None):
        """`cache`: folder of remembered times, else that of this run. replica_bench takes a backend, and serves anyway."""
        path = os.path.join(self.arguments.programs, name)
        words = [path, 'cpu'] if name == 'replica_bench' else [path, '--serve']
        return programs.Program(words, threads, TUTTI_CACHE_DIR=cache or self.cache.name)

    def peers(self, threads=1):
        return programs.Peers(self.arguments.python or ['/usr/bin/python3'], self.arguments.onnx_python, threads)

    def selected(self, listed):
        return cases.selected(listed, self.arguments.cases)

    def compare(self, meter, ours, theirs, case):
        return method.quadruples(meter, ours, theirs, case, self.arguments.quadruples, self.arguments.seconds)
