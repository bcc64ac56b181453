#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares with other libraries, and measures what has no peer. tests/bench/run.sh builds what this needs and calls it.

usage: compare.py WHAT --programs FOLDER [options] [MODEL | MODEL:BATCH ...]

  steps       training steps against PyTorch, one thread, processor time
  inference   predictions against frozen TorchScript and ONNX Runtime, one thread, processor time
  threads     training with two threads, as one device and as two, against PyTorch with two; and our two against each
              other, also with another process that keeps a core busy half the time
  memory      peak memory of a ResNet-18 training against PyTorch's; workspace against its lower bound; a second device
  overhead    microseconds of the executor beside the kernels; time to build ResNet-50's training program
  profile     the most expensive kernels of each network, one by one and by kind
  values      that PyTorch, from the same start, predicts the same and learns the same

Each --python names an interpreter with a PyTorch of its own (without any: the system's), --onnx-python one with ONNX
Runtime. The peer is the fastest of all their listed configurations, chosen beforehand on the same machine; the compiled
form of PyTorch is not among them, its ratio stands beside. How ratios are taken: method.py.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import method
import programs
from report import Report, verdict


class Bench:
    """The programs of this build and the settings of this run."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.report = Report(f'{arguments.what}', arguments.json, arguments.markdown, arguments.bound)
        self.steps = self.open('step_bench')

    def open(self, name, *words, threads=1):
        path = os.path.join(self.arguments.programs, name)
        return programs.Program([path, *(words or ('--serve',))], threads, OMP_WAIT_POLICY='passive')

    def peers(self, threads=1):
        return programs.Peers(self.arguments.python or ['/usr/bin/python3'], self.arguments.onnx_python, threads)

    def selected(self, listed):
        return cases.selected(listed, self.arguments.cases)

    def compare(self, meter, ours, theirs, case):
        return method.quadruples(meter, ours, theirs, case, self.arguments.quadruples, self.arguments.seconds)


def share(flops, milliseconds, ceiling):
    return 100 * flops / (milliseconds * 1e6) / ceiling


def beside(bench, meter, candidates, case, milliseconds):
    """Our time against the faster of some candidates, measured once; None when none works."""
    if not bench.arguments.compiled or not candidates:
        return None
    best, tried = method.fastest(meter, candidates, case, bench.arguments.seconds)
    return min(ms for ms in tried.values() if ms is not None) / milliseconds if best else None


def compare_rows(bench, listed):
    peers, meter = bench.peers(), method.Meter(1, bench.steps)
    ours = programs.Candidate(bench.steps, 'one_thread')
    report = bench.report
    report.table('case', 'ms', 'peer ms', 'ratio', '90 % interval', 'gate / aim', 'verdict', 'compiled', 'of ceiling',
                 'peer of ceiling', 'peer')
    for case in bench.selected(listed):
        peer, tried = method.fastest(meter, peers.candidates(case), case, bench.arguments.seconds)
        result = bench.compare(meter, ours, peer, case)
        answer = ours.measure(case, 0)
        ceiling = bench.steps.ask('ceiling', 0.3)['gflops']
        flops = answer['gflops'] * answer['cpu_ms'] * 1e6
        result.update(case=case.name, form=case.form, peer=peer.name, tried=tried, ceiling_gflops=ceiling,
                      of_ceiling=share(flops, result['ms'], ceiling),
                      peer_of_ceiling=share(flops, result['peer_ms'], ceiling),
                      verdict=verdict(result, case.gate, case.aim, bench.arguments.bound))
        peer.program.drop()
        result['compiled_ratio'] = beside(bench, meter, peers.compiled(case), case, result['ms'])
        compiled = f'{result["compiled_ratio"]:.2f}' if result['compiled_ratio'] else '-'
        report.row(result, case.name, f'{result["ms"]:.4g}', f'{result["peer_ms"]:.4g}', f'{result["ratio"]:.2f}',
                   f'{result["low"]:.2f}..{result["high"]:.2f}', f'{case.gate:g} / {case.aim:g}', result['verdict'],
                   compiled, f'{result["of_ceiling"]:.0f} %', f'{result["peer_of_ceiling"]:.0f} %', peer.name)
        bench.steps.drop()
    print_tried(report)
    peers.close()


def print_tried(report):
    report.say()
    report.say('Peers tried, ms:')
    report.say()
    for row in report.rows:
        listed = '; '.join(f'{name} {"-" if ms is None else f"{ms:.4g}"}' for name, ms in row['tried'].items())
        report.say(f'* {row["case"]}: {listed}')
    report.save()


def threads(bench):
    """Two cores: one device with two threads, two devices with one, and PyTorch."""
    peers, meter = bench.peers(2), method.Meter(2, bench.steps)
    one = programs.Candidate(bench.open('replica_bench', threads=2), 'one_device', (), 2)
    two = programs.Candidate(bench.open('replica_bench', threads=2), 'two_devices', (), 2)
    report = bench.report
    report.table('case', 'what', 'ms', 'other ms', 'ratio', '90 % interval', 'verdict')

    def row(case, what, ours, theirs, gate, aim, tried):
        result = bench.compare(meter, ours, theirs, case)
        result.update(case=case.name, what=what, tried=tried, dropped_blocks=meter.dropped,
                      verdict=verdict(result, gate, aim, bench.arguments.bound))
        report.row(result, case.name, what, f'{result["ms"]:.4g}', f'{result["peer_ms"]:.4g}', f'{result["ratio"]:.2f}',
                   f'{result["low"]:.2f}..{result["high"]:.2f}', result['verdict'])

    for case in bench.selected(cases.TRAINING):
        peer, tried = method.fastest(meter, peers.candidates(case), case, bench.arguments.seconds)
        row(case, f'one device, two threads; {peer.name}', one, peer, case.gate, case.aim, tried)
        row(case, f'two devices; {peer.name}', two, peer, case.gate, case.aim, tried)
        peer.program.drop()
        row(case, 'two devices; one device, two threads', two, one, 0.95, 1, {})
        with half_busy_core(0):
            loaded = method.Meter(1, bench.steps)
            fair_share(bench, report, loaded, two, case)
        for candidate in (one, two):
            candidate.program.drop()
    peers.close()


class half_busy_core:
    """A process that keeps a core busy half the time, in turns of ten milliseconds."""

    LOOP = ('import os,sys,time\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n'
            ' end=time.perf_counter()+0.01\n while time.perf_counter()<end: pass\n time.sleep(0.01)\n')

    def __init__(self, core):
        self.core = core

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, '-c', self.LOOP, str(self.core)])
        time.sleep(0.2)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def fair_share(bench, report, _meter, two, case):
    """Throughput beside the busy process over what three of four half cores should give."""
    def median_ms():
        return statistics.median(two.measure(case, bench.arguments.seconds)['wall_ms']
                                 for _ in range(bench.arguments.quadruples))
    loaded = median_ms()
    free = next(row['ms'] for row in reversed(report.rows) if row['case'] == case.name)
    fraction = free / loaded / 0.75
    report.row({'case': case.name, 'what': 'fair share', 'share': fraction, 'ms': loaded, 'free_ms': free, 'tried': {}},
               case.name, 'two devices beside a half busy core, of the fair share', f'{loaded:.4g}', f'{free:.4g}',
               f'{fraction:.2f}', '-', 'holds 0.9' if fraction >= 0.9 else 'below 0.9')


def memory(bench):
    report, seconds = bench.report, bench.arguments.seconds
    case = next(case for case in cases.TRAINING if case.model == 'resnet18')
    report.table('what', 'MB', 'of PyTorch', 'workspace MB', 'lower bound MB', 'workspace / bound')
    smallest = math.inf
    for python in bench.arguments.python or ['/usr/bin/python3']:
        for configuration in cases.configurations(case):
            program = programs.Program([python, os.path.join(programs.HERE, 'torch_peer.py')], OPENBLAS_CORETYPE='SkylakeX')
            answer = programs.Candidate(program, configuration).measure(case, seconds)
            smallest = min(smallest, answer.get('peak_mb', math.inf))
            report.row({'program': program.name, 'configuration': configuration, **answer},
                       f'{program.name}, {configuration}', f'{answer.get("peak_mb", math.nan):.0f}', '', '', '', '')
            program.close()
    answer = programs.Candidate(bench.steps, 'one_thread').measure(case, seconds)
    ratio, fill = answer['peak_mb'] / smallest, answer['workspace_mb'] / answer['lower_bound_mb']
    report.row({'program': 'tutti', 'of_peer': ratio, **answer}, f'tutti, {case.name}', f'{answer["peak_mb"]:.0f}',
               f'{ratio:.2f}', f'{answer["workspace_mb"]:.1f}', f'{answer["lower_bound_mb"]:.1f}', f'{fill:.2f}')
    second_device(bench, case, answer)


def second_device(bench, case, single):
    """What the second of two devices adds: its workspace and gradients only, at the same rows for each."""
    peaks = []
    for configuration, batch in (('one_device', case.batch), ('two_devices', 2 * case.batch)):
        program = bench.open('replica_bench')
        words = ('measure', case.form, case.model, batch, 1 if configuration == 'one_device' else 2, configuration)
        peaks.append(program.ask(*words, bench.arguments.seconds)['peak_mb'])
        program.close()
    gradients = single['state_mb'] / 4
    expected = single['workspace_mb'] + gradients
    bench.report.row({'program': 'tutti', 'second_device_mb': peaks[1] - peaks[0], 'expected_mb': expected},
                     f'second device adds (workspace and gradients: {expected:.0f})', f'{peaks[1] - peaks[0]:.0f}',
                     '', '', '', '')


def overhead(bench):
    report = bench.report
    report.table('case', 'step us', 'executor us', 'kernel calls', 'us per call')
    for case in bench.selected([c for c in cases.TRAINING + cases.INFERENCE if c.model in ('toy', 'mlp')]):
        answer = bench.steps.ask('overhead', case.form, case.model, case.batch)
        report.row({'case': case.name, 'form': case.form, **answer}, f'{case.form} {case.name}', f'{answer["step_us"]:.2f}',
                   f'{answer["executor_us"]:.2f}', answer['kernel_calls'],
                   f'{answer["executor_us"] / answer["kernel_calls"]:.3f}')
    report.say()
    report.table('build of the training program of', 'ms cold', 'ms again in a new process')
    for case in bench.selected(cases.TRAINING):
        times = []
        for _ in range(2):
            program = bench.open('step_bench')
            times.append(program.ask('measure', case.form, case.model, case.batch, 1, '-', 0)['build_ms'])
            program.close()
        report.row({'case': case.name, 'build_ms': times}, case.name, *(f'{ms:.0f}' for ms in times))


def profile(bench):
    for case in bench.selected(cases.TRAINING + cases.INFERENCE):
        times = bench.steps.ask('kernels', case.form, case.model, case.batch)['kernels']
        total = sum(ms for _, ms in times)
        bench.report.say(f'\n### {case.form} {case.name}: {len(times)} kernels, {total:.4g} ms\n')
        kinds = {}
        for name, ms in times:
            kind = name.partition(' ')[2]
            count, sum_ms = kinds.get(kind, (0, 0))
            kinds[kind] = count + 1, sum_ms + ms
        bench.report.table('ms', 'share', 'kernel', 'calls')
        listed = [(name, 1, ms) for name, ms in times]
        by_kind = sorted(((kind, *sums) for kind, sums in kinds.items()), key=lambda row: -row[2])
        for name, count, ms in listed[:bench.arguments.top] + by_kind[:2 * bench.arguments.top]:
            bench.report.row({'case': case.name, 'form': case.form, 'kernel': name, 'calls': count, 'ms': ms},
                             f'{ms:.4g}', f'{100 * ms / total:.0f} %', name, count)


def values(bench):
    """Fails when PyTorch, from our start, predicts or learns something else."""
    program = programs.Program([(bench.arguments.python or ['/usr/bin/python3'])[0],
                                os.path.join(programs.HERE, 'torch_peer.py')])
    report, bad = bench.report, 0
    report.table('network', 'distance of logits', 'losses', f'losses of {program.name}')
    with tempfile.TemporaryDirectory() as folder:
        for case in bench.selected(cases.TRAINING):
            words = (case.form, case.model, min(case.batch, 8), os.path.join(folder, 'values'))
            mine, theirs = bench.steps.ask('dump', *words), program.ask('check', *words)
            pairs = list(zip(mine['losses'], theirs['losses']))
            # Rounding grows from step to step: the first loss is held close, the later ones to the same course.
            off = [abs(a - b) / (1 + abs(b)) for a, b in pairs]
            good = theirs['logits_distance'] < 1e-4 and off[0] < 1e-4 and max(off) < 0.05
            bad += not good
            report.row({'case': case.model, 'mine': mine, 'theirs': theirs}, case.model,
                       f'{theirs["logits_distance"]:.1e}', *(', '.join(f'{loss:.4f}' for loss in side)
                                                             for side in zip(*pairs)), '' if good else 'DIFFERENT')
    program.close()
    return bad


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['steps', 'inference', 'threads', 'memory', 'overhead', 'profile', 'values'])
    parser.add_argument('cases', nargs='*')
    parser.add_argument('--programs', required=True, help='folder of step_bench and replica_bench')
    parser.add_argument('--quadruples', type=int, default=15)
    parser.add_argument('--seconds', type=float, default=0.5, help='of one block')
    parser.add_argument('--bound', type=float, default=0.03, help='half the width of an interval that says something')
    parser.add_argument('--python', action='append', default=[])
    parser.add_argument('--onnx-python')
    parser.add_argument('--no-compiled', dest='compiled', action='store_false', help='leave out the compiled peer')
    parser.add_argument('--top', type=int, default=5, help='kernels of a profile')
    parser.add_argument('--json')
    parser.add_argument('--markdown')
    return parser.parse_intermixed_args()


def main():
    arguments = parsed()
    bench = Bench(arguments)
    if arguments.what in ('steps', 'inference'):
        compare_rows(bench, cases.TRAINING if arguments.what == 'steps' else cases.INFERENCE)
        return 0
    run = {'threads': threads, 'memory': memory, 'overhead': overhead, 'profile': profile, 'values': values}
    return 1 if run[arguments.what](bench) else 0


if __name__ == '__main__':
    sys.exit(main())
