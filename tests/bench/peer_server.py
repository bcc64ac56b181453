# SPDX-License-Identifier: Apache-2.0
"""What the programs we compare with have in common: they answer requests as step_server.h says, and measure alike."""
import json
import resource
import sys
import time

STRETCH_SECONDS = 100e-3
LONGEST_STRETCH = 256


def synchronize():
    """Waits for work that run() has only begun; replaced where there is such."""


def device_memory():
    """{'device_mb': the most memory that lay on the device at once}; replaced where there is such."""
    return {}


def measure(run, seconds, least=1, longest=LONGEST_STRETCH):
    """Costs of run() in the mean over `seconds`, and at least so many calls. Devices are waited for after stretches as
    in step_case.cc, as they would be given minutes of work in a second; with `longest` 1 after each call."""
    synchronize()
    steps, stretch, waits, cpu, wall = 0, 1, 0, time.process_time(), time.perf_counter()
    last = wall
    while steps < least or last - wall < seconds:
        for _ in range(stretch):
            run()
        synchronize()
        waits += 1
        steps += stretch
        now = time.perf_counter()
        if now - last < STRETCH_SECONDS and stretch < longest:
            stretch *= 2
        last = now
    return {
        'cpu_ms': (time.process_time() - cpu) / steps * 1e3,
        'wall_ms': (time.perf_counter() - wall) / steps * 1e3,
        'steps': steps,
        'waits': waits,
        'peak_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        **device_memory(),
    }


class Measurer:
    """Answers "measure"; keeps the case of the last request alive."""

    def __init__(self, make):
        self.make = make
        self.key, self.run = None, None

    def drop(self):
        """Frees the memory of the case."""
        self.key = self.run = None
        return {}

    def __call__(self, form, model, batch, threads, configuration, seconds, *extra):
        key = (form, model, int(batch), int(threads), configuration, *extra)
        if self.key != key:
            self.key = self.run = None
            self.run = self.make(*key)
            self.key = key
            measure(self.run, 0.2, 2)
        return measure(self.run, float(seconds), 1, 1 if 'latency' in configuration.split('+') else LONGEST_STRETCH)


def serve(name, make_case, commands=()):
    """`make_case`: what Measurer makes. `commands`: more functions of the words of a request that return what is
    answered, by the first word."""
    measurer = Measurer(make_case)
    commands = {'measure': measurer, 'drop': measurer.drop, **dict(commands)}
    print(json.dumps({'name': name}), flush=True)
    for line in sys.stdin:
        words = line.split()
        try:
            answer = commands[words[0]](*words[1:])
        except Exception as error:  # an older release lacks a configuration, a machine the compiler for it
            answer = {'error': f'{type(error).__name__}: {error}'.split('\n')[0]}
        print(json.dumps(answer), flush=True)
