#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_schedule_golden.py DIRECTORY: writes schedule_entries.json, the learning rates of PyTorch, Keras and TensorFlow at some steps.

Each case is an entry of lib/nn/nn.yaml with its attributes and the rates that are its inputs, entries themselves; "inputs" has
the numbers of completed steps, "outputs" the rates, computed in double precision. Steps are the corners of each schedule (the
first, each boundary and those next to it, the last, far beyond) and some around 2^24, where single precision ends to know each
integer. Schedulers of PyTorch that step are stepped; where a library has no formula for a step far away, or its formula is not
exact there (it takes logarithms to find a period), the rate is written out here, and compared with the library's where that
is exact.

Needs PyTorch, Keras 3 and TensorFlow; the file is kept in the tree, so building and testing do not.
"""
import json
import math
import os
import sys

os.environ['KERAS_BACKEND'] = 'torch'
import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow  # noqa: E402
import torch  # noqa: E402
from keras.optimizers import schedules  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402

keras.config.set_floatx('float64')
TORCH, KERAS = f'PyTorch {torch.__version__}', f'Keras {keras.__version__}'
TENSORFLOW, WRITTEN = f'TensorFlow {tensorflow.__version__}', 'definition'
EXACT = 2 ** 24
FAR = [EXACT - 1, EXACT, EXACT + 1, EXACT + 3, 2 ** 31 + 5, 2 ** 40 + 1]
DONE = []


def attribute(value):
    if isinstance(value, bool):
        return {'bool': value}
    if isinstance(value, str):
        return {'string': value}
    if isinstance(value, list):
        return {'ints' if isinstance(value[0], int) else 'doubles': value}
    return {'i64': value} if isinstance(value, int) else {'f64': value}


def entry(name, *rates, **attributes):
    return {'op': f'schedule_{name}', 'attributes': {key: attribute(value) for key, value in attributes.items()},
            'rates': list(rates)}


def case(written, made_by, steps, rate):
    """`rate` gives the rate at a step."""
    steps = sorted(set(steps))
    values = [float(rate(step)) for step in steps]
    assert all(math.isfinite(value) for value in values), written
    DONE.append({**written, 'made_by': made_by,
                 'inputs': [{'dtype': 'i64', 'dims': [len(steps)], 'values': steps}],
                 'outputs': [{'dtype': 'f64', 'dims': [len(steps)], 'values': values}], 'relative': 1e-6, 'absolute': 1e-37})


def around(*boundaries):
    return [0, 1, 2] + [step for boundary in boundaries for step in (boundary - 1, boundary, boundary + 1) if step >= 0]


def optimizer(value):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=value)


def stepped(value, make, count):
    """The rates of the first steps, from a scheduler of PyTorch that is stepped."""
    sgd = optimizer(value)
    scheduler, rates = make(sgd), []
    for _ in range(count):
        rates.append(sgd.param_groups[0]['lr'])
        sgd.step()
        scheduler.step()
    return rates


def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-15


def like(schedule, exact):
    """The rate as it is written out, compared with Keras', which has it in single precision in part."""
    def rate(step):
        if step < EXACT - 1:
            known = float(schedule(numpy.float64(step)))
            assert abs(known - exact(step)) <= 1e-6 * abs(known) + 1e-9, (schedule.get_config(), step, known, exact(step))
        return exact(step)
    return rate


# ---- decays ----


def decays():
    case(entry('constant', value=0.025), WRITTEN, around(1000) + FAR, lambda step: 0.025)
    for staircase in (False, True):
        for rate, decay_steps in ((0.5, 10), (0.96, 3), (0.25, EXACT + 7), (1.0, 1)):
            steps = around(decay_steps, 2 * decay_steps, 5 * decay_steps) + FAR[:4]
            given = {'decay_rate': rate, 'decay_steps': decay_steps, 'staircase': staircase}
            times = (lambda step, n=decay_steps: step // n) if staircase else (lambda step, n=decay_steps: step / n)
            case(entry('exponential', value=0.1, **given), KERAS, steps, like(
                schedules.ExponentialDecay(0.1, decay_steps, rate, staircase),
                lambda step, rate=rate, times=times: 0.1 * rate ** times(step)))
            case(entry('inverse_time', value=0.1, **given), KERAS, steps + FAR, like(
                schedules.InverseTimeDecay(0.1, decay_steps, rate, staircase),
                lambda step, rate=rate, times=times: 0.1 / (1 + rate * times(step))))
            case(entry('natural_exponential', value=0.1, **given), TENSORFLOW, steps, natural(0.1, decay_steps, rate, staircase))
    for size, gamma in ((10, 0.5), (1, 0.9), (7, 0.3), (EXACT + 1, 0.1)):
        scheduler = lr_scheduler.StepLR(optimizer(0.2), size, gamma)
        case(entry('step', value=0.2, step_size=size, gamma=gamma), TORCH, around(size, 2 * size, 9 * size) + FAR[:4],
             lambda step, scheduler=scheduler: closed(scheduler, step))
    boundaries, values = [10, 20, EXACT + 1], [1.0, 0.5, 0.25, 0.125]
    case(entry('piecewise', boundaries=boundaries, values=values), TORCH, around(*boundaries) + FAR,
         lambda step: closed(lr_scheduler.MultiStepLR(optimizer(1.0), boundaries, 0.5), step))


def natural(value, decay_steps, rate, staircase):
    def at(step):
        start, count = tensorflow.constant(value, tensorflow.float64), tensorflow.constant(step, tensorflow.float64)
        return tensorflow.compat.v1.train.natural_exp_decay(start, count, decay_steps, rate, staircase)().numpy()
    return at


def closed(scheduler, step):
    scheduler.last_epoch = step
    return scheduler._get_closed_form_lr()[0]


def polynomials():
    for steps, end, power in ((10, 0.0, 1.0), (10, 0.0, 0.5), (7, 0.01, 2.0), (EXACT + 5, 0.0, 1.0), (EXACT + 5, 1e-4, 3.0), (1, 0.3, 1.0)):
        for cycle in (False, True):
            at = around(steps, 2 * steps, 3 * steps, 3 * steps + 1) + FAR
            case(entry('polynomial', value=0.2, steps=steps, final_value=end, power=power, cycle=cycle), KERAS, at, like(
                schedules.PolynomialDecay(0.2, steps, end, power, cycle),
                lambda step, known=(steps, end, power, cycle): polynomial(step, *known)))
    scheduler = lr_scheduler.PolynomialLR(optimizer(0.2), 12, 1.5)
    case(entry('polynomial', value=0.2, steps=12, power=1.5), TORCH, around(12, 30) + FAR, lambda step: closed(scheduler, step))


def polynomial(step, steps, end, power, cycle):
    whole = steps * max(1, -(-step // steps)) if cycle else steps
    return (0.2 - end) * ((whole - min(step, whole)) / whole) ** power + end


# ---- cosines ----


def wave(left):
    return math.sin(math.pi / 2 * left) ** 2


def cosines():
    for steps, fraction in ((100, 0.0), (100, 0.25), (EXACT + 9, 0.0), (1, 0.1)):
        case(entry('cosine', value=0.2, steps=steps, final_fraction=fraction), KERAS, around(steps, steps // 2) + FAR, like(
            schedules.CosineDecay(0.2, steps, fraction), lambda step, steps=steps, fraction=fraction: 0.2 * (
                fraction + (1 - fraction) * wave(max(steps - step, 0) / steps))))
    for warmup, steps in ((10, 100), (EXACT + 1, 3 * EXACT), (1, 2)):
        case(entry('cosine', value=0.4, steps=steps, warmup_steps=warmup, final_fraction=0.25), WRITTEN,
             around(warmup, steps, 5 * steps) + FAR,
             lambda step, warmup=warmup, steps=steps: 0.4 * (
                 0.25 + 0.75 * wave(min(max(steps - step, 0) / (steps - warmup), 1))) * min((step + 1) / warmup, 1))


def restarts():
    for steps, period, factor, fraction in ((10, 1, 1.0, 0.0), (10, 1, 0.5, 0.1), (5, 2, 1.0, 0.0), (5, 2, 0.8, 0.05),
                                            (3, 1.5, 0.9, 0.0), (7, 1.01, 1.0, 0.0), (EXACT + 1, 3, 0.5, 0.0), (1, 2, 1.0, 0.0)):
        begins = [0.0]
        while begins[-1] < 2 ** 42 and len(begins) < 4000:
            begins.append(begins[-1] + steps if period == 1 else steps * (period ** len(begins) - 1) / (period - 1))
        at = around(*(math.ceil(begin) for begin in begins[1:8])) + [step for step in FAR if step < begins[-1]]
        if period == 1:
            at += FAR

        def rate(step):
            index = step // steps if period == 1 else max(i for i, begin in enumerate(begins) if begin <= step)
            begin, end = (index * steps, (index + 1) * steps) if period == 1 else begins[index:index + 2]
            return 0.2 * ((1 - fraction) * factor ** index * wave((end - step) / (end - begin)) + fraction)
        if period > 1:  # for others Keras divides by 0; at the ends of periods its logarithms may be a period off
            known = schedules.CosineDecayRestarts(0.2, steps, float(period), factor, fraction)
            agree = sum(abs(float(known(numpy.float64(step))) - rate(step)) < 1e-6 for step in range(200))
            assert agree >= 185, (steps, period, agree)
        if factor == 1 and isinstance(period, int) and steps < 100:
            made = stepped(0.2, lambda sgd: lr_scheduler.CosineAnnealingWarmRestarts(sgd, steps, period, 0.2 * fraction), 200)
            assert all(close(rate(step), known) for step, known in enumerate(made)), (steps, period)
        case(entry('cosine_restarts', value=0.2, steps=steps, period_factor=float(period), value_factor=factor,
                   final_fraction=fraction), f'definition, as {KERAS} and {TORCH}', at, rate)


def one_cycles():
    for steps, share, three, start, end in ((100, 0.3, False, 25.0, 1e4), (100, 0.3, True, 25.0, 1e4), (37, 0.25, False, 10.0, 100.0),
                                            (37, 0.5, True, 10.0, 100.0), (10, 0.0, False, 5.0, 2.0), (10, 1.0, False, 5.0, 2.0),
                                            (2 * EXACT + 5, 0.5, False, 25.0, 1e4), (3, 0.5, False, 25.0, 1e4)):
        for anneal in ('cosine', 'linear'):
            scheduler = lr_scheduler.OneCycleLR(optimizer(0.1), 0.8, total_steps=steps, pct_start=share, anneal_strategy=anneal[:6].replace('cosine', 'cos'),
                                                cycle_momentum=False, div_factor=start, final_div_factor=end, three_phase=three)

            def rate(step):
                scheduler.last_epoch = min(step, steps - 1)
                return scheduler.get_lr()[0]
            top = math.floor(share * steps - 1)
            case(entry('one_cycle', value=0.8, steps=steps, warmup_fraction=share, anneal=anneal, start_divisor=start,
                       final_divisor=end, three_phases=three), TORCH,
                 around(top, max(2 * top, 0), steps - 1, 4 * steps) + FAR, rate)


# ---- schedules of others ----


def compositions():
    step_inner = entry('step', value=0.2, step_size=10, gamma=0.5)
    decay_inner = entry('exponential', value=0.2, decay_rate=0.5, decay_steps=10)
    for start in (0.25, 1.0, 3.0):
        factor = lr_scheduler.LinearLR(optimizer(1.0), start_factor=min(start, 1.0), total_iters=8)
        for step in range(20 if start <= 1 else 0):
            assert close(closed(factor, step), start + (1 - start) * min(step / 8, 1))
    for steps, start in ((8, 0.0), (8, 0.25), (1, 0.5), (EXACT + 3, 0.0), (8, 3.0)):
        for shifted in (False, True):
            for inner, rate in ((step_inner, lambda step: 0.2 * 0.5 ** (step // 10)),
                                (decay_inner, lambda step: 0.2 * 0.5 ** (step / 10)),
                                (entry('constant', value=0.3), lambda step: 0.3)):
                case(entry('warmup', inner, steps=steps, start_fraction=start, shifted=shifted), WRITTEN,
                     around(steps, 10, 20, steps + 10, steps + 25) + FAR[:4],
                     lambda step, rate=rate, steps=steps, start=start, shifted=shifted: rate(
                         max(step - steps, 0) if shifted else step) * (start + (1 - start) * min(step / steps, 1)))

    def chain(sgd):
        return lr_scheduler.SequentialLR(sgd, [lr_scheduler.LinearLR(sgd, 0.25, total_iters=8), lr_scheduler.StepLR(sgd, 10, 0.5),
                                               lr_scheduler.PolynomialLR(sgd, 6, 2.0)], [12, 40])
    made = stepped(0.2, chain, 60)
    linear = entry('warmup', entry('constant', value=0.2), steps=8, start_fraction=0.25)
    for inner_shift in (False, True):
        # The inner switch counts its steps from where it is; where it is moved, so is the step at which it switches.
        third = entry('polynomial', value=0.2, steps=6, power=2.0)
        if inner_shift:
            rest = entry('switch', step_inner, third, step_of_switch=28, shifted=True)
            whole = entry('switch', linear, rest, step_of_switch=12, shifted=True)
        else:
            whole = entry('switch', entry('switch', linear, step_inner, step_of_switch=12, shifted=True), third, step_of_switch=40,
                          shifted=True)
        case(whole, TORCH, range(60), lambda step: made[step])
    case(entry('switch', step_inner, decay_inner, step_of_switch=17), WRITTEN, around(10, 17, 40),
         lambda step: 0.2 * 0.5 ** (step // 10 if step < 17 else step / 10))
    case(entry('switch', step_inner, entry('constant', value=0.7), step_of_switch=EXACT + 1), WRITTEN,
         around(10, EXACT + 1), lambda step: 0.2 * 0.5 ** (step // 10) if step < EXACT + 1 else 0.7)


def main():
    for make in (decays, polynomials, cosines, restarts, one_cycles, compositions):
        make()
    lines = [json.dumps(one, ensure_ascii=False, separators=(', ', ': ')) for one in DONE]
    with open(os.path.join(sys.argv[1], 'schedule_entries.json'), 'w', encoding='utf-8') as file:
        file.write('[\n' + ',\n'.join(lines) + '\n]\n')
    print(f'{len(DONE)} cases of {len({one["op"] for one in DONE})} schedules')


if __name__ == '__main__':
    main()
