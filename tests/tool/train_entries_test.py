#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every layer, loss, metric, optimizer and schedule of the registry by its name in a configuration, and the models of the
zoo. usage: train_entries_test.py TUTTI NN_YAML"""
import os
import struct
import sys
import unittest

import yaml
from training_runs import RunCase

TUTTI, REGISTRY = os.path.abspath(sys.argv[1]), sys.argv[2]
RunCase.tutti = TUTTI
with open(REGISTRY, encoding='utf-8') as registry:
    ENTRIES = yaml.safe_load(registry)

# Values of what has to be given, by name: sizes that any small input has.
ARGUMENTS = {'units': 3, 'filters': 4, 'size': 2, 'groups': 2, 'heads': 2, 'hidden': 3, 'rate': 0.25, 'factor': 2, 'count': 9,
             'width': 4, 'quantile': 0.5, 'k': 2, 'value': 0.1, 'decay_rate': 0.9, 'decay_steps': 2, 'steps': 4, 'step_size': 2,
             'gamma': 0.5, 'boundaries': [1], 'values': [0.1, 0.01], 'step_of_switch': 1, 'name': None}
# Inputs that are entries themselves.
RATES = {'rate': 0.1, 'before': 0.1, 'after': {'constant': 0.05}}
# By how many axes a layer's input has beside the batch; dense layers and the like take any.
RANKS = {'1d': [8, 4], '2d': [8, 8, 4], '3d': [4, 4, 4, 4], 'attention': [6, 4], 'positions': [6, 4], 'transformer': [6, 4],
         'rnn': [6, 4], 'lstm': [6, 4], 'gru': [6, 4], 'embedding': [6], 'group_norm': [8, 4], 'instance_norm': [8, 4]}
ROWS = 6


def of_kind(kind):
    return [entry for entry in ENTRIES if entry['kind'] == kind]


def arguments_of(entry, **more):
    """All that the entry cannot do without."""
    values = {}
    for one in entry.get('parameters', []):
        name = one['name']
        if name in ('pads', 'crops'):
            values[name] = [1] * (2 * int(entry['name'][-2]))
        else:
            values[name] = ARGUMENTS[name]
    return {**values, **more}


def shape_for(name):
    return next((shape for part, shape in RANKS.items() if part in name), [4])


def write_npy(path, shape, values, code):
    descr = {'f': '<f4', 'q': '<i8'}[code]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += ' ' * ((64 - (len(header) + 11) % 64) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        file.write(struct.pack(f'<{len(values)}{code}', *values))


class EntryCase(RunCase):
    def write_data(self, shape, labels, code='f', label_shape=(), label_code='q'):
        count = ROWS
        for size in shape:
            count *= size
        write_npy(self.path('x.npy'), [ROWS, *shape], [(i * 7 % 11) / 11 if code == 'f' else i * 7 % 9 for i in range(count)], code)
        write_npy(self.path('y.npy'), [ROWS, *label_shape], labels, label_code)

    def config(self, **sections):
        config = {'data': {'train': {'source': ['npy:x.npy', 'y.npy'], 'label': 'y', 'batch': ROWS, 'shuffle': 0}},
                  'model': ['flatten', {'dense': 3}], 'loss': 'sparse_softmax_cross_entropy',
                  'optimizer': {'sgd': {'learning_rate': 0.01}}, 'run': {'model_dir': '', 'epochs': 1}}
        return self.write('entry.yaml', yaml.safe_dump({**config, **sections}, sort_keys=False))

    def train(self, entry, **sections):
        done = self.call('train', self.config(**sections), '--json', '--quiet')
        self.assertEqual(done.returncode, 0, (entry['name'], done.stderr))
        return done.stdout


class Entries(EntryCase):
    def test_layers(self):
        for entry in of_kind('layer'):
            name = entry['name']
            is_index = 'embedding' in name
            self.write_data(shape_for(name), [0, 1, 2, 0, 1, 2], 'q' if is_index else 'f')
            self.train(entry, model=[{name: arguments_of(entry)}, 'flatten', {'dense': 3}])

    def test_a_layer_with_every_default_written_is_the_same(self):
        """As a run's own config.yaml has it."""
        for entry in of_kind('layer'):
            name = entry['name']
            self.write_data(shape_for(name), [0, 1, 2, 0, 1, 2], 'q' if 'embedding' in name else 'f')
            model = [{name: arguments_of(entry)}, 'flatten', {'dense': 3}]
            defaults = {one['name']: one['default'] for one in entry.get('attributes', []) if 'default' in one}
            written = [{name: {**arguments_of(entry), **defaults}}, 'flatten', {'dense': 3}]
            losses = [yaml.safe_load(self.train(entry, model=some))['training']['loss'] for some in (model, written)]
            self.assertEqual(*losses, name)

    def test_losses(self):
        for entry in of_kind('loss'):
            name, inputs = entry['name'], [one['name'] for one in entry['inputs']]
            arguments, model = arguments_of(entry), ['flatten', {'dense': 3}]
            if 'labels' in inputs:
                self.write_data([4], [0, 1, 2, 0, 1, 2])
            else:
                self.write_data([4], [0.2, 0.3, 0.5] * ROWS, label_shape=(3,), label_code='f')
                model.append('softmax')
            if name == 'ctc':
                self.write_data([8, 4], [1, 2, 1] * ROWS, label_shape=(3,))
                model = [{'dense': 3}]
            if name in ('contrastive', 'triplet'):
                model = [{'dense': 3}, ]
                arguments.update({other: {'tanh': {'x': 'x'}} for other in inputs[1:] if other != 'targets'})
                model = [{'dense': {'units': 4}}]
                self.write_data([4], [0.0, 1.0] * 3, label_code='f')
            self.train(entry, model=model, loss={name: arguments})

    def test_metrics(self):
        for entry in of_kind('metric'):
            name, inputs = entry['name'], [one['name'] for one in entry['inputs']]
            arguments = {**arguments_of(entry), 'name': 'measured'}
            regression = ('squared' in name or 'absolute' in name or 'cosine' in name)
            model, loss = ['flatten', {'dense': 3}, 'softmax'], {'categorical_cross_entropy': {'targets': {'one_hot': {'indices': 'y', 'depth': 3}}}}
            self.write_data([4], [0, 1, 2, 0, 1, 2])
            if regression:
                arguments['targets'] = {'one_hot': {'indices': 'y', 'depth': 3}}
            if name == 'mean':
                arguments['value'] = {'reduce_sum': {'x': 'x', 'axes': [1]}}
            if name in ('binary_accuracy', 'balanced_accuracy', 'matthews_correlation', 'binary_log_loss', 'auc', 'precision', 'recall',
                        'f_beta', 'specificity'):
                model = ['flatten', {'dense': 1}, 'sigmoid', {'reshape': ['batch']}]
                loss = {'binary_cross_entropy': {'targets': {'cast': {'x': 'y', 'dtype': 'f32'}}}}
                self.write_data([4], [0, 1, 1, 0, 1, 0])
                arguments['targets'] = {'cast': {'x': 'y', 'dtype': 'f32'}}
            result = yaml.safe_load(self.train(entry, model=model, loss=loss, metrics=[{name: arguments}]))
            self.assertIn('measured', result['training']['metrics'], inputs)

    def test_optimizers(self):
        self.write_data([4], [0, 1, 2, 0, 1, 2])
        for entry in of_kind('optimizer'):
            self.train(entry, optimizer={entry['name']: {'learning_rate': 0.01}})

    def test_schedules(self):
        self.write_data([4], [0, 1, 2, 0, 1, 2])
        for entry in of_kind('schedule'):
            arguments = arguments_of(entry, **{one['name']: RATES[one['name']] for one in entry.get('inputs', [])})
            self.train(entry, optimizer={'adam': {'learning_rate': {entry['name']: arguments}}})

    def test_parameters(self):
        self.write_data([4], [0, 1, 2, 0, 1, 2])
        parameters = [{'group': {'pattern': '*/bias', 'rate_factor': 2}}, {'constraint': {'pattern': '*/kernel', 'constraint': 'unit_norm'}}]
        self.train({'name': 'parameters'}, model=['flatten', {'dense': 4}, {'dense': 3}], parameters=parameters, gradient_clip_norm=1, frozen=['dense/bias'])


class Zoo(EntryCase):
    def test_models(self):
        self.write_data([12, 12, 1], [0, 1, 2, 0, 1, 2])
        for model in ({'zoo': 'linear'}, {'zoo': 'mlp', 'hidden': [5, 4], 'dropout': 0.1, 'activation': 'tanh'}, {'zoo': 'lenet'},
                      {'zoo': 'cnn', 'filters': [3], 'hidden': []}, {'zoo': 'resnet8', 'filters': 2},
                      {'zoo': 'resnet', 'depth': 14, 'filters': 2}, {'zoo': 'mobilenet', 'width': 0.1, 'stride': 1}):
            self.train({'name': model['zoo']}, model={**model, 'outputs': 3})
        self.write_data([144], [0, 1, 2, 0, 1, 2])
        self.train({'name': 'input'}, model={'zoo': 'cnn', 'filters': [2], 'outputs': 3, 'input': [12, 12, 1]})

    def test_sizes_of_resnet(self):
        """He et al., 2016, table 6: 0.27 million parameters of 20 layers for 32 x 32 x 3 images and 10 classes."""
        self.write_data([32, 32, 3], [0, 1, 2, 0, 1, 2])
        config = self.config(model={'zoo': 'resnet20', 'outputs': 10}, run={'model_dir': 'run', 'max_steps': 1})
        self.out('train', config, '--quiet')
        shown = self.json('inspect', 'checkpoint', 'run')
        count = 0
        for variable in shown['variables']:
            size = 1
            for side in variable['shape']:
                size *= side
            count += size if variable['kind'] == 'weight' and 'running' not in variable['name'] else 0
        # 3 x 3 x 3 x 16 + the blocks' convolutions + two shortcuts + 64 x 10 + 10, and two numbers for each channel.
        blocks = 6 * 9 * 16 * 16 + 9 * 16 * 32 + 5 * 9 * 32 * 32 + 9 * 32 * 64 + 5 * 9 * 64 * 64
        self.assertGreaterEqual(count, 9 * 3 * 16 + blocks + 650)
        self.assertLess(abs(count / 1e6 - 0.27), 0.01)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
