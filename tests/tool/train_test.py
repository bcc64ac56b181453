#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti train` and `evaluate`: results against plain gradient descent, resuming, signals, what is wrong with
configurations. usage: train_test.py TUTTI HAS_ENGINE"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from training_runs import RunCase, descend, environment, plane_errors

TUTTI, HAS_ENGINE = os.path.abspath(sys.argv[1]), sys.argv[2] == 'true'
RunCase.tutti = TUTTI


def read_weights(checkpoint, scope=''):
    """The kernel and the bias of the only dense layer, out of the file in the safetensors format."""
    import struct
    with open(os.path.join(checkpoint, 'weights.safetensors'), 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    values = {}
    for name, entry in header.items():
        if name != '__metadata__':
            begin, end = entry['data_offsets']
            values[name] = struct.unpack(f'<{(end - begin) // 4}f', data[begin:end])
    return [*values[scope + 'dense/kernel'], *values[scope + 'dense/bias']]


class Training(RunCase):
    def check_line(self, result, batch, epochs):
        expected = descend(self.train_rows, batch, epochs)
        for got, weight in zip(read_weights(self.path(result['checkpoint'])), expected):
            self.assert_close(got, weight)
        squared, absolute = plane_errors(self.test_rows, expected)
        self.assert_close(result['evaluation']['loss'], squared)
        self.assert_close(result['evaluation']['metrics']['mean_absolute_error'], absolute)

    def test_weights_and_losses_are_those_of_gradient_descent(self):
        for batch, devices in ((8, '1'), (8, '2'), (7, '2'), (5, '3'), (48, '1'), (1, '2')):
            config = self.write_linear(batch=batch, folder=f'run-{batch}-{devices}')
            result = self.json('train', config, '--devices', devices)
            self.assertEqual(result['training']['step'], 5 * -(-48 // batch))
            self.assertEqual((result['training']['examples'], result['evaluation']['examples']), (5 * 48, 13))
            self.check_line(result, batch, 5)
            # A part of a batch at the end is a step as well; metrics of training are those of the last one.
            last = self.train_rows[-(48 % batch or batch):]
            before = descend(self.train_rows * 5, batch, 1) if 48 % batch == 0 else None
            self.assertGreater(result['training']['loss'], 0)
            self.assertTrue(before is None or len(last) == batch)

    def test_a_profile_that_cannot_be_written(self):
        done = self.call('train', self.write_linear(), '--steps', '10', '--quiet', '--set',
                         'profile={steps: 2, trace: nowhere/trace.json}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('profile.trace: ', done.stderr)
        self.assertIn('nowhere/trace.json', done.stderr)

    def test_nothing_is_left_to_do(self):
        config = self.write_linear()
        first = self.json('train', config, '--steps', '30')
        again = self.json('train', config, '--steps', '30')
        self.assertEqual(again['training'], {'step': 30, 'loss': None, 'metrics': {}, 'examples': 0})
        self.assertEqual(again['evaluation']['loss'], first['evaluation']['loss'])
        self.assertIn('at step 30', self.out('train', config, '--steps', '30', '--quiet'))
        with open(config, encoding='utf-8') as file:
            text = re.sub(r'(?m)^  evaluate:.*\n', '', file.read())
        plain = self.write('plain.yaml', text.replace('model_dir: run', 'model_dir: plain'))
        for _ in range(2):
            self.out('train', plain, '--steps', '30', '--quiet')
            with open(self.path('plain/result.json'), encoding='utf-8') as file:
                result = json.load(file)
            self.assertEqual((result['evaluation'], result['training']['step']), (None, 30))

    def test_two_replicas_are_one(self):
        config = self.write_linear()
        one = self.json('train', config, '--devices', '1', '--set', 'run.model_dir=one')
        two = self.json('train', config, '--devices', 'cpu:0,cpu:1' if self.has_two_processors() else '2', '--set',
                        'run.model_dir=two')
        self.assert_close(two['evaluation']['loss'], one['evaluation']['loss'], 1e-6)
        self.assert_close(two['training']['loss'], one['training']['loss'], 1e-6)

    def has_two_processors(self):
        return any(device['name'] == 'cpu:1' for backend in self.json('devices')['backends']
                   for device in backend['devices'])

    @unittest.skipUnless(HAS_ENGINE, 'no engine between processes was built')
    def test_processes_train_one_model(self):
        config = self.write_linear()
        alone = self.json('train', config, '--set', 'run.model_dir=alone')
        together = self.json('train', config, '--set', 'run.model_dir=together', '--set', 'context.logical_devices=1',
                             before=(TUTTI, 'run', '-n', '2'))
        self.assert_close(together['evaluation']['loss'], alone['evaluation']['loss'])
        # A secret of the job is not kept.
        self.json('train', config, '--set', 'run.model_dir=secret', '--set', 'strategy={multi_worker: {job_secret: swordfish}}',
                  '--set', 'context.logical_devices=1', before=(TUTTI, 'run', '-n', '2'))
        with open(self.path('secret/config.yaml'), encoding='utf-8') as file:
            text = file.read()
        self.assertIn('multi_worker', text)
        self.assertNotIn('swordfish', text)

    def test_options_alone(self):
        self.write_linear()
        out = self.out('train', '--data', 'csv:train.csv', '--set', 'data.train.settings.columns={a: f32, y: f32}', '--label',
                       'y', '--set', 'data.train.shuffle=0', '--batch', '48', '--model',
                       '[{reshape: [batch, 1]}, {dense: {units: 1, kernel_initializer: zeros}}, {reshape: [batch]}]', '--loss',
                       'mean_squared_error', '--optimizer', 'sgd', '--learning-rate', '0.1', '--set', 'run.epochs=3', '--model-dir',
                       'alone')
        rows = [(a, 0.0, y) for a, _, y in self.train_rows]
        expected = descend(rows, 48, 3)
        for got, weight in zip(read_weights(self.path('alone/checkpoint-3')), (expected[0], expected[2])):
            self.assert_close(got, weight)
        self.assertIn('epochs at step 3; the run is in alone', out)
        self.assertRegex(out, r'(?m)^examples +144$')

    def test_json_is_yaml(self):
        self.write_linear()
        text = {'data': {'train': {'source': 'csv:train.csv', 'settings': {'columns': {'a': 'f32', 'b': 'f32', 'y': 'f32'}},
                                   'label': 'y', 'batch': 8, 'shuffle': 0}, 'evaluate': {'source': 'test.csv'}},
                'model': [{'stack': {'inputs': ['a', 'b'], 'axis': 1}}, {'dense': {'units': 1, 'kernel_initializer': 'zeros'}},
                          {'reshape': {'dims': ['batch']}}],
                'loss': 'mean_squared_error', 'metrics': ['mean_absolute_error'], 'optimizer': {'sgd': {'learning_rate': 0.1}},
                'run': {'epochs': 5}}
        self.check_line(self.json('train', self.write('line.json', json.dumps(text))), 8, 5)
        # The folder has the name of the configuration unless it says another.
        self.assertTrue(os.path.isfile(self.path('runs/line/config.yaml')))

    def test_a_schedule_as_learning_rate(self):
        config = self.write_linear(batch=48)
        steps = []
        rates = (0.1, 0.1, 0.05, 0.05, 0.05)
        self.json('train', config, '--learning-rate', '{step: {value: 0.1, step_size: 2, gamma: 0.5}}', '--set', 'run.epochs=4')
        weights = [0.0, 0.0, 0.0]
        for rate in rates[:4]:
            rows = [(a, b, y - (weights[0] * a + weights[1] * b + weights[2])) for a, b, y in self.train_rows]
            steps = descend(rows, 48, 1, rate)
            weights = [w + s for w, s in zip(weights, steps)]
        for got, weight in zip(read_weights(self.path('run/checkpoint-4')), weights):
            self.assert_close(got, weight)

    def test_the_length_of_a_schedule_is_that_of_the_run(self):
        config = self.write_linear(batch=48)
        weights = []
        for steps in ('max_steps', '4'):
            result = self.json('train', config, '--learning-rate', f'{{polynomial: {{value: 0.1, steps: {steps}}}}}', '--steps', '4',
                               '--set', f'run.model_dir={steps}')
            weights.append(read_weights(self.path(result['checkpoint'])))
        self.assertEqual(*weights)

    def test_an_evaluation_of_some_batches(self):
        result = self.json('train', self.write_linear(), '--set', 'evaluation.steps=2', '--set', 'data.evaluate.batch=3')
        self.assertEqual(result['evaluation']['examples'], 6)
        expected = descend(self.train_rows, 8, 5)
        self.assert_close(result['evaluation']['loss'], plane_errors(self.test_rows[:6], expected)[0])

    def test_results_with_names(self):
        """Two outputs of an item, and results that others than the next item take."""
        config = self.write_linear()
        model = '[{stack: {inputs: [a, b], axis: 1}, as: both}, {split: {parts: 2, axis: 1}, as: [first, second]},' \
                ' {sub: {a: both, b: both}, as: nothing}, {concat: {inputs: [first, second], axis: 1}}, {add: nothing},' \
                ' {dense: {units: 1, kernel_initializer: zeros}}, {reshape: [batch]}]'
        self.check_line(self.json('train', config, '--model', model), 8, 5)

    def test_frozen_variables_stay(self):
        result = self.json('train', self.write_linear(), '--set', 'frozen=dense/bias')
        weights = read_weights(self.path(result['checkpoint']))
        self.assertEqual(weights[2], 0)
        self.assertNotEqual(weights[0], 0)

    def test_a_part_is_split_off(self):
        config = self.write_linear(rows=50)
        result = self.json('train', config, '--set', 'data.evaluate={fraction: 0.25}')
        self.assertEqual(result['evaluation']['examples'], 12)
        expected = descend(self.train_rows[:38], 8, 5)
        for got, weight in zip(read_weights(self.path(result['checkpoint'])), expected):
            self.assert_close(got, weight)
        self.assert_close(result['evaluation']['loss'], plane_errors(self.train_rows[38:], expected)[0])
        self.assert_close(self.json('evaluate', 'run')['loss'], result['evaluation']['loss'], 1e-6)


class Columns(RunCase):
    """CSV files whose columns have types by patterns, and all features together."""
    def write_wide(self):
        self.write_linear()
        with open(self.path('wide.yaml'), 'w', encoding='utf-8') as file:
            file.write("data: {train: {source: train.csv, types: {y: f32, '[ab]': f32}, label: y, batch: 8, shuffle: 0},"
                       " evaluate: {source: test.csv}}\n"
                       "model: [{stack: {inputs: '*', axis: 1}}, {dense: {units: 1, kernel_initializer: zeros}}, {reshape: [batch]}]\n"
                       'loss: mean_squared_error\noptimizer: {sgd: {learning_rate: 0.1}}\nrun: {model_dir: run, epochs: 5}\n')
        return self.path('wide.yaml')

    def test_types_by_patterns(self):
        result = self.json('train', self.write_wide())
        expected = descend(self.train_rows, 8, 5)
        for got, weight in zip(read_weights(self.path(result['checkpoint'])), expected):
            self.assert_close(got, weight)
        self.assert_close(result['evaluation']['loss'], plane_errors(self.test_rows, expected)[0])

    def test_types_are_found_in_the_file(self):
        config = self.write_wide()
        first = self.json('train', config)
        with open(config, encoding='utf-8') as file:
            text = file.read().replace("types: {y: f32, '[ab]': f32}, ", '').replace('model_dir: run,', 'model_dir: found,')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(text)
        result = self.json('train', config)
        for got, weight in zip(read_weights(self.path(result['checkpoint'])), read_weights(self.path(first['checkpoint']))):
            self.assert_close(got, weight)
        with open(self.path('found/config.yaml'), encoding='utf-8') as file:
            found = file.read()
        for column in 'aby':
            self.assertEqual(found.count(f'{column}: f32'), 2, found)  # of both files
        with open(self.path('classes.csv'), 'w', encoding='utf-8') as file:
            file.write('name,size,class\n' + ''.join(f'n{i},{i},{i % 2}\n' for i in range(1500)) + 'late,many,1\n')
        with open(self.path('classes.yaml'), 'w', encoding='utf-8') as file:
            file.write('data: {train: {source: classes.csv, label: class, batch: 8, shuffle: 0}}\n'
                       'model: [{reshape: {x: size, dims: [batch, 1]}}, {dense: 2}]\nloss: sparse_softmax_cross_entropy\n'
                       'optimizer: {sgd: {learning_rate: 0.001}}\nrun: {model_dir: classes, max_steps: 5}\n')
        self.out('train', self.path('classes.yaml'))
        with open(self.path('classes/config.yaml'), encoding='utf-8') as file:
            text = file.read()
        for words in ('name: bytes', 'size: f32', 'class: i64'):
            self.assertIn(words, text)
        done = self.call('train', self.path('classes.yaml'), '--set', 'run={model_dir: late, epochs: 1}')
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("'many'", done.stderr)
        with open(self.path('classes.csv'), 'a', encoding='utf-8') as file:
            file.write('early,1\n')
        with open(self.path('classes.csv'), encoding='utf-8') as file:
            lines = file.readlines()
        with open(self.path('classes.csv'), 'w', encoding='utf-8') as file:
            file.writelines(lines[:1] + lines[-1:] + lines[1:-1])  # the first row lacks a column
        done = self.call('train', self.path('classes.yaml'), '--set', 'run={model_dir: damaged, epochs: 1}')
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn('bytes', done.stderr)
        self.assertIn("classes.csv':2: expected 3 fields, got 2", done.stderr)

    def write_saved(self, model):
        """A configuration whose model is made of what the run of write_wide() saved."""
        with open(self.write_wide(), encoding='utf-8') as file:
            text = re.sub('model: .*', f'model: {model}', file.read()).replace('run: {model_dir: run, epochs: 5}',
                                                                              'run: {model_dir: on, epochs: 3}')
        with open(self.path('on.yaml'), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path('on.yaml')

    def test_a_saved_model_is_trained_on(self):
        self.json('train', self.write_wide())
        expected = descend(self.train_rows, 8, 8)
        for model in ('{saved_model: run}', '[{saved_model: {path: run, output: predictions}}]'):
            shutil.rmtree(self.path('on'), ignore_errors=True)
            result = self.json('train', self.write_saved(model))
            for got, weight in zip(read_weights(self.path(result['checkpoint']), 'model/'), expected):
                self.assert_close(got, weight)
            self.assert_close(result['evaluation']['loss'], plane_errors(self.test_rows, expected)[0])
            self.assert_close(self.json('evaluate', 'on')['loss'], result['evaluation']['loss'], 1e-6)

    def test_what_a_saved_model_cannot_be(self):
        result = self.json('train', self.write_wide())
        # Older checkpoints are not taken in silence.
        shutil.copytree(self.path('run'), self.path('damaged'))
        os.truncate(self.path(os.path.join('damaged', os.path.basename(result['checkpoint']), 'weights.safetensors')), 9)
        for model, place, words in (
                ('{saved_model: {path: run, output: y}}', 'model[0].saved_model', "has no output 'y'; it has predictions"),
                ('{saved_model: {path: run, ouput: y}}', 'model[0].saved_model', "unknown key 'ouput', did you mean 'output'?"),
                ('[{saved_model: {output: y}}]', 'model[0].saved_model', "'path' is missing"),
                ("[{stack: {inputs: '*', axis: 1}}, {saved_model: run}]", 'model[1].saved_model',
                 'it has several features, a, b: name the one that the value stands for'),
                ('{saved_model: nowhere}', 'model[0].saved_model', "nowhere'"),
                ('{saved_model: ""}', 'model[0].saved_model', "expected a checkpoint, or a directory of them, got ''"),
                ('{saved_model: {path: run, feature: a}}', 'model[0].saved_model.feature', 'and there is none'),
                ('{saved_model: damaged}', 'model[0].saved_model', 'weights.safetensors')):
            done = self.call('train', self.write_saved(model))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn('on.yaml:2:', done.stderr)
            self.assertIn(place, done.stderr)
            self.assertIn(words, done.stderr)

    def test_features_without_their_label(self):
        for more in ([], ['--set', 'data.train.map=a = mul(a, 1.0)']):
            self.json('train', self.write_wide(), '--set', f'run.model_dir=run{len(more)}', *more)
            with open(self.path('new.csv'), 'w', encoding='utf-8') as file:
                file.write('b,a\n' + ''.join(f'{b!r},{a!r}\n' for a, b, _ in self.test_rows))
            self.out('predict', f'run{len(more)}', 'new.csv', 'out.csv')
            with open(self.path('out.csv'), encoding='utf-8') as file:
                got = [float(line) for line in file.read().split()[1:]]
            weights = descend(self.train_rows, 8, 5)
            for value, (a, b, _) in zip(got, self.test_rows):
                self.assert_close(value, weights[0] * a + weights[1] * b + weights[2])

    def test_mistakes(self):
        config = self.write_wide()
        for words, needle in ((['data.train.types=f23'], 'data.train.types: expected a type such as f32 or i64'),
                              (['data.train.types={z: f32, "*": f32}'], "there is no column 'z'; known: a, b, y"),
                              (['data.train.settings.columns={a: f32}'], 'settings.columns says the types'),
                              (['data.train.format=npy'], 'this source is npy')):
            self.assertIn(needle, self.refused('train', config, '--set', *words))


class Folder(RunCase):
    def test_the_run_keeps_what_it_was(self):
        config = self.write_linear()
        result = self.json('train', config, '--set', 'run.seed=7', '--set', 'profile.steps=5', '--batch', '4')
        for name in ('config.yaml', 'metrics.jsonl', 'profile.json', 'result.json', 'checkpoint-60'):
            self.assertTrue(os.path.exists(self.path('run/' + name)), name)
        with open(self.path('run/result.json'), encoding='utf-8') as file:
            self.assertEqual(json.load(file)['evaluation'], result['evaluation'])
        with open(self.path('run/profile.json'), encoding='utf-8') as file:
            # The step behind the one after which it begins may be under way by then.
            self.assertIn(json.load(file)['steps'], (4, 5))
        with open(self.path('run/config.yaml'), encoding='utf-8') as file:
            text = file.read()
        for line in ('    batch: 4\n', '  seed: 7\n', '  keep_checkpoint_max: 5\n', 'strategy:\n', 'use_bias: true'):
            self.assertIn(line, text)
        # Trained from that file, it is the same model.
        again = self.json('train', 'run/config.yaml', '--set', 'run.model_dir=again')
        self.assertEqual(again['evaluation']['loss'], result['evaluation']['loss'])
        with open(self.path('again/config.yaml'), encoding='utf-8') as file:
            self.assertEqual(file.read().replace('model_dir: again', 'model_dir: run'), text)

    def test_training_goes_on_where_it_ended(self):
        config = self.write_linear()
        whole = self.json('train', config, '--set', 'run.model_dir=whole')
        self.json('train', config, '--steps', '11')
        done = self.call('train', 'run', '--steps', '30', '--json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('resuming from run/checkpoint-11\n', done.stderr)
        self.assert_close(json.loads(done.stdout)['evaluation']['loss'], whole['evaluation']['loss'], 1e-6)
        self.assertEqual(json.loads(done.stdout)['resumed_from'], 'run/checkpoint-11')
        self.assertEqual(json.loads(done.stdout)['training']['examples'], 48 * 5 - 11 * 8)

    def test_weights_to_begin_with(self):
        config = self.write_linear()
        self.json('train', config)
        result = self.json('train', config, '--set', 'weights=run/checkpoint-30', '--set', 'run.model_dir=new', '--steps', '1',
                           '--set', 'optimizer.sgd.learning_rate=0')
        self.assertEqual(read_weights(self.path(result['checkpoint'])), read_weights(self.path('run/checkpoint-30')))

    def test_nothing_is_kept_of_a_run_without_folder(self):
        config = self.write_linear()
        before = sorted(os.listdir(self.folder))
        self.json('train', config, '--set', 'run.model_dir=')
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_evaluate(self):
        config = self.write_linear()
        trained = self.json('train', config)
        for words in (['run'], [config, '--model-dir', 'run'][:1], ['run', '--batch', '3', '--devices', '2']):
            self.assert_close(self.json('evaluate', *words)['loss'], trained['evaluation']['loss'])
        expected = descend(self.train_rows, 8, 5)
        loss = self.json('evaluate', 'run', '--data', 'train.csv')['loss']
        self.assert_close(loss, plane_errors(self.train_rows, expected)[0])
        first = self.json('evaluate', 'run', '--steps', '1', '--batch', '4')
        self.assertEqual(first['examples'], 4)
        self.assert_close(first['loss'], plane_errors(self.test_rows[:4], expected)[0])
        self.assertRegex(self.out('evaluate', 'run'), r'(?m)^examples +13$')
        # The run stays as it is.
        files = sorted(os.listdir(self.path('run/eval')))
        self.json('evaluate', 'run')
        self.assertEqual(sorted(os.listdir(self.path('run/eval'))), files)
        self.assertIn('there is no checkpoint here', self.call('evaluate', config, '--set', 'run.model_dir=none').stderr)


class Signals(RunCase):
    def start(self):
        config = self.write_linear()
        self.running = subprocess.Popen([TUTTI, 'train', config, '--set', 'data.train.repeat=0', '--set', 'run.epochs=0', '--json'],
                                        cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.running.kill)
        self.addCleanup(self.running.wait)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path('run/config.yaml')):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_the_first_one_ends_with_a_checkpoint(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.start()
            self.running.send_signal(number)
            out, err = self.running.communicate(timeout=60)
            self.assertEqual(self.running.returncode, 128 + number, err)
            self.assertIn('stopping after this step, with a checkpoint', err)
            result = json.loads(out)
            self.assertEqual(result['reason'], 'stopped')
            self.assertEqual(result['checkpoint'], f"run/checkpoint-{result['training']['step']}")
            # And it goes on from there.
            more = self.call('train', 'run', '--steps', str(result['training']['step'] + 3), '--json')
            self.assertIn('resuming from', more.stderr)
            self.assertEqual(json.loads(more.stdout)['training']['step'], result['training']['step'] + 3)
            self.tearDown()
            import shutil
            shutil.rmtree(self.path('run'))

    def test_the_second_one_ends_at_once(self):
        self.start()
        # While the process stands still both arrive; a standing signal is not counted twice, so they differ.
        self.running.send_signal(signal.SIGSTOP)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.running.send_signal(number)
        self.running.send_signal(signal.SIGCONT)
        _, err = self.running.communicate(timeout=60)
        self.assertIn(self.running.returncode, (130, 143), err)
        self.assertIn('stopped at once', err)


class Mistakes(RunCase):
    def test_they_are_told_with_their_place(self):
        config = self.write_linear()
        with open(config, encoding='utf-8') as file:
            text = file.read()
        for old, new, *needles in (
                ('optimizer:', 'optimiser:', "wrong.yaml:15:1: unknown key 'optimiser', did you mean 'optimizer'?"),
                ('batch: 8', 'bach: 8', "wrong.yaml:6:5: data.train: unknown key 'bach', did you mean 'batch'?"),
                ('batch: 8', 'batch: eight', "wrong.yaml:6:12: data.train.batch: expected an integer, got 'eight'"),
                ('batch: 8', "batch: '8'", "data.train.batch: expected an integer, got the text '8'"),
                ('batch: 8', 'batch: 0', 'data.train.batch: expected a number, at least 1'),
                ('label: y', 'label: z', "wrong.yaml:5:12: data.train.label: there is no component 'z'"),
                ('csv:', 'cvs:', "wrong.yaml:3:13: data.train.source: unknown format 'cvs', did you mean 'csv'?"),
                ('dense: {', 'dnese: {', "wrong.yaml:11:5: model[1]: unknown layer 'dnese', did you mean 'dense'?"),
                ('axis: 1', 'axis: 1}\n    relu: {', "model[0]: one layer stands here, 'stack'; 'relu' is another one"),
                ('[a, b], axis: 1}', '[a, b]}\n    axis: 1', "wrong.yaml:11:5: model[0]: 'axis' is an argument of stack: write stack: {axis: ...}"),
                ('units: 1', 'unit: 1', "wrong.yaml:11:13: model[1].dense: unknown key 'unit', did you mean 'units'?"),
                ('units: 1', 'units: one', "wrong.yaml:11:20: model[1].dense.units: expected an integer, got 'one'"),
                ('units: 1', 'units: 1.5', "model[1].dense.units: expected an integer, got '1.5'"),
                ('units: 1', 'units: -1', 'wrong.yaml:11:5: model[1].dense: ', 'expected at least 1, got -1'),
                ('units: 1', 'units: 1, use_bias: no', "model[1].dense.use_bias: expected true or false, got 'no'"),
                ('units: 1', 'units: 1, activation: rleu', "got 'rleu', did you mean 'relu'?"),
                ('units: 1', 'units: 3', 'wrong.yaml:12:5: model[2].reshape: ', '[batch, 3] cannot become [batch]'),
                ('dense: {units: 1, kernel_initializer: zeros}', 'conv2d: {filters: 2, size: 3}',
                 'wrong.yaml:11:5: model[1].conv2d: ', 'got [batch, 2]'),
                ('dense: {units: 1, kernel_initializer: zeros}', 'dense', "'units' of dense is missing: an integer"),
                ('dense: {units: 1, kernel_initializer: zeros}', 'add: skip', "there is no value 'skip'"),
                ('axis: 1', 'axis: 1}\n    sa: x\n  - relu: {', "model[0]: unknown key 'sa'; known: as"),
                ('axis: 1', 'axis: 1}\n    as: [one, two]\n  - relu: {', "model[0].as: there is no result for the name 'two'"),
                ('run: {', 'run: {steps: 3, ', 'set only one of them'),
                ('inputs: [a, b]', 'inputs: [a, c]', "model[0].stack.inputs[1]: there is no value 'c'; known: a, b, y"),
                ('mean_squared_error', 'mean_sqared_error', "unknown loss 'mean_sqared_error', did you mean 'mean_squared_error'?"),
                ('[mean_absolute_error]', '[acuracy]', "metrics[0]: unknown metric 'acuracy', did you mean 'accuracy'?"),
                ('sgd:', 'sdg:', "optimizer: unknown optimizer 'sdg', did you mean 'sgd'?"),
                ('learning_rate: 0.1', 'learning_rate: {cosin: {value: 1, steps: 9}}', "unknown schedule 'cosin', did you mean 'cosine'?"),
                ('learning_rate: 0.1', 'momentum: 0.9', "'learning_rate' of sgd is missing"),
                ('epochs: 5', 'epoch: 5', "run: unknown key 'epoch', did you mean 'epochs'?"),
                ('epochs: 5', 'epochs: five', "run.epochs: expected an integer, got 'five'"),
                ('epochs: 5', 'epochs: -5', 'run.epochs: '),
                ('epochs: 5', 'determinism: repeatble', 'run.determinism: ', 'repeatable'),
                ('run:', 'strategy: mirored\nrun:', "strategy: unknown key 'mirored', did you mean 'mirrored'?"),
                ('run:', 'strategy: {one_device: {device: "cpu:99"}}\nrun:', "strategy: no device 'cpu:99'"),
                ('run:', 'model: []\nrun:', "wrong.yaml:16:1: the key 'model' is there twice; the first is at "),
                ('[batch]', '[batch, many]', "model[2].reshape.dims[1]: expected an integer or the word batch, got 'many'"),
                ('run:', "frozen: 'dens/*'\nrun:", "parameter group 'dens/*' matches no trained variable"),
                ('run:', 'context: {backend: cpi}\nrun:', "wrong.yaml:16:10: context: there is no backend 'cpi'"),
                ('run: {', 'run: [', 'wrong.yaml:16:', 'is no YAML'),
                ('label: y', "label: y\n    map: ['a = ad(a, b)']", 'wrong.yaml:6:10: data.train.map: there is no op', '  a = ad(a, b)\n      ^'),
                ('evaluate: {source', 'evaluate: {fraction: 0.5, source', 'data.evaluate.source: a fraction of the training data')):
            self.assertIn(old, text)
            wrong = self.write('wrong.yaml', text.replace(old, new, 1))
            message = self.refused('train', wrong)
            for needle in needles:
                self.assertIn(needle, message)
            self.assertFalse(os.path.exists(self.path('run')), message)

    def test_of_the_command_line(self):
        config = self.write_linear()
        for words, needle in (
                (['train'], 'no configuration given'),
                (['train', config, '--set', 'run.sede=1'], "--set run.sede: run: unknown key 'sede', did you mean 'seed'?"),
                (['train', config, '--set', 'run.seed'], '--set takes PATH=VALUE'),
                (['train', config, '--set', 'model[7].dense=1'], 'is no place in the list model, which has 3 items'),
                (['train', config, '--set', 'run.seed="x'], 'is no YAML'),
                (['train', config, '--devices', '0'], '--devices takes a number above 0'),
                (['train', config, '--batch', 'x'], "--batch: data.train.batch: expected an integer, got 'x'"),
                (['train', config, '--model', '{zoo: mpl}'], "unknown model 'mpl', did you mean 'mlp'?"),
                (['train', config, '--model', '{zoo: resnet21, outputs: 2}'], 'a depth of 21 is not 6 n + 2'),
                (['train', config, '--model', '{zoo: mlp, hidden: [4]}'], "'outputs' is missing"),
                (['evaluate'], 'no folder of a run given')):
            self.assertIn(needle, self.refused(*words))
        for words, needle in ((['train', self.path('none.yaml')], 'No such file'), (['train', self.folder], 'no folder of a run'),
                              (['evaluate', self.folder], 'no folder of a run')):
            done = self.call(*words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(needle, done.stderr)


class Damaged(RunCase):
    def test_no_text_ends_the_command_otherwise(self):
        """Configurations of which letters are missing, doubled or others are refused, or are good ones."""
        with open(self.write_linear(), 'rb') as file:
            text = file.read()
        draw = random.Random(1)
        for _ in range(120):
            wrong = bytearray(text)
            for _ in range(draw.randrange(1, 4)):
                at = draw.randrange(len(wrong))
                letter = draw.choice(b'{}[]:,-#&*!|>\'"%@` \n\tab01\x00\xff')
                draw.choice([lambda: wrong.__delitem__(at), lambda: wrong.insert(at, letter), lambda: wrong.__setitem__(at, letter)])()
            with open(self.path('wrong.yaml'), 'wb') as file:
                file.write(wrong[:draw.randrange(len(wrong))] if draw.random() < 0.2 else wrong)
            done = subprocess.run([TUTTI, 'train', 'wrong.yaml', '--quiet', '--steps', '1', '--set', 'run.model_dir='],
                                  cwd=self.folder, env=environment(), capture_output=True, timeout=60, check=False)
            self.assertIn(done.returncode, (0, 1, 2), (bytes(wrong), done.stderr))
            self.assertEqual(done.returncode == 0, not done.stderr, done.stderr)

    def test_deep_and_large_texts(self):
        for text in ('[' * 100000, '{a: ' * 100000, 'a: &a [' + 'x, ' * 10 + ']\nb: &b [*a, *a, *a]\n',
                     '\n'.join(f'k{i}: &k{i} [{", ".join([f"*k{i - 1}"] * 10 if i else ["x"] * 10)}]' for i in range(12))):
            self.refused('train', self.write('deep.yaml', text))


class Help(RunCase):
    def test_its_example_is_a_configuration(self):
        text = self.out('train', '--help')
        example = re.search(r'This is a whole one:\n\n((?:  .*\n)+)', text)[1]
        self.write('example.yaml', re.sub(r'(?m)^  ', '', example))
        rows = ['a,b,y\n'] + [f'{i / 30},{i % 7},{i // 10}\n' for i in range(30)]
        for name in ('train.csv', 'test.csv'):
            self.write(name, ''.join(rows))
        result = self.json('train', 'example.yaml')
        self.assertEqual((result['training']['step'], result['model_dir']), (5, 'runs/first'))
        self.assertLessEqual(0, result['evaluation']['metrics']['accuracy'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
