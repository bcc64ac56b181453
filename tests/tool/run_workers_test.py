#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti run`. usage: run_workers_test.py TUTTI"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TUTTI = sys.argv[1]


def script(text):
    return ['sh', '-c', text]


def tutti_run(count, command, **more):
    environment = dict(os.environ, TF_CONFIG='{}', RANK='9')
    return subprocess.run([TUTTI, 'run', '-n', str(count), *command], capture_output=True, text=True, timeout=60,
                          check=False, env=environment, **more)


class RunWorkers(unittest.TestCase):
    def test_each_worker_knows_who_it_is(self):
        done = tutti_run(3, script('echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT [$TF_CONFIG]"'))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines())
        port = lines[0].split()[3]
        self.assertTrue(1 <= int(port) <= 65535)
        self.assertEqual(lines, [f'{rank}/3 {rank}/3 127.0.0.1 {port} []' for rank in range(3)])

    def test_workers_share_a_secret(self):
        secrets = []
        for _ in range(2):
            lines = tutti_run(3, script('echo "$TUTTI_JOB_SECRET"')).stdout.split()
            self.assertEqual(len(lines), 3)
            self.assertEqual(len(set(lines)), 1)
            self.assertRegex(lines[0], '^[0-9a-f]{64}$')
            secrets.append(lines[0])
        self.assertNotEqual(*secrets)
        own = subprocess.run([TUTTI, 'run', '-n', '2', *script('echo "$TUTTI_JOB_SECRET"')], capture_output=True, text=True,
                             timeout=60, check=True, env=dict(os.environ, TUTTI_JOB_SECRET='ours'))
        self.assertEqual(own.stdout.split(), ['ours', 'ours'])

    def test_arguments_are_the_programs(self):
        done = tutti_run(1, ['echo', '-n', '--help', '2'])
        self.assertEqual((done.returncode, done.stdout), (0, '--help 2'))

    def test_the_first_failure_is_the_exit_status(self):
        done = tutti_run(3, script('[ $RANK != 1 ] || exit 7; sleep 1'))
        self.assertEqual(done.returncode, 7)
        self.assertIn('worker 1 exited with status 7', done.stderr)
        done = tutti_run(2, script('[ $RANK != 1 ] || kill -9 $$'))
        self.assertEqual(done.returncode, 128 + 9)
        self.assertIn('worker 1 was terminated by signal 9', done.stderr)

    def test_who_does_not_end_after_a_failure_is_ended(self):
        begin = time.monotonic()
        done = tutti_run(2, script('[ $RANK != 1 ] || exit 3; exec sleep 50'))
        self.assertEqual(done.returncode, 3)
        self.assertIn('worker 0 was terminated by signal 15', done.stderr)
        self.assertLess(time.monotonic() - begin, 30)

    def test_signals_reach_the_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            wait = script(f"trap 'exit 5' TERM; touch {folder}/$RANK; while :; do sleep 0.05; done")
            with subprocess.Popen([TUTTI, 'run', '-n', '2', *wait], stderr=subprocess.PIPE) as run:
                end = time.monotonic() + 30
                while len(os.listdir(folder)) < 2 and time.monotonic() < end:
                    time.sleep(0.02)
                run.send_signal(signal.SIGTERM)
                run.communicate(timeout=30)
            self.assertEqual(run.returncode, 5)

    def test_wrong_arguments(self):
        for arguments in (['run'], ['run', 'true'], ['run', '-n', '2'], ['run', '-n', '0', 'true'], ['run', '-n', 'x', 'true'],
                          ['run', '--no', 'true']):
            done = subprocess.run([TUTTI, *arguments], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 2, arguments)
        done = tutti_run(2, ['/no/such/program'])
        self.assertEqual(done.returncode, 1)
        self.assertIn("'/no/such/program' cannot be started", done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
