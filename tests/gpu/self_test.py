#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What run.sh is made of, on a machine without a GPU: parts that hold, fail, hang and are skipped, time that runs out,
results that the next call goes on with, and how a comparison is judged."""
import contextlib
import glob
import importlib.util
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'bench'))
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position
import compare  # noqa: E402
import gpu_cases  # noqa: E402
import must_hold  # noqa: E402
import parts  # noqa: E402
import peer_server  # noqa: E402
import run_parts  # noqa: E402
import soak  # noqa: E402
import source_digest  # noqa: E402
import toolkit  # noqa: E402
import trainer_host  # noqa: E402
import worth  # noqa: E402
from parts import Part  # noqa: E402
from results import Results  # noqa: E402
from stand_ins import InFolder  # noqa: E402

HEAD = {'gpu': 'a GPU', 'driver': '1', 'sources': 'abc', 'date': '2026-01-01'}
# A program that serves requests as step_server.h says: each measurement takes argv[1] ms.
SERVER = '''#!{python}
import json, sys
print(json.dumps({{'name': 'stub'}}), flush=True)
for line in sys.stdin:
    answer = {{'cpu_ms': 1, 'thread_ms': {issue} * 1e-3, 'wall_ms': {ms} * (0.5 if 'graphs' in line else 1), 'steps': 8,
              'issue_us': {issue},
              'device_mb': {mb}, 'waits': 8 if 'latency' in line else {waits}}}
    if 'compiled' in line: answer = {{'error': 'no compiler'}}
    print(json.dumps(answer), flush=True)
'''

# A worker of such, or the process with one device: waits until the others have been asked the same, each time.
WORKER = '''#!{python}
import json, os, sys, time
rank, size = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
assert os.environ.get('LOCAL_RANK', '0') == str(rank)
print(json.dumps({{'name': 'stub'}}), flush=True)
for number, line in enumerate(sys.stdin):
    words = line.split()
    if words[0] in ('steps', 'report'):
        open(f'{folder}/{{number}}-{{rank}}-{{words[-1]}}', 'w').close()
        while not all(os.path.exists(f'{folder}/{{number}}-{{other}}-{{words[-1]}}') for other in range(size)):
            time.sleep(0.001)
    answer = {{'wall_ms': 1 + 0.125 * rank if words[0] == 'steps' else 1}}
    if words[0] == 'report': answer = {{'communication': 0.125 * (rank + 1)}}
    if 'none' in words: answer = {{'error': 'no such network'}}
    print(json.dumps(answer), flush=True)
'''


def shell(text, **settings):
    return Part(settings.pop('group', 'tests'), settings.pop('name', text), ('/bin/sh', '-c', text),
                **{'limit': 20, 'expected': 0, **settings})


class Parts(InFolder):
    def do(self, *listed, seconds=None, head=HEAD, gpus=1):
        results = Results(self.folder, dict(head))
        runner = run_parts.Runner(results, run_parts.Clock(seconds), dict(os.environ), gpus)
        with contextlib.redirect_stdout(io.StringIO()):
            runner.do_all([part for part in listed if not results.is_done(f'{part.group} {part.name}')])
        return {name: part['status'] for name, part in Results(self.folder, dict(head)).parts.items()}

    def test_parts_come_to_what_they_end_with(self):
        states = self.do(shell('exit 0', name='a'), shell('exit 1', name='b', alone=False), shell('exit 77', name='c', group='bench'),
                         shell('echo "skipped: no driver"; exit 77', name='f'),
                         Part('soak', 'd', ('/no/such/program',), 5, 0), shell('exit 0', name='e', lacks='a data set'))
        self.assertEqual(states, {'tests a': 'ok', 'tests b': 'failed', 'bench c': 'skipped', 'tests f': 'failed',
                                  'soak d': 'failed', 'tests e': 'skipped'})
        with open(os.path.join(self.folder, 'results.md'), encoding='utf-8') as file:
            table = [line for line in file.read().partition('| part |')[2].splitlines() if line.startswith('| ')]
        self.assertEqual(['failed' in line for line in table], [True] * 3 + [False] * 3, table)
        # Few files, that have everything.
        self.assertEqual(sorted(os.listdir(self.folder)), ['logs.txt', 'results.json', 'results.md'])
        with open(os.path.join(self.folder, 'logs.txt'), encoding='utf-8') as file:
            logs = file.read()
        self.assertIn('skipped: no driver', logs)
        self.assertLess(logs.index('==== tests b failed'), logs.index('==== tests a ok'))

    def test_only_a_want_of_gpus_lets_a_test_be_skipped(self):
        few = 'echo "[ RUN ]"; echo "skipped: 2 GPUs are needed, %s here"; exit 77'
        listed = [shell(few % '1 is', name='a'), shell('exit 77', name='b'),
                  # Says that it finds fewer than there are, or enough.
                  shell(few % '0 are', name='c'), shell(few % '2 are', name='d'),
                  shell('echo "skipped: 2 GPUs are needed, 1 is here"; exit 1', name='e')]
        states = self.do(*listed)
        self.assertEqual(states, {'tests a': 'skipped', 'tests b': 'failed', 'tests c': 'failed', 'tests d': 'failed',
                                  'tests e': 'failed'})
        self.assertEqual(Results(self.folder, dict(HEAD)).parts['tests a']['says'], '2 GPUs are needed, 1 is here')
        self.assertEqual(self.do(listed[0], gpus=4, head={**HEAD, 'sources': 'def'}), {'tests a': 'failed'})

    def test_gpus_that_are_hidden_do_not_count(self):
        known = os.environ.pop('CUDA_VISIBLE_DEVICES', None)
        self.addCleanup(lambda: os.environ.pop('CUDA_VISIBLE_DEVICES', None) if known is None
                        else os.environ.update(CUDA_VISIBLE_DEVICES=known))
        self.assertEqual(toolkit.visible(4), 4)
        for listed, count in (('1', 1), ('0,3', 2), ('', 0)):
            os.environ['CUDA_VISIBLE_DEVICES'] = listed
            self.assertEqual(toolkit.visible(4), count)

    def test_what_hangs_is_ended_with_all_that_it_began(self):
        mark = os.path.join(self.folder, 'mark')
        begin = time.monotonic()
        states = self.do(shell(f'(sleep 3; touch {mark}) & sleep 60', name='a', limit=1), shell('exit 0', name='b'))
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(states, {'tests a': 'failed', 'tests b': 'ok'})
        time.sleep(3)
        self.assertFalse(os.path.exists(mark))

    def test_where_a_part_crashed_is_found(self):
        folder = os.path.join(self.folder, 'bin')
        os.makedirs(folder)
        debugger = os.path.join(folder, 'cuda-gdb')
        # The second run crashes; the third is not begun.
        with open(debugger, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\necho x >> {folder}/runs\n[ $(wc -l < {folder}/runs) -lt 2 ] || echo received signal SIGSEGV in f\n')
        os.chmod(debugger, 0o755)
        results = Results(self.folder, HEAD, os.path.join(self.folder, 'logs'))
        environment = {**os.environ, 'PATH': folder + ':' + os.environ['PATH']}
        runner = run_parts.Runner(results, run_parts.Clock(None), environment, 1)
        with contextlib.redirect_stdout(io.StringIO()):
            runner.do(shell('kill -SEGV $$', name='crashes'))
        self.assertEqual(results.parts['tests crashes']['status'], 'failed')
        with open(results.log_path('tests crashes crash'), encoding='utf-8') as log:
            text = log.read()
        self.assertIn('received signal SIGSEGV in f', text)
        self.assertEqual(text.count('cuda-gdb -batch'), 2)
        # Where minutes count, once.
        os.remove(os.path.join(folder, 'runs'))
        runner.clock = run_parts.Clock(60)
        with contextlib.redirect_stdout(io.StringIO()):
            runner.do(shell('kill -SEGV $$', name='crashes'))
        with open(results.log_path('tests crashes crash'), encoding='utf-8') as log:
            self.assertEqual(log.read().count('cuda-gdb -batch'), 1)

    def test_a_part_adds_folders_to_those_of_the_machine(self):
        both = run_parts.joined({'PATH': '/a', 'LD_LIBRARY_PATH': '/packages', 'X': '1'}, {'LD_LIBRARY_PATH': '/build', 'X': '2'})
        self.assertEqual(both, {'PATH': '/a', 'LD_LIBRARY_PATH': '/build:/packages', 'X': '2'})

    def test_a_sanitizer_that_takes_long_is_judged_by_what_it_found(self):
        finding = 'echo "========= Invalid __global__ write of size 4 bytes"; sleep 60'
        states = self.do(shell('echo "========= COMPUTE-SANITIZER"; sleep 60', name='a', group='sanitize', limit=1),
                         shell(finding, name='b', group='sanitize', limit=1))
        self.assertEqual(states, {'sanitize a': 'partial', 'sanitize b': 'failed'})

    def test_every_kind_of_kernel_is_sanitized(self):
        listed = list(parts.sanitize('build/gpu', '/no/toolkit'))
        self.assertEqual(len({part.name for part in listed}), len(listed))
        self.assertEqual(sum('memcheck' in part.command for part in listed), sum('racecheck' in part.command for part in listed))
        self.assertLess(max(part.limit for part in listed), 600)
        prefixes = tuple(','.join(parts.SLICES.values()).split(','))
        # Elementwise ops share their kernels; those of the program itself have cases elsewhere.
        with open(os.path.join(HERE, '..', '..', 'lib', 'graph', 'ops', 'ops.yaml'), encoding='utf-8') as file:
            ops = re.findall(r'^ *- name: (\w+)', file.read(), re.MULTILINE)
        self.assertGreater(len(ops), 100)
        for pattern in ('^conv2d', 'pool2d', 'attention', '_norm(_|$)', '^reduce', '^gather', '^top_k', 'cross_entropy', 'softmax',
                        '_update$', '^random', '^transpose$', '^concat', '^slice', '^pad$', '^arg(max|min)$'):
            named = [op for op in ops if re.search(pattern, op)]
            self.assertTrue(named, pattern)
            self.assertFalse([op for op in named if not op.startswith(prefixes)], pattern)

    def test_time_that_runs_out_leaves_the_rest_for_the_next_call(self):
        listed = [shell('exit 0', name='a'), shell('sleep 30', name='b'), shell('exit 0', name='c', expected=50)]
        self.assertEqual(self.do(*listed, seconds=2), {'tests a': 'ok', 'tests b': 'cut off'})
        # The first is not done again; it would fail.
        listed[:2] = [shell('exit 1', name='a'), shell('exit 0', name='b')]
        self.assertEqual(self.do(*listed), {'tests a': 'ok', 'tests b': 'ok', 'tests c': 'ok'})
        # Of other sources nothing counts.
        self.assertEqual(self.do(listed[0], head={**HEAD, 'sources': 'def'}), {'tests a': 'failed'})

    def order(self, listed, head=None):
        results = Results(self.folder, {**HEAD, **(head or {})})
        return [part.name for part in worth.left(listed, results)]

    def keep(self, head=None, **states):
        """Results of parts that took so many seconds."""
        results = Results(self.folder, {**HEAD, **(head or {})})
        for name, (group, status, seconds) in states.items():
            results.add(f'{group} {name}', group, status, seconds)

    def test_what_matters_most_comes_first(self):
        flagships = [shell('', name=case.name, group='bench', expected=240) for case in gpu_cases.CASES if case.against_compiled]
        self.assertEqual(len(flagships), 2)
        first = [shell('', name=name, alone=False) for name in parts.FIRST_TESTS]
        rest = [shell('', name='slow', alone=False, expected=200), shell('', name='b', alone=False, expected=30),
                shell('', name='a', alone=False, expected=20, limit=300),
                *(shell('', name=group, group=group, expected=60) for group in ('bench', 'sanitize', 'accuracy', 'soak'))]
        names = [part.name for part in (*first, *flagships)] + ['a', 'b', 'bench', 'sanitize', 'accuracy', 'soak', 'slow']
        self.assertEqual(self.order([*reversed(rest), *first, *flagships]), names)
        # What is done is not done again, but for what failed: behind all that has not run.
        self.keep(a=('tests', 'ok', 1), b=('tests', 'failed', 1), bench=('bench', 'skipped', 1), soak=('soak', 'cut off', 1))
        self.assertEqual(self.order(rest), ['sanitize', 'accuracy', 'soak', 'slow', 'b'])
        results = Results(self.folder, dict(HEAD))
        for words, names in (((), ['slow', 'sanitize', 'accuracy', 'soak']), (('--minutes', '1'), self.order(rest)),
                             (('--again',), [part.name for part in rest])):
            self.assertEqual([part.name for part in run_parts.left_of(rest, run_parts.parsed(words), results)], names)
        # With other sources what failed is perhaps mended, and how long something takes is known.
        self.keep({'sources': 'def'}, slow=('tests', 'ok', 2), a=('tests', 'ok', 160))
        self.assertEqual(self.order(rest, {'sources': 'ghi'}), ['b', 'slow', 'bench', 'sanitize', 'accuracy', 'soak', 'a'])

    def test_what_another_machine_lacked_is_not_done(self):
        self.do(shell('', name='a', lacks='PyTorch'))
        self.assertEqual(self.order([shell('', name='a', lacks='PyTorch')]), [])
        self.assertEqual(self.order([shell('', name='a')]), ['a'])

    def test_figures_and_tests_are_not_done_at_once(self):
        mark = os.path.join(self.folder, 'mark')
        beside = f'touch {mark}; sleep 0.3; rm {mark}'
        listed = [shell(beside, name='a', alone=False), shell(beside, name='b', alone=False),
                  shell(f'test ! -e {mark}', name='c', group='bench'), shell('exit 0', name='d', alone=False)]
        self.assertEqual(set(self.do(*listed).values()), {'ok'})

    def test_nothing_begins_that_took_longer_last(self):
        part = shell('exit 0', name='a', limit=300)
        self.keep({'sources': 'def', 'gpu': 'another'}, a=('tests', 'ok', 100))
        self.assertEqual(self.do(part, seconds=110), {})
        self.assertEqual(self.do(part, seconds=120), {'tests a': 'ok'})
        last = Results(self.folder, dict(HEAD)).last['tests a']
        self.assertLess(last['seconds'], 10)
        # What ended early because it failed, or was ended, may take as long as before, or as is expected of it.
        for status in ('failed', 'cut off'):
            self.keep(a=('tests', 'ok', 100))
            self.keep(a=('tests', status, 1))
            last = Results(self.folder, dict(HEAD)).last['tests a']
            self.assertGreater(worth.expected(part, last), 100)
            self.assertEqual(worth.expected(shell('', expected=50), {'status': status, 'seconds': 1}), 50)
        # But no longer than it may.
        self.assertEqual(worth.expected(part, {'status': 'partial', 'seconds': 300}), 300)
        self.keep(b=('tests', 'skipped', 0))
        self.assertNotIn('tests b', Results(self.folder, dict(HEAD)).last)

    def test_a_test_that_takes_longer_than_was_thought_lets_others_go_first(self):
        self.addCleanup(setattr, run_parts, 'LEAST_PATIENCE', run_parts.LEAST_PATIENCE)
        run_parts.LEAST_PATIENCE = 1
        part = shell('sleep 2', name='a', expected=0.1)
        self.assertEqual(self.do(part, seconds=100), {'tests a': 'cut off'})
        self.assertIn('longer than was thought', Results(self.folder, dict(HEAD)).parts['tests a']['says'])
        # Now that is known.
        self.assertEqual(self.do(part, seconds=100), {'tests a': 'ok'})

    def test_results_go_on_on_another_machine(self):
        self.keep(a=('tests', 'ok', 1))
        self.do(shell('echo why it failed; exit 1', name='c'))
        brought = os.path.join(self.folder, 'brought', 'results')
        os.makedirs(brought)
        for name in ('results.json', 'logs.txt'):
            shutil.copy(os.path.join(self.folder, name), brought)
        self.folder = brought
        self.assertEqual(self.do(shell('exit 1', name='a'), shell('exit 0', name='b'), head={**HEAD, 'driver': '2'}),
                         {'tests a': 'ok', 'tests b': 'ok', 'tests c': 'failed'})
        # What is known of a failure comes along, and only once.
        for _ in range(2):
            with open(os.path.join(brought, 'logs.txt'), encoding='utf-8') as file:
                self.assertEqual(file.read().count('why it failed'), 2)
            self.do(shell('exit 0', name='d'), shell('exit 0', name='e'))
        self.assertEqual(self.do(shell('exit 1', name='a'), head={**HEAD, 'gpu': 'another'}), {'tests a': 'failed'})

    def test_sanitizers_of_kernels_that_have_not_changed_come_last(self):
        known = os.getcwd()
        self.addCleanup(os.chdir, known)
        os.chdir(os.path.join(HERE, '..', '..'))
        self.assertEqual(set(parts.KERNELS), set(parts.SLICES))
        nothing = source_digest.of_kernels(())
        for name, patterns in parts.KERNELS.items():
            for pattern in (*patterns, *parts.OF_ALL):
                self.assertNotEqual(source_digest.of_kernels((pattern,)), nothing, f'{name}: {pattern}')
        listed = [part for part in parts.sanitize('build/gpu', '/no/toolkit') if 'pooling' in part.name or 'moves' in part.name]
        digest = parts.digest_of_kernels(listed[0])
        results = Results(self.folder, dict(HEAD))
        results.add(worth.name_of(listed[0]), 'sanitize', 'ok', 1, kernels=digest)
        results.add(worth.name_of(listed[1]), 'sanitize', 'ok', 1, kernels='of before')
        results.add(worth.name_of(listed[2]), 'sanitize', 'failed', 1, kernels=parts.digest_of_kernels(listed[2]))
        order = self.order([*listed, shell('', name='soak', group='soak')], {'sources': 'def'})
        self.assertEqual(order, [listed[2].name, listed[1].name, listed[3].name, 'soak', listed[0].name])

    def test_where_minutes_count_figures_are_of_fewer_quadruples(self):
        words = {is_brief: {part.name: part.command for part in parts.parts(self.folder, '/no/toolkit', 2, is_brief)}
                 for is_brief in (False, True)}
        for name in ('toy b64 f32 training', 'scaling'):
            self.assertNotIn('--quadruples', words[False][name])
            self.assertIn('--quadruples', words[True][name])
        self.assertIn('of 2 quadruples', self.compare(1, 5, 'toy b64 f32 training')[1])
        case = gpu_cases.CASES[0]
        row = {'ms': 1, 'peer_ms': 5, 'peer': 'stub', 'ratio': 5, 'low': 5, 'high': 5, 'issue_us': 10, 'ratios': [5] * 10}
        self.assertNotIn('quadruples', compare.judge(case, row)['says'])

    def test_a_digest_is_of_what_counts(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        os.makedirs('lib')
        os.makedirs('tests/gpu')

        def digests():
            return source_digest.of_what_is_run(), source_digest.of_what_is_built()

        before = digests()
        for name in ('lib/README.md', 'tests/gpu/a.pyc', 'lib/a.o'):
            self.file(name, 'x')
        self.assertEqual(digests(), before)
        # A script needs no other build.
        self.file('tests/gpu/a.py', 'x')
        self.assertEqual([now == then for now, then in zip(digests(), before)], [False, True])
        self.file('lib/a.cc', 'x')
        self.assertNotEqual(digests()[1], before[1])

    def test_several_at_a_time_but_the_first(self):
        for name in 'abcd':
            self.file(name)
        listed = [shell(f'test ! -e {self.folder}/first && touch {self.folder}/first', name='a', alone=False)]
        # Each waits for another: alone they would fail.
        for mine, other in (('b', 'c'), ('c', 'b')):
            wait = f'for i in $(seq 100); do test -e {self.folder}/{other}-is-there && exit 0; sleep 0.1; done; exit 1'
            listed.append(shell(f'touch {self.folder}/{mine}-is-there; {wait}', name=mine, alone=False))
        self.assertEqual(set(self.do(*listed).values()), {'ok'})

    def test_programs_are_judged_by_what_they_print(self):
        states = self.do(shell('echo \'{"loss": 0.25}\'', name='a', judge=parts.last_json),
                         shell('echo nothing', name='b', judge=parts.last_json),
                         shell('echo "========= Error: Device not supported"; exit 1', name='c', group='sanitize',
                               judge=parts.judge_sanitizer),
                         shell('echo "========= ERROR SUMMARY: 3 errors"; exit 9', name='d', judge=parts.judge_sanitizer))
        self.assertEqual(states, {'tests a': 'ok', 'tests b': 'failed', 'sanitize c': 'skipped', 'tests d': 'failed'})

    def test_a_test_is_told_by_what_it_counted(self):
        output = """12 cases, 3 of optional dtypes not implemented
f32 is off by 2.5e-07 of its size at most: add
8 cases, 0 of optional dtypes not implemented
f32 is off by 8.1e-06 of its size at most: matmul
add: 4 cases of optional dtypes are not implemented
[  PASSED  ] 7 test(s).
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] one_thing
[  SKIPPED ] another_thing
"""
        says = parts.judge_test(output, self.folder)
        self.assertEqual(says, (True, '7 tests, 20 cases, 7 of optional dtypes not implemented, f32 off by 8.1e-06 at most, left out: '
                                'another_thing, one_thing', None))
        self.assertEqual(parts.judge_test('nothing', self.folder), (True, '', None))
        nothing = shell('echo "[  PASSED  ] 0 test(s)."; echo "[  SKIPPED ] one_thing"', name='a', judge=parts.judge_test)
        self.assertEqual(self.do(nothing), {'tests a': 'failed'})

    def test_what_must_hold_is_told_whatever_was_run(self):
        def told(parts_done, names=()):
            return {row['what'].partition(' ')[0]: (row['holds'], row['says']) for row in must_hold.rows(parts_done, names)}
        nothing = must_hold.rows({})
        self.assertEqual({row['holds'] for row in nothing}, {must_hold.LEFT})
        self.assertEqual(len({row['what'] for row in nothing}), len(nothing))
        ok, failed, skipped = ({'status': status, 'says': status} for status in ('ok', 'failed', 'skipped'))
        self.assertEqual(told({'tests kill_cuda': ok})['who'], ('yes', 'ok'))
        self.assertEqual(told({'tests backend_ops_cuda': ok, 'tests backend_rows_cuda': failed})['every'], ('no', '1 ok, 1 failed'))
        self.assertEqual(told({'tests backend_ops_cuda': ok}, ['tests backend_rows_cuda'])['every'], ('not run', '1 not run, 1 ok'))
        self.assertEqual(told({'soak a': ok, 'soak b': {'status': 'partial', 'says': ''}})['1,000'], ('open', '1 ok, 1 partial'))
        self.assertEqual(told({'soak a': ok, 'soak b': skipped})['1,000'], ('open', '1 ok, 1 skipped; skipped'))
        # Figures of all comparisons together.
        rows = [{'case': 'a', 'issue_us': 12.3, 'memory_share': 0.5}, {'case': 'b', 'issue_us': 44, 'memory_share': None}]
        compared = {'bench x': {**ok, 'rows': rows[:1]}, 'bench y': {**failed, 'rows': rows[1:]}}
        judged = {row['what']: row for row in must_hold.rows(compared)}
        host = next(row for what, row in judged.items() if 'replayed' in what)
        self.assertEqual((host['holds'], host['says']), ('no', '44 us at most (b), of 2 cases'))
        memory = next(row for what, row in judged.items() if 'of the memory' in what)
        self.assertEqual((memory['holds'], memory['says']), ('yes', '0.5 at most (a), of 1 cases'))

    def test_what_must_hold_is_what_there_is(self):
        """Every pattern finds a part: of programs of the suite gpu by the names that their lists have."""
        names = [f'{part.group} {part.name}' for part in parts.parts(self.folder, '/no/toolkit')]
        lists = []
        for path in glob.glob(os.path.join(HERE, '..', '**', 'meson.build'), recursive=True):
            with open(path, encoding='utf-8') as file:
                lists.append(file.read())
        for _, judge in must_hold.REQUIREMENTS:
            for pattern in getattr(judge, 'patterns', ()):
                stem = re.match(r'tests (\w+?)(_cuda|_?\*)', pattern)
                found = any(re.search(rf"'{stem[1]}_?'", text) for text in lists) if stem else must_hold.matching(names, [pattern])
                self.assertTrue(found or pattern == 'tests several processes', pattern)
        # And what is measured is in the list.
        known = [pattern for _, judge in must_hold.REQUIREMENTS for pattern in getattr(judge, 'patterns', ())]
        for name in names:
            if not name.startswith('accuracy'):
                self.assertTrue(must_hold.matching([name], known), name)

    def test_without_pytorch_what_needs_it_is_skipped(self):
        known, importlib.util.find_spec = importlib.util.find_spec, lambda name: None
        self.addCleanup(setattr, importlib.util, 'find_spec', known)
        lacks = {part.name: part.lacks for part in parts.bench(self.folder)}
        self.assertEqual({name for name, what in lacks.items() if not what}, {'resnet50 b256 bf16 training bucketed'})
        self.assertIn('PyTorch is not among the packages', lacks['toy b64 f32 training'])

    def test_without_an_engine_processes_are_not_forgotten(self):
        listed = [{'name': 'a_cuda', 'suite': ['tutti:gpu'], 'cmd': ['a'], 'timeout': 30, 'workdir': None, 'env': {'X': '1'}}]
        self.program('meson', f"cat <<'END'\n{json.dumps(listed)}\nEND")
        path = os.environ['PATH']
        self.addCleanup(os.environ.update, PATH=path)
        os.environ['PATH'] = self.folder + ':' + path
        # Of a test that has not run its timeout tells how long it takes.
        listed.append({**listed[0], 'name': 'b_cuda', 'timeout': 600})
        self.program('meson', f"cat <<'END'\n{json.dumps(listed)}\nEND")
        self.assertEqual([part.expected for part in parts.tests(self.folder)][:2], [20, 200])
        del listed[1]
        self.program('meson', f"cat <<'END'\n{json.dumps(listed)}\nEND")
        self.assertEqual([(part.name, part.lacks) for part in parts.tests(self.folder)],
                         [('a_cuda', ''), ('several processes', parts.NO_ENGINE)])
        listed[0]['env']['TUTTI_TEST_ENGINE'] = '/x/tutti-gloo.so'
        self.program('meson', f"cat <<'END'\n{json.dumps(listed)}\nEND")
        self.assertEqual([part.name for part in parts.tests(self.folder)], ['a_cuda'])

    def test_accuracy_is_that_of_processors(self):
        for value, holds in ((0.9204, True), (0.9170, True), (0.9150, False), (0.9260, False)):
            self.assertEqual(parts.judge_accuracy(json.dumps({'test_accuracy': value}), self.folder)[0], holds, value)
        self.assertFalse(parts.judge_accuracy('nothing', self.folder)[0])

    def test_what_could_not_be_done_is_not_a_success(self):
        def status(*parts_done, gpus=1):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                return run_parts.conclude([dict(zip(('status', 'says'), part)) for part in parts_done], gpus), said.getvalue()
        few = ('skipped', '2 GPUs are needed, 1 is here')
        self.assertEqual(status(('ok', ''), few), (0, ''))
        self.assertEqual(status(('ok', ''), few, gpus=2)[0], run_parts.LEFT)
        code, said = status(('ok', ''), ('skipped', 'no compute-sanitizer'))
        self.assertEqual(code, run_parts.LEFT)
        self.assertIn('no compute-sanitizer', said)
        self.assertEqual(status(('ok', ''), ())[0], run_parts.LEFT)
        self.assertEqual(status(('ok', ''), ('partial', ''))[0], run_parts.LEFT)
        self.assertEqual(status(('failed', ''), ('skipped', 'no data'))[0], run_parts.FAILED)

    def test_what_varies_proves_nothing(self):
        row = {'ms': 1, 'peer_ms': 5, 'peer': 'stub', 'ratio': 5, 'low': 4.95, 'high': 5.05, 'issue_us': 10}
        case = next(case for case in gpu_cases.CASES if case.gate == 4)
        self.assertTrue(compare.judge(case, row)['holds'])
        varied = compare.judge(case, {**row, 'low': 4.5})
        self.assertFalse(varied['holds'])
        self.assertIn('inconclusive', varied['says'])
        self.assertFalse(compare.judge(case, {**row, 'ratio': 3, 'low': 2.5, 'high': 3})['inconclusive'])
        listed = []
        for name, rows in (('a', [varied]), ('b', [varied, {**row, 'holds': False, 'says': ''}]), ('c', [])):
            path = self.file('rows-' + name, json.dumps({'rows': [{'case': 'toy', **one} for one in rows]}))
            listed.append(shell(f'mv {path} {self.folder}/case.json', name=name, group='bench', judge=parts.judge_case))
        self.assertEqual(self.do(*listed), {'bench a': 'partial', 'bench b': 'failed', 'bench c': 'failed'})

    def compare(self, ms, peer_ms, case, issue=10, mb=100, server=SERVER):
        server = self.file('step_bench', server.format(python=sys.executable, ms=ms, issue=issue, mb=mb, waits=1))
        os.chmod(server, os.stat(server).st_mode | stat.S_IXUSR)
        peer = self.file('peer.py', SERVER.format(python=sys.executable, ms=peer_ms, issue=0, mb=200, waits=1))
        subprocess.run([sys.executable, os.path.join(HERE, 'compare.py'), '--programs', self.folder, '--peer', peer,
                        '--quadruples', '2', '--json', os.path.join(self.folder, 'case.json'), case],
                       check=True, capture_output=True)
        return parts.judge_case('', self.folder)

    def test_comparisons_are_judged_by_their_gates(self):
        self.assertTrue(self.compare(1, 5, 'toy b64 f32 training')[0])
        holds, says, rows = self.compare(1, 3, 'toy b64 f32 training')
        self.assertFalse(holds)
        self.assertIn('ratio below 4', says)
        self.assertEqual((rows[0]['ratio'], rows[0]['examples_per_second']), (3, 64000))
        self.assertIn('host more than 40 us', self.compare(1, 5, 'toy b64 f32 training', issue=50)[1])
        self.assertIn('memory above 0.9', self.compare(1, 5, 'toy b64 f32 training', mb=190)[1])
        # Of predictions, too; one by one they are waited for on both sides.
        self.assertIn('memory above 0.9', self.compare(1, 2, 'resnet50 b256 f32 inference', mb=190)[1])
        self.assertTrue(self.compare(1, 2, 'resnet50 b1 f32 inference latency')[0])
        hasty = SERVER.replace("8 if 'latency'", "1 if 'latency'")
        self.assertIn('waited for', self.compare(1, 2, 'resnet50 b1 f32 inference latency', server=hasty)[1])
        # The faster of PyTorch's forms counts, and one that it cannot do does not.
        holds, says, _ = self.compare(1, 2, 'gpt2 b16 bf16 training')
        self.assertTrue(holds)
        self.assertIn('graphs', says)
        self.assertIn('1.638e+07 tokens a second', says)
        self.assertFalse(self.compare(1, 1.9, 'gpt2 b16 bf16 training')[0])
        # Against itself.
        self.assertTrue(self.compare(1, 9, 'resnet50 b256 bf16 training bucketed')[0])

    def test_peers_wait_as_they_are_told(self):
        calls = []
        known, peer_server.synchronize = peer_server.synchronize, lambda: calls.append(0)
        self.addCleanup(setattr, peer_server, 'synchronize', known)
        measurer = peer_server.Measurer(lambda *words: lambda: None)
        each = measurer('inference', 'toy', '1', '1', 'plain+latency', '0.01')
        self.assertEqual(each['waits'], each['steps'])
        self.assertGreater(each['steps'], 10)
        some = measurer('inference', 'toy', '1', '1', 'plain', '0.01')
        self.assertLess(some['waits'], some['steps'])

    def test_libraries_are_found_where_python_has_them(self):
        package = os.path.join(self.folder, 'nvidia', 'cudnn')
        for folder, name in (('include', 'cudnn_graph.h'), ('lib', 'libcudnn.so.9')):
            os.makedirs(os.path.join(package, folder))
            self.file(os.path.join('nvidia', 'cudnn', folder, name))
        sys.path.append(self.folder)
        self.addCleanup(sys.path.remove, self.folder)
        known, toolkit.loader_knows = toolkit.loader_knows, lambda library: False
        self.addCleanup(setattr, toolkit, 'loader_knows', known)
        includes, libraries, missing = toolkit.lists(os.path.join(self.folder, 'no-toolkit'))
        self.assertIn(os.path.join(package, 'include'), includes)
        self.assertIn(os.path.join(package, 'lib'), libraries)
        self.assertFalse([what for what in missing if what.startswith('cuDNN')])
        # A toolkit that has them is enough.
        for folder, names in (('include', ('cudnn_graph.h', 'nccl.h', 'cublasLt.h', 'nvrtc.h')),
                              ('lib64', ('libcudnn.so.9', 'libnccl.so.2', 'libcublasLt.so.13', 'libnvrtc.so.13'))):
            os.makedirs(os.path.join(self.folder, 'toolkit', folder))
            for name in names:
                self.file(os.path.join('toolkit', folder, name))
        self.assertEqual(toolkit.lists(os.path.join(self.folder, 'toolkit')), ([], [], []))

    def test_a_wrong_word_is_an_error(self):
        listed = [shell('exit 0', name='a'), Part('bench', 'b', ('true',), 1)]
        self.assertEqual([part.name for part in run_parts.chosen(listed, ['bench'])], ['b'])
        self.assertEqual([part.name for part in run_parts.chosen(listed, ['tests a'])], ['a'])
        self.assertEqual(len(run_parts.chosen(listed, [])), 2)
        with self.assertRaises(SystemExit):
            run_parts.chosen(listed, ['bentsch'])

    def test_a_machine_without_a_gpu_is_told_so(self):
        answer = subprocess.run([os.path.join(HERE, 'run.sh'), '--no-build'], capture_output=True, text=True, check=False,
                                env={**os.environ, 'PATH': self.folder + ':/usr/bin:/bin', 'TUTTI_RESULTS': self.folder})
        if not toolkit.gpus():
            self.assertEqual(answer.returncode, 1)
            self.assertIn('no NVIDIA GPU', answer.stderr)

    def test_what_a_build_lacks_is_said_at_once(self):
        environment = self.bare_machine()
        os.makedirs(os.path.join(self.folder, 'headers'))
        self.file(os.path.join('headers', 'zlib.h'))
        answer = self.run_sh({**environment, 'CPATH': os.path.join(self.folder, 'headers')})
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(answer.stderr.count('\n'), 1, answer.stderr)
        for word in ('Meson', 'Ninja', 'nlohmann_json', 'cmocka', 'protozero', 'CLI11', 'there is no apt-get', 'tests/gpu/carry.sh',
                     environment['TUTTI_PACKAGES']):
            self.assertIn(word, answer.stderr)
        for word in ('zlib', 'C++ compiler', 'pkg-config'):
            self.assertNotIn(word, answer.stderr)
        self.assertIn('less to test without Gloo', answer.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'results.json')))

    def test_what_a_build_lacks_is_fetched_where_apt_reaches_its_archive(self):
        environment = self.bare_machine(*'rm mkdir mktemp find readlink realpath ln mv cp du cat touch timeout'.split())
        headers = 'nlohmann/json.hpp zlib.h cmocka.h protozero/pbf_reader.hpp CLI/CLI.hpp gloo/transport/tcp/device.h'
        self.program('apt-get', 'case "$*" in *update*|*print-uris*) exit 0 ;; esac\n'
                     'test -z "$UNREACHABLE" || exit 100\nfor word; do name=$word; done\ntouch "$name.deb"')
        self.program('apt-cache', 'exit 0')
        self.program('dpkg', f'for header in {headers}; do mkdir -p "$3/usr/include/$(dirname $header)"\n'
                     'touch "$3/usr/include/$header"; done; mkdir -p "$3/usr/lib/python3/dist-packages/yaml"')
        self.program('ninja', 'exit 1')
        self.program('meson', f'echo "$1" >> {self.folder}/meson-was-asked; exit 1')
        answer = self.run_sh({**environment, 'UNREACHABLE': '1'}, 'accuracy')
        self.assertEqual(answer.returncode, 1)
        self.assertIn('apt-get reaches no archive', answer.stderr)
        self.assertFalse(os.path.exists(environment['TUTTI_PACKAGES'] + '.new'))
        # Now it does: the build begins, in which these programs do nothing.
        answer = self.run_sh(environment, 'accuracy')
        self.assertNotIn('a build needs', answer.stderr)
        with open(os.path.join(self.folder, 'meson-was-asked'), encoding='utf-8') as file:
            self.assertEqual(file.readline(), 'setup\n')
        self.assertNotIn('without Gloo', answer.stdout)
        self.assertEqual(answer.returncode, run_parts.LEFT, answer.stdout + answer.stderr)
        self.assertIn('images of Fashion-MNIST are not in', answer.stdout)
        # What somebody else has put there is not touched.
        os.remove(os.path.join(environment['TUTTI_PACKAGES'], 'carried'))
        refused = subprocess.run([os.path.join(HERE, 'carry.sh'), environment['TUTTI_PACKAGES']], capture_output=True, text=True,
                                 check=False, env=environment)
        self.assertEqual((refused.returncode, 'not of its making' in refused.stderr), (1, True))
        # What was fetched is there for the next call.
        self.assertNotIn('a build needs', self.run_sh({**environment, 'UNREACHABLE': '1'}, 'accuracy').stderr)

    def test_pip_brings_what_it_has(self):
        environment = self.bare_machine()
        self.pip('import os, sys\nfolder = sys.argv[sys.argv.index("--target") + 1]\nos.makedirs(folder + "/bin")\n'
                 'for name in sys.argv[sys.argv.index(folder) + 1:]:\n'
                 '    open(f"{folder}/bin/{name}", "w").write("#!/bin/sh")\n    os.chmod(f"{folder}/bin/{name}", 0o755)\n')
        answer = self.run_sh(environment)
        self.assertEqual(answer.returncode, 1)
        self.assertIn('nlohmann_json', answer.stderr)
        self.assertNotIn('Meson', answer.stderr)
        self.assertNotIn('Ninja', answer.stderr)

    def test_memory_that_grows_fails_a_soak(self):
        def lines(*resident):
            return [*({'step': i, 'resident_bytes': number} for i, number in enumerate(resident)),
                    {'done': 9, 'loss': 1, 'checkpoints': 2}]
        flat, much = [5 << 20] * 3, 80 << 20
        self.assertTrue(soak.judge(0, lines(1, 2, 1), flat)[0])
        self.assertFalse(soak.judge(0, lines(1, 1 + much, 1), flat)[0])
        self.assertFalse(soak.judge(0, lines(1, 2, 1), [0, 0, much])[0])
        self.assertFalse(soak.judge(0, lines(1, 2, 1), [0, None, 0])[0])
        self.assertFalse(soak.judge(1, lines(1, 2, 1), flat)[0])
        self.assertFalse(soak.judge(0, lines(1, 2, 1)[:-1], flat)[0])
        # What is used before the first tenth counts for nothing.
        self.assertTrue(soak.judge(0, lines(much, 2, 1), [much, 1, 1])[0])

    def test_a_step_through_the_c_api_is_held_to_its_gate(self):
        path = os.path.join(self.folder, 'case.json')
        for us, gated, holds in ((39, (), True), (41, (), False), (41, ('--gate', '50'), True), (-1000, (), False)):
            server = self.file('replica_bench', SERVER.format(python=sys.executable, ms=1, issue=us, mb=0, waits=1))
            os.chmod(server, 0o755)
            command = [sys.executable, os.path.join(HERE, 'trainer_host.py'), '--program', server, '--backend', 'x',
                       '--blocks', '3', *gated, 'toy:64', 'cnn:64']
            self.assertEqual(subprocess.run(command, check=False, capture_output=True).returncode, 0 if holds else 1, us)
            subprocess.run([*command, '--json', path], check=True, capture_output=True)
            judged, says, rows = parts.judge_case('', self.folder)
            self.assertEqual(judged, holds)
            self.assertIn('nothing tells' if us < 0 else f'host {us}.0 us of the thread that takes most, gate', says)
            self.assertEqual(len(rows), 2)
        # What stands beside has no gate.
        self.assertTrue(trainer_host.judge('cnn b64', {'thread': 99, 'cpu': 99, 'wall': 99}, None)['holds'])

    def test_all_gpus_are_held_to_nine_tenths_of_as_many_times_one(self):
        server = self.file('replica_bench', SERVER.replace("'graphs' in line", "'one_device' in line")
                           .format(python=sys.executable, ms=1, issue=0, mb=0, waits=1))
        os.chmod(server, 0o755)
        path = os.path.join(self.folder, 'case.json')
        command = [sys.executable, os.path.join(HERE, 'scaling.py'), '--program', server, '--backend', 'x', '--devices', '2',
                   '--quadruples', '2', 'training:toy:8']
        # On all of them a step takes twice as long as on one: that is not faster than one.
        self.assertEqual(subprocess.run(command, check=False, capture_output=True).returncode, 1)
        subprocess.run([*command, '--json', path], check=True, capture_output=True)
        holds, says, rows = parts.judge_case('', self.folder)
        self.assertFalse(holds)
        self.assertIn('0.500', says)
        self.assertIn('of 2 quadruples', says)
        self.assertEqual(rows[0]['rows_per_second'], 16000)
        self.assertEqual(subprocess.run([*command, '--gate', '0.5'], check=False, capture_output=True).returncode, 0)
        few = {part.name: part.lacks for part in parts.scaling(self.folder, 1)}
        self.assertEqual(few, {'scaling': '2 GPUs are needed, 1 is here', 'scaling processes': '2 GPUs are needed, 1 is here',
                               'trainer host': ''})
        many = {part.name: part.lacks for part in parts.scaling(self.folder, 4)}
        self.assertEqual(many, {'scaling': '', 'scaling processes': parts.NO_ENGINE, 'trainer host': ''})
        self.file(os.path.join(os.path.dirname(self.engine()), 'tutti-gloo.so'))
        self.assertFalse([part.lacks for part in parts.scaling(self.folder, 4) if part.lacks])

    def engine(self):
        path = parts.engine_of(self.folder)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def test_workers_are_asked_the_same_at_the_same_time(self):
        """With a process for each device: none answers before all were asked, and all do the same number of steps."""
        server = self.file('replica_bench', WORKER.format(python=sys.executable, folder=self.folder))
        os.chmod(server, 0o755)
        path = os.path.join(self.folder, 'case.json')
        command = [sys.executable, os.path.join(HERE, 'scaling.py'), '--program', server, '--backend', '/x/tutti-cuda.so',
                   '--devices', '3', '--engine', self.engine(), '--quadruples', '2', '--json', path, 'training:toy:8']
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        holds, says, rows = parts.judge_case('', self.folder)
        # The slowest counts: 1.25 ms against 1 alone.
        self.assertFalse(holds)
        self.assertEqual((rows[0]['ratio'], rows[0]['rows_per_second'], rows[0]['communication']), (0.8, 19200, 0.375))
        self.assertIn('a process each', rows[0]['case'])
        self.assertIn('communication 37.5%', says)
        subprocess.run([*command, '--gate', '0.75'], check=True, capture_output=True, timeout=60)
        self.assertTrue(parts.judge_case('', self.folder)[0])
        # What one of them cannot do is said.
        subprocess.run([*command[:-1], 'training:none:8'], check=True, capture_output=True, timeout=60)
        self.assertEqual(parts.judge_case('', self.folder)[1].partition(': ')[2], 'cannot be done: no such network')


if __name__ == '__main__':
    unittest.main()
