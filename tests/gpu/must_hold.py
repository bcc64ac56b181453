# SPDX-License-Identifier: Apache-2.0
"""What must hold on a GPU, and what the parts say about it: a row for each, whatever was run so far."""
import fnmatch

from gpu_cases import CASES, MOST_BUCKETED, MOST_ISSUE_US, MOST_MEMORY_SHARE

HOLDS, FAILS, OPEN, LEFT = 'yes', 'no', 'open', 'not run'


def matching(names, patterns):
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def verdict_of(states):
    """Of the states of parts, None for those that were not run."""
    if 'failed' in states:
        return FAILS
    if not states or None in states or 'cut off' in states:
        return LEFT
    return HOLDS if set(states) == {'ok'} else OPEN


def by_parts(*patterns):
    """All parts of these names are well; what they say."""
    def judge(parts, names):
        found = matching(dict.fromkeys([*names, *parts]), patterns)
        states = [parts.get(name, {}).get('status') for name in found]
        verdict = verdict_of(states)
        if len(found) == 1:
            return verdict, parts.get(found[0], {}).get('says', '')
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        says = ', '.join(f'{count} {state or LEFT}' for state, count in counts.items())
        reasons = dict.fromkeys(parts[name]['says'] for name in found if parts.get(name, {}).get('status') == 'skipped')
        return verdict, '; '.join([says, *reasons])
    judge.patterns = patterns
    return judge


def by_rows(key, most, unit=''):
    """No row of a comparison has more; the one that has most."""
    def judge(parts, _names):
        rows = [row for part in parts.values() for row in part.get('rows', []) if row.get(key) is not None]
        if not rows:
            return LEFT, ''
        worst = max(rows, key=lambda row: row[key])
        return HOLDS if worst[key] <= most else FAILS, f'{worst[key]:.3g}{unit} at most ({worst["case"]}), of {len(rows)} cases'
    return judge


def gate_of(case):
    if case.bucketed:
        return f'the bucketed program at one device at most {MOST_BUCKETED - 1:.1%} slower than the plain one'
    peer = 'the better of PyTorch as it is written and compiled' if case.against_compiled else 'PyTorch as it is written'
    return f'{case.name}: at least {case.gate:.3g} times the speed of {peer}'


REQUIREMENTS = [
    ('every op gives what the reference backend gives: f32 to 1e-5, f16 and TF32 to 2e-3, bf16 to 1.6e-2',
     by_parts('tests backend_*', 'tests shape_ops*')),
    ('gradients are those of finite differences', by_parts('tests gradients*')),
    ('2, 3 and 4 logical devices learn what one does', by_parts('tests replica_equality*')),
    ('two and more GPUs, and processes with a GPU each, learn what one does',
     by_parts('tests device_group*', 'tests connected_workers*', 'tests multi_worker_cuda', 'tests recorded_steps*',
              'tests several processes')),
    ('predictions use all GPUs at the same time', by_parts('tests predict_flow*')),
    ('1,000 steps with flat memory', by_parts('soak *')),
    ('nothing found by compute-sanitizer memcheck', by_parts('sanitize memcheck *')),
    ('nothing found by compute-sanitizer racecheck', by_parts('sanitize racecheck *')),
    ('who is killed goes on where it was', by_parts('tests kill*')),
    ('the CNN learns Fashion-MNIST as on processors', by_parts('accuracy cnn')),
    *((gate_of(case), by_parts(f'bench {case.name}')) for case in CASES),
    (f'at most {MOST_ISSUE_US} us of a thread of the host for a step that is replayed', by_rows('issue_us', MOST_ISSUE_US, ' us')),
    (f'at most {MOST_ISSUE_US} us of a thread of the host for a step through the C API', by_parts('bench trainer host')),
    (f'at most {MOST_MEMORY_SHARE} of the memory of PyTorch as it is written', by_rows('memory_share', MOST_MEMORY_SHARE)),
    ('all GPUs of a process as fast as their number times one, to nine tenths', by_parts('bench scaling')),
    ('GPUs with a process each likewise', by_parts('bench scaling processes')),
]


def rows(parts, names=()):
    """[{'what', 'holds', 'says'}] of what parts have come to; `names`: of all parts that there are."""
    judged = [(what, *judge(parts, names)) for what, judge in REQUIREMENTS]
    return [{'what': what, 'holds': verdict, 'says': says} for what, verdict, says in judged]
