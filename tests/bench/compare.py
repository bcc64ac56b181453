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
import os
import sys
import tempfile

import cases
import footprint
import method
import programs
import two_cores
from report import verdict
from run_settings import Bench


def share(flops, milliseconds, ceiling):
    return 100 * flops / (milliseconds * 1e6) / ceiling


def beside(bench, meter, candidates, case, milliseconds):
    """Our time against the faster of some candidates, measured once; None when none works."""
    if not bench.arguments.compiled or not candidates:
        return None
    best, tried = method.fastest(meter, candidates, case, bench.arguments.seconds)
    return min(ms for ms in tried.values() if ms is not None) / milliseconds if best else None


def compiled_cell(case, ratio):
    """Of training there is a gate against the compiled form too."""
    if ratio is None:
        return '-'
    gate = cases.COMPILED_GATE.get(case.model, cases.COMPILED_GATE_ELSE)
    return f'{ratio:.2f}' + (f', below {gate:g}' if case.form == 'training' and ratio < gate else '')


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
        compiled = compiled_cell(case, result['compiled_ratio'])
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
        for case in bench.selected(cases.TRAINING + cases.VALUES_ONLY):
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


def run(bench):
    arguments = bench.arguments
    if arguments.what in ('steps', 'inference'):
        compare_rows(bench, cases.TRAINING if arguments.what == 'steps' else cases.INFERENCE)
        return 0
    others = {'threads': two_cores.threads, 'memory': footprint.memory, 'overhead': footprint.overhead,
              'profile': profile, 'values': values}
    return 1 if others[arguments.what](bench) else 0


def main():
    try:
        return run(Bench(parsed()))
    except programs.Ended as ended:
        return str(ended)


if __name__ == '__main__':
    sys.exit(main())
