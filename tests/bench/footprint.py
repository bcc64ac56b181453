# SPDX-License-Identifier: Apache-2.0
"""Memory, the executor's own time, and the time to build programs."""
import math
import os
import tempfile

import cases
import programs


def memory(bench):
    report, seconds = bench.report, bench.arguments.seconds
    case = next(case for case in cases.TRAINING if case.model == 'resnet18')
    report.table('what', 'MB', 'of PyTorch', 'workspace MB', 'lower bound MB', 'workspace / bound')
    smallest = math.inf
    for python in bench.arguments.python or ['/usr/bin/python3']:
        for configuration in cases.configurations(case):
            program = programs.Program([python, os.path.join(programs.HERE, 'torch_peer.py')])
            answer = programs.Candidate(program, configuration).measure(case, seconds)
            smallest = min(smallest, answer.get('peak_mb', math.inf))
            report.row({'program': program.name, 'configuration': configuration, **answer},
                       f'{program.name}, {configuration}', f'{answer.get("peak_mb", math.nan):.0f}', '', '', '', '')
            program.close()
    for form in ('times kernels first', 'remembers their times'):
        program = bench.open('step_bench')
        answer = programs.Candidate(program, 'one_thread').measure(case, seconds)
        program.close()
        own_row(report, case, form, answer, smallest)
    second_device(bench, case, answer)


def own_row(report, case, form, answer, smallest):
    ratio, fill = answer['peak_mb'] / smallest, answer['workspace_mb'] / answer['lower_bound_mb']
    report.row({'program': 'tutti', 'form': form, 'of_peer': ratio, **answer}, f'tutti, {case.name}, {form}',
               f'{answer["peak_mb"]:.0f}', f'{ratio:.2f}', f'{answer["workspace_mb"]:.1f}',
               f'{answer["lower_bound_mb"]:.1f}', f'{fill:.2f}')


def second_device(bench, case, single):
    """What the second of two devices adds, at the same rows for each: its workspace, and the gradients of both, which one
    device alone does not store."""
    peaks = []
    for configuration, batch in (('one_device', case.batch), ('two_devices', 2 * case.batch)):
        program = bench.open('replica_bench')
        words = ('measure', case.form, case.model, batch, 1 if configuration == 'one_device' else 2, configuration)
        peaks.append(program.ask(*words, bench.arguments.seconds)['peak_mb'])
        program.close()
    gradients = single['state_mb'] / 3  # the state of one device is weights and two slots
    expected = single['workspace_mb'] + 2 * gradients
    bench.report.row({'program': 'tutti', 'second_device_mb': peaks[1] - peaks[0], 'expected_mb': expected},
                     f'second device adds (its workspace and the gradients of both: {expected:.0f})', f'{peaks[1] - peaks[0]:.0f}',
                     '', '', '', '')


# The last of so many builds has nothing left to time.
BUILDS = 16


def overhead(bench):
    report = bench.report
    report.table('case', 'step us', 'executor us', 'kernel calls', 'us per call')
    for case in bench.selected([case for case in cases.TRAINING + cases.INFERENCE if case.model == 'toy']):
        answer = bench.steps.ask('overhead', case.form, case.model, case.batch)
        report.row({'case': case.name, 'form': case.form, **answer}, f'{case.form} {case.name}', f'{answer["step_us"]:.2f}',
                   f'{answer["executor_us"]:.2f}', answer['kernel_calls'],
                   f'{answer["executor_us"] / answer["kernel_calls"]:.3f}')
    report.say()
    # A build times kernels for a second at most; what is left over then, the next ones do, a little of it each.
    report.table('build of the training program of', 'ms cold', 'ms in a second process, which times a few more of them',
                 'ms with all times remembered')
    for case in bench.selected(cases.TRAINING):
        times = []
        with tempfile.TemporaryDirectory(prefix='tutti-bench-') as cache:
            for _ in range(BUILDS):
                program = bench.open('step_bench', cache=cache)
                times.append(program.ask('measure', case.form, case.model, case.batch, 1, '-', 0)['build_ms'])
                program.close()
        report.row({'case': case.name, 'build_ms': times}, case.name, *(f'{ms:.0f}' for ms in (times[0], times[1], times[-1])))
