#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `tutti` command on checkpoints of earlier releases. usage: inspect_plan_test.py TUTTI CHECKPOINTS PLUGINS FAKE_PJRT"""
import glob
import json
import os
import subprocess
import sys
import unittest

TUTTI, CHECKPOINTS, PLUGINS, FAKE = sys.argv[1:5]


def tutti(*arguments):
    return subprocess.run([TUTTI, *arguments], capture_output=True, text=True, timeout=120, check=False)


def checkpoints():
    """Model directories, and a checkpoint in one."""
    directories = sorted(glob.glob(os.path.join(CHECKPOINTS, '*', 'trained')))
    return directories + sorted(glob.glob(os.path.join(directories[0], 'checkpoint-*')))


class InspectPlan(unittest.TestCase):
    def plan(self, path, *arguments):
        done = tutti('inspect', 'plan', path, '--json', *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_kernel_is_listed(self):
        self.assertTrue(checkpoints())
        for path in checkpoints():
            plan = self.plan(path, '--rows', '5')
            self.assertEqual(plan['rows'], 5)
            self.assertGreater(len(plan['kernels']), 0)
            for kernel in plan['kernels']:
                self.assertEqual(list(kernel), ['node', 'op', 'kernel', 'layout', 'bytes'])
                self.assertGreater(kernel['bytes'], 0)

    def test_precision_is_passed_on(self):
        for path in checkpoints():
            for precision in ('bf16_where_faster', 'tf32_where_faster', 'f16_where_faster'):
                plan = self.plan(path, '--precision', precision)
                self.assertEqual([kernel['op'] for kernel in plan['kernels'] if kernel['op'] != 'reorder'],
                                 [kernel['op'] for kernel in self.plan(path)['kernels'] if kernel['op'] != 'reorder'])

    def test_times_come_when_asked_for(self):
        plan = self.plan(checkpoints()[0], '--time', '2')
        self.assertEqual(plan['rows'], 64)
        self.assertAlmostEqual(plan['seconds'], sum(kernel['seconds'] for kernel in plan['kernels']))
        self.assertGreater(plan['seconds'], 0)

    def compile(self, *arguments, **environment):
        return subprocess.run([TUTTI, 'compile', checkpoints()[0], '--pjrt-plugin', FAKE, *arguments], capture_output=True,
                              text=True, timeout=120, check=False,
                              env={**os.environ, 'TUTTI_PLUGIN_PATH': PLUGINS, **environment})

    def test_devices_that_are_not_here_are_compiled_for(self):
        done = self.compile('--for', 'fake:1x2', '--rows', '7')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('7 rows: compiles for fake:1x2 (fake)', done.stdout)
        self.assertEqual(done.stdout.splitlines()[1].split(), ['program', 'code', 'arguments', 'results', 'temporary', 'operations'])
        self.assertIn('2.5 kB', done.stdout)
        plan = json.loads(self.compile('--for', 'fake:1x2', '--json').stdout)
        self.assertEqual([program['node'] for program in plan['programs']], ['segment 0'])

    def test_what_does_not_compile_is_an_error(self):
        done = self.compile('--for', 'fake:1x2', TUTTI_FAKE_PJRT='too_large')
        self.assertEqual(done.returncode, 1)
        self.assertIn('exceeds the memory of the device (15.75G)', done.stderr)
        done = self.compile('--for', 'v9:1x1')
        self.assertIn("does not compile for 'v9:1x1': expected fake:1x2", done.stderr)
        done = self.compile()
        self.assertEqual(done.returncode, 2)
        self.assertIn('no --for given', done.stderr)

    def test_the_table_has_a_line_for_each(self):
        path = checkpoints()[0]
        done = tutti('inspect', 'plan', path, '--time', '1')
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn('64 rows on cpu:0', lines[0])
        self.assertEqual(lines[1].split(), ['node', 'op', 'kernel', 'layout', 'bytes', 'ms'])
        self.assertEqual(len(lines), 3 + len(self.plan(path)['kernels']))
        self.assertTrue(lines[-1].startswith('total'))
        # Numbers end in the same column.
        self.assertEqual({len(line) for line in lines[1:]}, {len(lines[1])})

    def test_wrong_arguments_are_told(self):
        for arguments, text in [((), 'no command given'), (('dance',), "unknown command 'dance'"),
                                (('inspect', 'plan'), 'no checkpoint or model directory'),
                                (('inspect', 'plan', 'x', '--rows'), '--rows takes a value'),
                                (('inspect', 'plan', 'x', '--rows', 'many'), "got 'many'"),
                                (('inspect', 'plan', 'x', 'y'), "unknown argument 'y'"),
                                (('inspect', 'plan', 'x', '--fast'), "unknown argument '--fast'")]:
            done = tutti(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
            self.assertIn('usage:', done.stderr)
            self.assertEqual(done.stdout, '')

    def test_failures_are_told(self):
        done = tutti('inspect', 'plan', '/no/such/place')
        self.assertEqual(done.returncode, 1)
        self.assertIn('/no/such/place', done.stderr)
        done = tutti('inspect', 'plan', checkpoints()[0], '--determinism', 'sometimes')
        self.assertEqual(done.returncode, 1)
        self.assertIn('determinism', done.stderr)
        done = tutti('inspect', 'plan', checkpoints()[0], '--precision', 'f8')
        self.assertEqual(done.returncode, 1)
        self.assertIn('precision', done.stderr)
        done = tutti('inspect', 'plan', checkpoints()[0], '--precision', 'bf16_where_faster', '--determinism', 'invariant')
        self.assertEqual(done.returncode, 1)
        self.assertIn('needs determinism fast', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
