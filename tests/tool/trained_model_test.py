#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command does with a trained model: `tutti predict` of a run, `export` and `bench`.
usage: trained_model_test.py TUTTI WRITE_MODEL"""
import csv
import json
import os
import struct
import sys
import unittest
import zipfile
import zlib

from training_runs import RunCase, descend, write_csv

TUTTI, WRITE_MODEL = map(os.path.abspath, sys.argv[1:3])
RunCase.tutti = TUTTI

CODES = {'F32': ('f', '<f4'), 'I64': ('q', '<i8')}


def read_safetensors(path):
    """Name -> (dtype, shape, numbers)."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    arrays = {}
    for name, entry in header.items():
        if name != '__metadata__':
            code = CODES[entry['dtype']][0]
            begin, end = entry['data_offsets']
            arrays[name] = (entry['dtype'], entry['shape'], struct.unpack(f'<{(end - begin) // struct.calcsize(code)}{code}', data[begin:end]))
    return arrays


class Case(RunCase):
    def train(self, *more):
        self.json('train', self.write_linear(), *more)
        return descend(self.train_rows, 8, 5)

    def lines(self, name):
        with open(self.path(name), newline='', encoding='utf-8') as file:
            return list(csv.reader(file))


class Predict(Case):
    def test_examples_without_labels_are_read_as_in_training(self):
        weights = self.train()
        # Columns in another order, one more, and none for the label.
        rows = [(b, 'text', a) for a, b, _ in self.test_rows]
        write_csv(self.path('new.csv'), rows, ('b', 'note', 'a'))
        said = self.out('predict', 'run', 'new.csv', 'out.csv', '--batch', '4')
        self.assertIn('13 predictions of step 30', said)
        header, *values = self.lines('out.csv')
        self.assertEqual(header, ['predictions'])
        self.assertEqual(len(values), 13)
        for (value,), (a, b, _) in zip(values, self.test_rows):
            self.assert_close(float(value), weights[0] * a + weights[1] * b + weights[2])

    def test_maps_of_features_are_those_of_training(self):
        """The features are halved in the configuration, and the label is made by a map that new data could not have."""
        self.train('--set', 'data.train.map=["a = mul(a, 0.5)", "y = add(y, 0.0)"]')
        config = self.path('run/config.yaml')
        self.assertTrue(os.path.isfile(config))
        weights = self.json('evaluate', 'run', '--data', 'test.csv')
        write_csv(self.path('new.csv'), [(a, b) for a, b, _ in self.test_rows], ('a', 'b'))
        self.out('predict', 'run', 'new.csv', 'out.csv')
        got = [float(value) for value, in self.lines('out.csv')[1:]]
        loss = sum((value - y) ** 2 for value, (_, _, y) in zip(got, self.test_rows)) / len(got)
        self.assert_close(loss, weights['loss'])

    def test_lines_of_json(self):
        self.train('--set', 'outputs={sum: {reshape: {x: {dense: {x: {stack: {inputs: [a, b], axis: 1}}, units: 2}}, dims: [batch, 1, 2]}},'
                            ' first: a}')
        self.out('predict', 'run', 'test.csv', 'out.csv')
        self.out('predict', 'run', 'test.csv', 'out.jsonl')
        header, *rows = self.lines('out.csv')
        self.assertEqual(header, ['first', 'sum_0', 'sum_1'])
        with open(self.path('out.jsonl'), encoding='utf-8') as file:
            objects = [json.loads(line) for line in file]
        self.assertEqual([[o['first'], *o['sum'][0]] for o in objects], [[float(cell) for cell in row] for row in rows])

    def test_other_files_are_refused(self):
        self.assertIn('writes .csv or .jsonl', self.refused('predict', 'run', 'test.csv', 'out.txt'))


class Export(Case):
    def test_weights(self):
        expected = self.train()
        self.assertIn('2 variables, 12 B, of run/checkpoint-30', self.out('export', 'run', 'w.safetensors'))
        weights = read_safetensors(self.path('w.safetensors'))
        self.assertEqual({name: value[:2] for name, value in weights.items()}, {'dense/kernel': ('F32', [2, 1]), 'dense/bias': ('F32', [1])})
        for got, weight in zip((*weights['dense/kernel'][2], *weights['dense/bias'][2]), expected):
            self.assert_close(got, weight)
        # A new training takes them.
        again = self.json('train', 'linear.yaml', '--set', 'weights=w.safetensors', '--set', 'run.model_dir=again', '--set',
                          'optimizer.sgd.learning_rate=0', '--steps', '1')
        self.assertEqual(read_safetensors(self.path(again['checkpoint'] + '/weights.safetensors')), weights)

    def test_an_archive_of_numpy(self):
        os.makedirs(self.path('model'))
        import subprocess
        subprocess.run([WRITE_MODEL, self.path('model'), '{}'], check=True, timeout=60)
        for flags, averaged in ((['--raw-weights'], False), ([], True)):
            self.out('export', 'model', 'w.npz', *flags)
            expected = read_safetensors(self.path('model/checkpoint-7/weights.safetensors'))
            if averaged:
                averages = read_safetensors(self.path('model/checkpoint-7/averages.safetensors'))
                expected.update({name.removesuffix('/average'): value for name, value in averages.items()})
                self.assertEqual(len(averages), 4)
            with zipfile.ZipFile(self.path('w.npz')) as archive:
                self.assertIsNone(archive.testzip())
                self.assertEqual(set(archive.namelist()), {name + '.npy' for name in expected})
                for name, (dtype, shape, values) in expected.items():
                    data = archive.read(name + '.npy')
                    self.assertEqual(archive.getinfo(name + '.npy').CRC, zlib.crc32(data))
                    length = struct.unpack('<H', data[8:10])[0]
                    self.assertEqual((data[:8], (10 + length) % 64), (b'\x93NUMPY\x01\x00', 0))
                    header = eval(data[10:10 + length])  # pylint: disable=eval-used
                    self.assertEqual(header, {'descr': CODES[dtype][1], 'fortran_order': False, 'shape': tuple(shape)})
                    self.assertEqual(struct.unpack(f'<{len(values)}{CODES[dtype][0]}', data[10 + length:]), values)

    def test_a_folder_to_predict_from(self):
        self.train()
        self.out('export', 'run', 'model')
        self.assertEqual(os.listdir(self.path('model')), ['checkpoint-30'])
        self.assertFalse(os.path.exists(self.path('model/checkpoint-30/slots.safetensors')))
        # From another place.
        os.rename(self.path('run'), self.path('moved'))
        for model, target in (('model', 'one.csv'), ('moved', 'other.csv')):
            self.out('predict', model, 'test.csv', target, '--set', 'columns=a: f32', '--set', 'columns=b: f32')
        self.assertEqual(self.lines('one.csv'), self.lines('other.csv'))
        self.out('export', 'moved', 'second')
        self.assertEqual(os.listdir(self.path('second')), ['checkpoint-30'])
        os.remove(self.path('test.csv'))
        self.assertIn('test.csv', self.call('export', 'moved', 'third').stderr)
        self.assertFalse(os.path.exists(self.path('third')))

    def test_damage_is_found(self):
        self.train()
        path = self.path('run/checkpoint-30/weights.safetensors')
        with open(path, 'r+b') as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        done = self.call('export', 'run', 'w.npz')
        self.assertEqual(done.returncode, 1)
        self.assertIn('weights.safetensors', done.stderr)
        self.assertFalse(os.path.exists(self.path('w.npz')))


class Bench(Case):
    def check(self, rows, expected, trains=True):
        self.assertEqual([(row['devices'], row['batch']) for row in rows], expected)
        for row in rows:
            for key in ('training', 'prediction') if trains else ('prediction',):
                times = row[key]
                self.assertGreaterEqual(times['runs'], 20)
                self.assertTrue(0 < times['p50_ms'] <= times['p90_ms'] <= times['p99_ms'], times)
                self.assert_close(times['examples_per_second'], 1e3 * row['batch'] / times['mean_ms'], 1e-6)

    def test_of_a_configuration_a_run_and_a_checkpoint(self):
        config = self.write_linear(batch=4)
        before = sorted(os.listdir(self.folder))
        words = ('--batch', '2,6', '--devices', '1,2', '--seconds', '0.05')
        expected = [(1, 2), (1, 6), (2, 2), (2, 6)]
        self.check(self.json('bench', config, *words), expected)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.train()
        files = sorted(os.listdir(self.path('run')))
        self.check(self.json('bench', 'run', *words), expected)
        self.check(self.json('bench', 'run/checkpoint-30', *words), expected, trains=False)
        self.assertEqual(sorted(os.listdir(self.path('run'))), files)
        table = self.out('bench', 'run', *words).splitlines()
        self.assertEqual(len(table), 5)
        self.assertRegex(table[0], r'devices +batch +trained/s +step p50 ms +p90 +p99 +predicted/s +run p50 ms +p90 +p99')

    def test_mistakes(self):
        config = self.write_linear()
        self.assertIn('--batch takes numbers above 0', self.refused('bench', config, '--batch', '1,x'))
        self.assertIn('--devices takes numbers above 0', self.refused('bench', config, '--devices', '0'))
        self.assertIn('--seconds takes a number above 0', self.refused('bench', config, '--seconds', 'long'))
        self.assertIn("unknown loss 'mse'", self.refused('bench', config, '--set', 'loss=mse'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
