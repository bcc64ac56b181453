# SPDX-License-Identifier: Apache-2.0
"""What the tests of `tutti train`, `evaluate`, `predict`, `export` and `bench` share: data, and calls of the command."""
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

LAUNCHERS = ('TF_CONFIG', 'MASTER_ADDR', 'RANK', 'WORLD_SIZE', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID')


def environment():
    return {key: value for key, value in os.environ.items() if key not in LAUNCHERS and key != 'TUTTI_LOG'}


def plane(count, seed):
    """Rows (a, b, y) near the plane y = 2 a - b + 0.5, as a file of texts tells them."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b = draw.random(), draw.random()
        rows.append(tuple(float(f'{x:.6f}') for x in (a, b, 2 * a - b + 0.5 + 0.1 * (draw.random() - 0.5))))
    return rows


def write_csv(path, rows, names=('a', 'b', 'y')):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(','.join(names) + '\n')
        file.writelines(','.join(map(repr, row)) + '\n' for row in rows)


LINEAR = '''\
data:
  train:
    source: csv:{train}
    settings: {{columns: {{a: f32, b: f32, y: f32}}}}
    label: y
    batch: {batch}
    shuffle: 0
  evaluate: {{source: {test}}}
model:
  - stack: {{inputs: [a, b], axis: 1}}
  - dense: {{units: 1, kernel_initializer: zeros}}
  - reshape: {{dims: [batch]}}
loss: mean_squared_error
metrics: [mean_absolute_error]
optimizer: {{sgd: {{learning_rate: 0.1}}}}
run: {{model_dir: {folder}, epochs: 5}}
'''


def descend(rows, batch, epochs, rate=0.1):
    """What gradient descent makes of the weights [a, b, 1], in plain numbers."""
    weights = [0.0, 0.0, 0.0]
    for _ in range(epochs):
        for begin in range(0, len(rows), batch):
            some = rows[begin:begin + batch]
            gradient = [0.0, 0.0, 0.0]
            for a, b, y in some:
                error = weights[0] * a + weights[1] * b + weights[2] - y
                for i, x in enumerate((a, b, 1.0)):
                    gradient[i] += 2 * error * x / len(some)
            weights = [w - rate * g for w, g in zip(weights, gradient)]
    return weights


def plane_errors(rows, weights):
    """The mean squared and the mean absolute error."""
    errors = [weights[0] * a + weights[1] * b + weights[2] - y for a, b, y in rows]
    return sum(e * e for e in errors) / len(rows), sum(map(abs, errors)) / len(rows)


class RunCase(unittest.TestCase):
    """Each test has a folder of its own, and the command `self.tutti`."""
    tutti = ''

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def call(self, *words, before=()):
        return subprocess.run([*before, self.tutti, *words], capture_output=True, text=True, timeout=120, check=False,
                              env=environment(), cwd=self.folder)

    def out(self, *words, before=()):
        done = self.call(*words, before=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *words, before=()):
        return json.loads(self.out(*words, '--json', before=before))

    def refused(self, *words):
        done = self.call(*words)
        self.assertEqual(done.returncode, 2, (words, done.stderr))
        self.assertEqual(done.stdout, '')
        return done.stderr

    def write_linear(self, name='linear.yaml', batch=8, rows=48, folder='run'):
        """The configuration of a line, with its data; 13 other rows to evaluate."""
        self.train_rows, self.test_rows = plane(rows, 1), plane(13, 2)
        write_csv(self.path('train.csv'), self.train_rows)
        write_csv(self.path('test.csv'), self.test_rows)
        return self.write(name, LINEAR.format(train=self.path('train.csv'), test=self.path('test.csv'), batch=batch,
                                              folder=folder))

    def assert_close(self, got, expected, tolerance=1e-5):
        self.assertLessEqual(abs(got - expected), tolerance * max(1, abs(expected)), (got, expected))
