# SPDX-License-Identifier: Apache-2.0
"""The rates of the model "schedules" of scenarios.txt for training_oracle.py, without the library. Steps are counted from 0."""
import math


def wave(passed):
    return (1 + math.cos(math.pi * min(max(passed, 0), 1))) / 2


def restarts(step):
    """Periods of 4, 8, 16, ... steps, each with half the highest rate of the one before."""
    period, most = 4, 0.1
    while step >= period:
        step, period, most = step - period, 2 * period, most / 2
    return most * wave(step / period)


def one_cycle(step):
    top, last = 0.3 * 20 - 1, 19
    low, high, end = 0.1 / 25, 0.1, 0.1 / 25 / 10000
    step = min(step, last)
    return low + (high - low) * step / top if step <= top else high + (end - high) * (step - top) / (last - top)


def halved(step):
    return 0.1 * 0.5 ** (step // 5)


def decayed(step):
    return 0.1 * 0.5 ** (step / 10)


def rates(step):
    return {
        'constant': 0.3,
        'exponential': decayed(step),
        'natural_exponential': 0.1 * math.exp(-0.5 * step / 10),
        'inverse_time': 0.1 / (1 + 0.5 * (step // 3)),
        'step': halved(step),
        'polynomial': 0.08 * (1 - min(step, 20) / 20) ** 2 + 0.02,
        'cosine': 0.1 * wave((step - 6) / 14) * min((step + 1) / 6, 1),
        'cosine_restarts': restarts(step),
        'one_cycle': one_cycle(step),
        'piecewise': 0.1 if step < 3 else 0.05 if step < 9 else 0.01,
        'warmup': decayed(max(step - 8, 0)) * (0.25 + 0.75 * min(step / 8, 1)),
        'own': 1 / math.sqrt(step + 1),
        'switch': halved(step) if step < 7 else restarts(step - 7),
    }
