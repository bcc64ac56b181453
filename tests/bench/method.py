# SPDX-License-Identifier: Apache-2.0
"""How two programs are compared on a machine that does other things too.

Blocks of the two alternate as A B B A: what drifts hits both alike. The ratio of a quadruple is the peer's time over
ours, above 1 we are ahead; reported are the median over the quadruples and a bootstrap 90 % interval of it. An interval
wider than a stated bound is called inconclusive.

With one thread the time is the processor time of the process. With more it is the wall clock, and before and after each
block a loop of multiply-adds on as many threads tells whether the cores were free: a block is dropped and done again
when either ran more than 5 % below the best seen. A row with a block that never met free cores is inconclusive.
"""
import random
import statistics

CALIBRATION_SECONDS = 0.05
FIRST_CALIBRATIONS = 40
FREE = 0.95
ATTEMPTS = 12
NEAR = 1.15


def interval(values, draws=2000):
    """Bootstrap 90 % interval of the median."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws // 20], medians[-draws // 20 - 1]


class Meter:
    """Takes one number of milliseconds from a candidate."""

    def __init__(self, threads, calibrator):
        self.threads, self.calibrator = threads, calibrator
        self.best, self.dropped, self.spoiled = 0.0, 0, 0
        for _ in range(FIRST_CALIBRATIONS if threads > 1 else 0):
            self.calibrate()

    def calibrate(self):
        """GF/s of the loop."""
        gflops = self.calibrator.ask('calibrate', self.threads, CALIBRATION_SECONDS)['gflops']
        self.best = max(self.best, gflops)
        return gflops

    def __call__(self, candidate, case, seconds):
        if self.threads == 1:
            return candidate.measure(case, seconds)['cpu_ms']
        for _ in range(ATTEMPTS):
            before = self.calibrate()
            milliseconds = candidate.measure(case, seconds)['wall_ms']
            if min(before, self.calibrate()) >= FREE * self.best:
                return milliseconds
            self.dropped += 1
        self.spoiled += 1
        return milliseconds


def fastest(meter, candidates, case, seconds):
    """The best of the list, and what each took; None for what does not work. Those near the best get a second chance."""
    tried = {}
    for index, candidate in enumerate(candidates):
        tried[index] = meter(candidate, case, seconds)
        candidate.program.drop()
    near = [index for index in tried if tried[index] < NEAR * min(tried.values())]
    for index in near if len(near) > 1 else []:
        tried[index] = min(tried[index], meter(candidates[index], case, seconds))
        candidates[index].program.drop()
    best = min(tried, key=tried.get)
    listed = {candidates[i].name: None if ms == float('inf') else ms for i, ms in tried.items()}
    return (candidates[best] if tried[best] != float('inf') else None), listed


def quadruples(meter, ours, theirs, case, count, seconds):
    """Ratios with their interval, and the median times of both sides."""
    ratios, mine, others, spoiled = [], [], [], meter.spoiled
    for candidate in (ours, theirs):
        candidate.measure(case, 0)
    for _ in range(count):
        block = [meter(candidate, case, seconds) for candidate in (ours, theirs, theirs, ours)]
        mine += [block[0], block[3]]
        others += block[1:3]
        ratios.append((block[1] + block[2]) / (block[0] + block[3]))
    low, high = interval(ratios)
    return {'ratio': statistics.median(ratios), 'low': low, 'high': high, 'ratios': ratios,
            'ms': statistics.median(mine), 'peer_ms': statistics.median(others), 'cores_were_free': meter.spoiled == spoiled}
