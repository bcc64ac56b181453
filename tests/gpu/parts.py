# SPDX-License-Identifier: Apache-2.0
"""What run.sh does: parts in the order of what they are worth, each a command of its own with a limit."""
import dataclasses
import importlib.util
import json
import os
import re
import shutil
import sys

import carried_build
import source_digest
from gpu_cases import CASES
from packages import FASHION_MNIST

GROUPS = ['tests', 'bench', 'accuracy', 'soak', 'sanitize']
SKIPPED = 77
# What a judge says of figures that prove nothing, neither way.
INCONCLUSIVE = 'inconclusive'
# Of a test that does not say more itself, and of one that does.
USUAL_TEST, LONGEST_TEST = 300, 540
# What is quick, and shows that anything works at all.
FIRST_TESTS = ['backend_objects_cuda', 'backend_programs_cuda', 'backend_ops_cuda', 'train_step_cuda']
# Where minutes count, instead of what the scripts take by themselves: enough for a median and an interval.
FEWER_QUADRUPLES = '4'
NO_ENGINE = 'what takes several processes needs the engine between them, which is not built: Gloo (libgloo-dev) is missing'


@dataclasses.dataclass(frozen=True)
class Part:
    group: str
    name: str
    command: tuple
    limit: float  # seconds
    # Of them it usually takes; with less time left it is not begun.
    expected: float = 20
    environment: tuple = ()
    folder: str = '.'
    # Why it cannot be done here.
    lacks: str = ''
    # Has the GPU for itself.
    alone: bool = True
    # Names of the backend's files of which a change makes it worth doing; all parts but sanitizers are that by themselves.
    kernels: tuple = ()
    # Of (output, folder of results): (did it hold, what it says, rows). None for one that could not be done, INCONCLUSIVE.
    judge: object = None


def wants_more_gpus(says, gpus):
    """Whether a test was skipped because it needs more GPUs than there are; in the words of tests/gpus_needed.h."""
    found = re.fullmatch(r'(\d+) GPUs are needed, (\d+) (?:is|are) here', says)
    return found is not None and int(found[2]) == gpus < int(found[1])


def last_json(output, _folder):
    """For programs whose last line is an object: what that holds."""
    for line in reversed(output.splitlines()):
        if line.startswith('{'):
            row = json.loads(line)
            return True, ', '.join(f'{key} {value}' for key, value in row.items()), [row]
    return False, 'printed no result', None


def judge_test(output, _folder):
    """What it counted: its tests, those that it left out by name, and cases with the error of f32, where it says so. One that
    left out all has shown nothing."""
    count = sum(int(found) for found in re.findall(r'^\[  PASSED  \] (\d+) test', output, re.MULTILINE))
    left_out = sorted(set(re.findall(r'^\[  SKIPPED \] (?!\d)(\S+)', output, re.MULTILINE)))
    cases = [int(found) for found in re.findall(r'^(\d+) (?:cases|checks)\b', output, re.MULTILINE)]
    missing = sum(int(found) for found in re.findall(r'(\d+) (?:cases )?of optional dtypes (?:are )?not implemented', output))
    errors = [float(found) for found in re.findall(r'^f32 is off by (\S+) of', output, re.MULTILINE)]
    says = [f'{count} tests'] + ([f'{sum(cases)} cases'] if cases else [])
    says += [f'{missing} of optional dtypes not implemented'] if missing else []
    says += [f'f32 off by {max(errors):.2g} at most'] if errors else []
    says += [f'left out: {", ".join(left_out)}'] if left_out else []
    return None if left_out and not count else True, ', '.join(says) if count or left_out else '', None


def tests(build):
    """The programs of the suite gpu, as Meson has them, here or where they were built."""
    usual = {'OMP_WAIT_POLICY': 'passive', 'TUTTI_TESTDATA': os.path.abspath('tests/testdata'), 'TUTTI_CACHE_DIR': 'off'}
    found = carried_build.listed_tests(build)
    found.sort(key=lambda test: FIRST_TESTS.index(test['name']) if test['name'] in FIRST_TESTS else len(FIRST_TESTS))
    for test in found:
        yield Part('tests', test['name'], tuple(test['cmd']), min(max(test['timeout'], USUAL_TEST), LONGEST_TEST),
                   # Until it has run: a timeout is a few times what a test takes on processors.
                   expected=max(Part.expected, test['timeout'] / 3),
                   environment=tuple({**usual, **test['env']}.items()), folder=test['workdir'] or build, alone=False,
                   judge=judge_test)
    if found and not any('tutti-gloo.so' in path for test in found for path in test['env'].values()):
        yield Part('tests', 'several processes', (), USUAL_TEST, lacks=NO_ENGINE)


def bench(build, quadruples=()):
    programs = os.path.join(build, 'tests', 'bench')
    no_peer = '' if importlib.util.find_spec('torch') else f'PyTorch is not among the packages of {sys.executable}'
    for case in CASES:
        yield Part('bench', case.name,
                   (sys.executable, 'tests/gpu/compare.py', '--programs', programs, '--json', 'RESULTS/case.json', *quadruples,
                    case.name),
                   limit=540, expected=240 if case.against_compiled else 120, lacks='' if case.bucketed else no_peer,
                   judge=judge_case)


def plugin_of(build):
    return os.path.abspath(os.path.join(build, 'lib', 'backend', 'cuda', 'tutti-cuda.so'))


def engine_of(build):
    return os.path.abspath(os.path.join(build, 'lib', 'collective', 'gloo', 'tutti-gloo.so'))


def scaling(build, gpus, quadruples=()):
    """What goes through the C API: all GPUs against one, of one process and with a process for each; and what the host does for
    a step."""
    program = os.path.join(build, 'tests', 'bench', 'replica_bench')
    few = '' if gpus > 1 else f'2 GPUs are needed, {gpus} is here'
    words = (sys.executable, 'tests/gpu/scaling.py', '--program', program, '--backend', plugin_of(build), '--devices', str(gpus),
             '--bf16', '--json', 'RESULTS/case.json', *quadruples)
    yield Part('bench', 'scaling', (*words, 'training:resnet50:128', 'inference:resnet50:256'), limit=LONGEST_TEST, expected=300,
               lacks=few, judge=judge_case)
    yield Part('bench', 'scaling processes', (*words, '--engine', engine_of(build), 'training:resnet50:128'), limit=LONGEST_TEST,
               expected=200, lacks=few or ('' if os.path.exists(engine_of(build)) else NO_ENGINE), judge=judge_case)
    yield Part('bench', 'trainer host',
               (sys.executable, 'tests/gpu/trainer_host.py', '--program', program, '--backend', 'cuda',
                '--json', 'RESULTS/case.json', 'toy:64', 'cnn:64'),
               limit=200, expected=40, judge=judge_case)


def judge_case(_output, folder):
    path = os.path.join(folder, 'case.json')
    with open(path, encoding='utf-8') as file:
        rows = json.load(file)['rows']
    os.remove(path)
    says = '; '.join(f'{row["case"]}: {row["says"]}' for row in rows)
    failed = not rows or any(not row['holds'] and not row.get('inconclusive') for row in rows)
    holds = False if failed else INCONCLUSIVE if any(row.get('inconclusive') for row in rows) else True
    return holds, says, rows


# The CNN on processors, by accuracy_bench DATA cnn 0 cpu 1..5: 0.9213 0.9206 0.9183 0.9209 0.9207, their mean and three of their
# standard deviations. Seeds differ in these; devices differ in rounding, which has the same effect.
CPU_ACCURACY, ACCURACY_NOISE = 0.9204, 0.0036


def judge_accuracy(output, folder):
    holds, says, rows = last_json(output, folder)
    if holds:
        off = rows[0]['test_accuracy'] - CPU_ACCURACY
        holds = abs(off) <= ACCURACY_NOISE
        says += f'; {off:+.4f} of that on processors, {ACCURACY_NOISE} is noise'
    return holds, says, rows


def accuracy(build):
    data = os.environ.get('TUTTI_FASHION_MNIST', FASHION_MNIST)
    lacks = '' if os.path.isdir(data) else f'the images of Fashion-MNIST are not in {data}'
    for network, expected in (('cnn', 60), ('mlp', 40), ('resnet20', 90)):
        yield Part('accuracy', network, (os.path.join(build, 'tests', 'bench', 'accuracy_bench'), data, network, '0', 'cuda'),
                   limit=400, expected=expected, lacks=lacks, judge=judge_accuracy if network == 'cnn' else last_json)


def soak(build):
    program = os.path.join(build, 'tests', 'bench', 'step_bench')
    yield Part('soak', 'estimator',
               (sys.executable, 'tests/gpu/soak.py', os.path.join(build, 'tests', 'bench', 'estimator_soak'), 'cuda', '1000', '2'),
               limit=400, expected=90, judge=last_json)
    for name, words in (('cnn', ['cnn:64']), ('resnet50 bf16', ['--bf16', 'resnet50:64'])):
        yield Part('soak', name, (program, '--backend', 'cuda', '--soak', '1000', *words), limit=300, expected=60,
                   judge=last_json)


# Of backend_ops, by the ops whose cases are taken (tests/conformance/case_selection.h): what one command gets through.
SLICES = {
    'convolutions': 'conv2d',
    'pooling': 'max_pool2d,avg_pool2d',
    'products': 'matmul',
    'attention': 'attention,dropout',
    'moves': 'transpose,concat,slice,pad,broadcast_to,reshape,one_hot,iota',
    'gathers': 'gather,top_k,merge_rows,sum_rows,rows_at,row_update',
    'running': 'running,reverse_axes,interpolate',
    'reductions': 'reduce,argmax,argmin',
    'normalization': 'batch_norm,layer_norm,rms_norm,group_norm',
    'losses': 'softmax,log_softmax,sparse_softmax,sigmoid_cross,in_top_k',
    'updates': 'sgd,momentum,adam,random',
    'elementwise': 'add,mul,div,pow,mod,cast,select,gelu,relu,exp,erf,all_finite,is_finite',
}
# The backend's files that such a slice goes through, beside those of all; others go through all of them.
KERNELS = {
    'convolutions': ('*conv2d*', '*convolution*', '*fold*', 'cudnn_*'),
    'pooling': ('*pool2d*',),
    'products': ('*matmul*', '*product*', 'cublaslt_*'),
    'attention': ('*attention*', '*random*', 'philox*'),
    'moves': ('*move*', 'shape_*', '*transpose*'),
    'gathers': ('*gather*', '*top_k*', '*index_sort*', '*row_*'),
    'running': ('*running*', '*interpolate*', '*move*'),
    'reductions': ('*reduc*', 'row-inl.h'),
    'normalization': ('*norm*', 'moments*', 'channel_pass*'),
    'losses': ('*softmax*', '*cross_entropy*', 'row-inl.h'),
    'updates': ('*update*', '*random*', 'philox*'),
    'elementwise': ('*elementwise*', 'element*', 'program_*', 'arithmetic*', 'floats*'),
}
OF_ALL = ('device-inl.h', 'storage-inl.h', 'element_words-inl.h', 'gpu_memory.*', 'gpu_program.*')
# Of each op of a slice so many cases, of so many elements at most.
SMALL = {'TUTTI_TESTED_CASES_PER_OP': '8', 'TUTTI_TESTED_MOST_ELEMENTS': '5000'}


def sanitized(build):
    """(name, command, environment) of what runs under a sanitizer."""
    plugin = plugin_of(build)
    conformance = os.path.join(build, 'tests', 'conformance', 'conformance_tests')
    programs = os.path.join(build, 'tests', 'conformance', 'backend_programs_test')
    # Nothing on the device waits for the host: the tool may wait for each launch.
    yield 'backend_objects', (conformance, 'backend_objects', plugin), {'CUDA_LAUNCH_BLOCKING': '1'}
    yield 'backend_programs', (programs, plugin), {}
    for kind in ('trees', 'loops', 'rows', 'views'):
        yield f'backend_{kind}', (conformance, f'backend_{kind}', plugin), {}
    for name, ops in SLICES.items():
        yield f'backend_ops {name}', (conformance, 'backend_ops', plugin), {'TUTTI_TESTED_OPS': ops, **SMALL}
    # Whole steps, replayed as graphs; through a trainer, with an update of their own.
    distribute = os.path.join(build, 'tests', 'distribute', 'distribute_tests')
    yield 'gradient_clip', (distribute, 'gradient_clip'), {'TUTTI_TEST_BACKEND': plugin}
    step_bench = os.path.join(build, 'tests', 'bench', 'step_bench')
    yield 'train_step', (step_bench, '--backend', plugin, '--loop', '3', 'mlp:8', 'cnn:2', 'gpt2_tiny:1', 'lstm:1'), {}


def sanitize(build, toolkit):
    tool = shutil.which('compute-sanitizer') or shutil.which('compute-sanitizer', path=os.path.join(toolkit, 'bin'))
    for name, command, environment in sanitized(build):
        for check in ('memcheck', 'racecheck'):
            yield Part('sanitize', f'{check} {name}',
                       (tool or 'compute-sanitizer', '--tool', check, '--error-exitcode', '9',
                        # Tests ask for more memory than there is.
                        *(('--report-api-errors', 'no') if check == 'memcheck' else ()), *command),
                       limit=LONGEST_TEST, expected=150, lacks='' if tool else 'compute-sanitizer is not installed',
                       environment=tuple({'TUTTI_CACHE_DIR': 'off', **environment}.items()), judge=judge_sanitizer,
                       kernels=(*KERNELS[name.split()[1]], *OF_ALL) if ' ' in name else ('*',))


def digest_of_kernels(part):
    """Of the files of which a change makes it worth doing; '' where they are not known."""
    return source_digest.of_kernels(part.kernels) if part.kernels else ''


def has_findings(output):
    """Whether a sanitizer has found anything so far."""
    return any(line.startswith('=========') and any(word in line for word in ('Invalid', 'hazard', 'Race', 'Misaligned', 'Leaked'))
               and 'SUMMARY' not in line for line in output.splitlines())


def judge_sanitizer(output, _folder):
    if 'Device not supported' in output:
        return None, 'compute-sanitizer does not support this device', None
    lines = [line for line in output.splitlines() if 'ERROR SUMMARY' in line or 'RACECHECK SUMMARY' in line]
    return True, lines[-1].strip('= ') if lines else '', None


def parts(build, toolkit, gpus=1, is_brief=False):
    """`gpus`: how many programs find here; brief: where minutes count."""
    quadruples = ('--quadruples', FEWER_QUADRUPLES) if is_brief else ()
    return [*tests(build), *sanitize(build, toolkit), *bench(build, quadruples), *scaling(build, gpus, quadruples),
            *accuracy(build), *soak(build)]
