#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti predict`. usage: predict_test.py TUTTI CHECKPOINTS HAS_ENGINE WRITE_MODEL"""
import csv
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TUTTI, CHECKPOINTS, HAS_ENGINE, WRITE_MODEL = sys.argv[1], sys.argv[2], sys.argv[3] == 'true', sys.argv[4]
MODEL = os.path.join(CHECKPOINTS, '0.1', 'trained')
LAUNCHERS = ('TF_CONFIG', 'MASTER_ADDR', 'RANK', 'WORLD_SIZE', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID')


def toy_row(row):
    """As the tests in C make it, which the checkpoint was written by."""
    state = (row * 2654435761 + 12345) % 2**32
    values = []
    for _ in range(4):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 8) / 16777216)
    return values


def write_npy(path, rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, 4), }}"
    header += ' ' * ((64 - (len(header) + 11) % 64) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        for row in rows:
            file.write(struct.pack('<4f', *row))


def read_numbers(path):
    with open(path, newline='', encoding='utf-8') as file:
        header, *rows = csv.reader(file)
    return header, [[float(cell) for cell in row] for row in rows]


class Predict(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *words):
        environment = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=environment)

    def predict(self, rows, target, *options, before=()):
        write_npy(self.path('x.npy'), rows)
        done = self.run_command(*before, TUTTI, 'predict', MODEL, self.path('x.npy'), self.path(target), '--devices', '2',
                                *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, *read_numbers(self.path(target))

    def assert_close(self, got, expected, tolerance):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertEqual(len(a), len(b))
            for x, y in zip(a, b):
                self.assertLessEqual(abs(x - y), tolerance * max(1, abs(y)))

    def test_outputs_are_those_of_the_model(self):
        with open(os.path.join(MODEL, 'expected.txt'), encoding='utf-8') as file:
            numbers = [float(line) for line in file][:-1]
        expected = list(zip(numbers[::2], numbers[1::2]))
        said, header, got = self.predict([toy_row(1000 + i) for i in range(len(expected))], 'y.csv', '--batch', '2')
        self.assertEqual(header, ['logits_0', 'logits_1'])
        self.assert_close(got, expected, 1e-4)
        self.assertIn(f'{len(expected)} predictions of step 6', said)

    def test_the_first_rows_or_none(self):
        rows = [toy_row(i) for i in range(9)]
        all_of_them = self.predict(rows, 'all.csv')[2]
        self.assert_close(self.predict(rows, 'first.csv', '--first', '4')[2], all_of_them[:4], 1e-6)
        self.assertEqual(self.predict(rows, 'none.csv', '--first', '0')[1:], (['logits'], []))

    def test_devices_of_several_backends(self):
        rows = [toy_row(i) for i in range(50)]
        header, alone = self.predict(rows, 'alone.csv', '--backend', 'reference')[1:]
        words = (TUTTI, 'predict', MODEL, self.path('x.npy'), self.path('cpu.csv'), '--backend', 'cpu')
        if self.run_command(*words).returncode != 0:
            self.skipTest('no other backend was built')
        for batch in ('1', '7', '50'):
            for before in ((), (TUTTI, 'run', '-n', '2')) if HAS_ENGINE else ((),):
                _, own_header, got = self.predict(rows, 'both.csv', '--backend', 'cpu,reference', '--batch', batch, before=before)
                self.assertEqual(own_header, header)
                self.assert_close(got, alone, 1e-4)

    @unittest.skipUnless(HAS_ENGINE, 'no engine between processes was built')
    def test_processes_write_one_file_in_order(self):
        rows = [toy_row(i) for i in range(50)]
        header, alone = self.predict(rows, 'alone.csv', '--batch', '7')[1:]
        for count in ('2', '3'):
            said, own_header, got = self.predict(rows, f'{count}.csv', '--batch', '7', before=(TUTTI, 'run', '-n', count))
            self.assertEqual(own_header, header)
            self.assert_close(got, alone, 1e-6)
            self.assertEqual(said.count('50 predictions of step 6'), 1)

    def test_columns_have_the_types_of_the_inputs(self):
        self.run_command(WRITE_MODEL, self.path('model'), '{}', 'columns')
        with open(self.path('rows.csv'), 'w', encoding='utf-8') as file:
            file.write('note,a,b\nfirst,0.5,1\nsecond,-2.25,3\n')
        words = (TUTTI, 'predict', self.path('model'), self.path('rows.csv'), self.path('sums.csv'))
        done = self.run_command(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_numbers(self.path('sums.csv')), (['sum'], [[1.5], [0.75]]))
        # Who says what the columns are is believed.
        done = self.run_command(*words, '--set', 'columns=a: f32', '--set', 'columns=b: f32')
        self.assertEqual(done.returncode, 1)
        self.assertIn("input 'b'", done.stderr)

    def test_mistakes(self):
        write_npy(self.path('x.npy'), [toy_row(0)])
        for words, text in ((['a', 'b'], 'needs a model, a source and a target'), ([MODEL, 'x.npy', 'y.json'], 'writes .csv'),
                            ([MODEL, 'x.npy', 'y.csv', '--batch', '0'], 'above 0'),
                            ([MODEL, 'x.npy', 'y.csv', '--fast'], "unknown argument '--fast'")):
            done = self.run_command(TUTTI, 'predict', *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        for words, text in (([self.path('none'), self.path('x.npy')], 'none'),
                            ([MODEL, self.path('x.npy'), '--backend', 'cpi'], "'cpi'"),
                            ([MODEL, self.path('x.npy'), '--select', 'z = x'], "input 'x' is not among the components")):
            done = self.run_command(TUTTI, 'predict', *words[:2], self.path('y.csv'), *words[2:])
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
            self.assertEqual(os.listdir(self.folder), ['x.npy'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
