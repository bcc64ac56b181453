# SPDX-License-Identifier: Apache-2.0
"""Training on two cores: one device with two threads, two devices with one thread each, and PyTorch with two threads."""
import os
import subprocess
import sys
import time

import cases
import method
import programs
from report import verdict

THREADS = 2
# Of two cores, when another process takes half of one.
FAIR_SHARE = 0.75


class HalfBusyCore:
    """A process that keeps a core busy half the time, in turns of ten milliseconds."""

    LOOP = ('import os,sys,time\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n'
            ' end=time.perf_counter()+0.01\n while time.perf_counter()<end: pass\n time.sleep(0.01)\n')

    def __init__(self, core=0):
        self.core = core

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, '-c', self.LOOP, str(self.core)])
        time.sleep(0.2)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Loaded:
    """A candidate that is measured beside a half busy core."""

    def __init__(self, candidate):
        self.candidate, self.program, self.name = candidate, candidate.program, candidate.name

    def measure(self, case, seconds):
        with HalfBusyCore():
            return self.candidate.measure(case, seconds)


class Table:
    """Rows of ratios: the second thing's time over the first's."""

    def __init__(self, bench, meter):
        self.bench, self.meter = bench, meter
        bench.report.table('case', 'what', 'ms', 'other ms', 'ratio', '90 % interval', 'gate / aim', 'verdict')

    def row(self, case, what, ours, theirs, gate, aim, scale=1.0, tried=()):
        result = self.bench.compare(self.meter, ours, theirs, case)
        for key in ('ratio', 'low', 'high'):
            result[key] *= scale
        result.update(case=case.name, what=what, tried=dict(tried), dropped_blocks=self.meter.dropped,
                      verdict=verdict(result, gate, aim, self.bench.arguments.bound))
        self.bench.report.row(result, case.name, what, f'{result["ms"]:.4g}', f'{result["peer_ms"]:.4g}',
                              f'{result["ratio"]:.2f}', f'{result["low"]:.2f}..{result["high"]:.2f}',
                              f'{gate:g} / {aim:g}', result['verdict'])


def threads(bench):
    if len(os.sched_getaffinity(0)) < THREADS:
        sys.exit('threads: needs two cores')
    peers, meter = bench.peers(THREADS), method.Meter(THREADS, bench.steps)
    one = programs.Candidate(bench.open('replica_bench', threads=THREADS), 'one_device', (), THREADS)
    two = programs.Candidate(bench.open('replica_bench', threads=THREADS), 'two_devices', (), THREADS)
    table = Table(bench, meter)
    for case in bench.selected(cases.TRAINING):
        peer, tried = method.fastest(meter, peers.candidates(case), case, bench.arguments.seconds)
        for what, ours in (('one device with two threads', one), ('two devices', two)):
            table.row(case, f'{what}; {peer.name}', ours, peer, case.gate, case.aim, tried=tried)
        peer.program.drop()
        table.row(case, 'two devices; one device with two threads', two, one, 0.95, 1)
        one.program.drop()
        table.row(case, 'two devices beside a half busy core, of their fair share; alone', Loaded(two), two, 0.9, 1,
                  1 / FAIR_SHARE)
        two.program.drop()
    peers.close()
