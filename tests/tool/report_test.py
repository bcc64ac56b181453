#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tutti report` and `tutti explain`, and the record of a run that they read. usage: report_test.py TUTTI WRITE_RUN
With TUTTI_TEST_LOGS, a folder, screenshots are kept there."""
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TUTTI, WRITE_RUN = map(os.path.abspath, sys.argv[1:3])
HOSTILE = '</script><b>&"half\''
SVG_NAMESPACE = 'http://www.w3.org/2000/svg'


def call(*words, **more):
    return subprocess.run([TUTTI, *words], capture_output=True, text=True, timeout=120, check=False, **more)


def write_run(kind, folder):
    subprocess.run([WRITE_RUN, kind, folder], check=True, timeout=120)
    return folder


def as_f32(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


def places(value, path=()):
    """Paths to what is in a JSON value; of a long array the first element stands for all."""
    keys = value if isinstance(value, dict) else range(min(1, len(value))) if isinstance(value, list) else ()
    for key in keys:
        yield path + (key,)
        yield from places(value[key], path + (key,))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


class Page(html.parser.HTMLParser):
    """Tables as lists of rows, a cell as (text, data-value); elements with their attributes; the data of the script."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.tables, self.text, self.data = [], {}, '', None
        self.caption, self.cell, self.inside = None, None, []
        with open(path, encoding='utf-8') as file:
            self.source = file.read()
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        self.inside.append(tag)
        if tag == 'caption':
            self.caption = ''
        elif tag == 'tr':
            self.tables.setdefault(self.caption, []).append([])
        elif tag in ('td', 'th'):
            self.cell = ['', attributes.get('data-value')]
        elif tag == 'script' and attributes.get('type') == 'application/json':
            self.inside[-1] = 'data'

    def handle_endtag(self, tag):
        if tag in ('td', 'th'):
            self.tables[self.caption][-1].append(tuple(self.cell))
            self.cell = None
        while self.inside and self.inside[-1] != tag and tag in self.inside:
            self.inside.pop()
        if self.inside:
            self.inside.pop()

    def handle_data(self, data):
        inside = self.inside[-1] if self.inside else ''
        if inside == 'data':
            self.data = json.loads(data)
        elif inside not in ('script', 'style'):
            self.text += data
        if inside == 'caption':
            self.caption += data
        if self.cell is not None:
            self.cell[0] += data

    def rows(self, caption):
        """By the text of the first cell: the numbers of the others."""
        return {row[0][0]: [None if cell[1] is None else float(cell[1]) for cell in row[1:]] for row in self.tables[caption][1:]}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def report(self, *folders):
        target = self.path('page.html')
        done = call('report', *folders, '-o', target)
        self.assertEqual((done.returncode, done.stdout), (0, target + '\n'), done.stderr)
        return Page(target)

    def record(self, folder, event):
        with open(os.path.join(folder, 'run.jsonl'), encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if line['event'] == event]

    def write_record(self, **changes):
        """Of a training that nothing limits, but for the changes, at paths as step_report__input."""
        record = {
            'event': 'training', 'time': 1.7e9, 'seconds': 20.5, 'first_step': 0, 'step': 1000, 'reason': 'EPOCHS',
            'examples': 256000, 'loss': 0.5, 'metrics': {'accuracy': 0.75}, 'tensors': {}, 'input_wait_seconds': 0.2,
            'input_report': {'elapsed_ms': 20400.0, 'stages': [{'stage': 'prefetch', 'level': 0, 'is_counted': True, 'threads': 1}],
                             'limit': {'stage': 'consumer', 'reason': 'it waited only 10.0 ms'}, 'text': ''},
            'step_report': {'steps': 998, 'replicas': 2, 'programs': 4, 'step_seconds': 0.02, 'compute': 0.97, 'input': 0.01,
                            'communication': 0.01, 'imbalance': 0.01, 'efficiency': 0.97,
                            'devices': [{'device': 'cuda:0', 'imbalance': 0.02}, {'device': 'cuda:1', 'imbalance': 0.0}]},
            'options': {}, 'settings': {'batch_size': 256}, 'variables': [], 'memory': {},
            'environment': {'version': '0.1.0', 'replicas': 2, 'workers': 1},
            'execution': {'copies_input': False, 'input_batches_copied': 0, 'input_batches_in_time': 0}}
        for path, value in changes.items():
            *keys, last = path.split('__')
            target = record
            for key in keys:
                target = target[key]
            target[last] = value
        with open(self.path('run.jsonl'), 'w', encoding='utf-8') as file:
            file.write(json.dumps(record) + '\n')
        return self.folder

    def limits(self, folder):
        done = call('explain', folder, '--json')
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        for limit in found['limits']:
            self.assertIn(limit['confidence'], ('possible', 'likely', 'sure'))
            self.assertTrue(limit['figures'] and limit['try'] and limit['explanation'])
        return {limit['limit']: limit for limit in found['limits']}


class Record(Case):
    def test_it_has_what_results_say(self):
        folder = write_run('plain', self.path('run'))
        with open(os.path.join(folder, 'expected.json'), encoding='utf-8') as file:
            expected = json.load(file)
        trainings, evaluations = self.record(folder, 'training'), self.record(folder, 'evaluation')
        self.assertEqual([(line['first_step'], line['step']) for line in trainings], [(0, 120), (120, 150)])
        self.assertEqual([line['step'] for line in evaluations], [40, 80, 120, 150])
        want, got = expected['trainings'][0], trainings[1]
        for key in ('step', 'examples', 'loss', 'step_report', 'input_wait_seconds'):
            self.assertEqual(got[key], want[key], key)
        self.assertEqual({name: got['metrics'][name] for name in want['metrics']}, want['metrics'])
        # The walk goes on being counted until it is dropped.
        for report in (got['input_report'], want['input_report']):
            self.assertEqual([stage['stage'] for stage in report['stages']], ['batch', 'repeat', 'slices'])
            self.assertEqual(report['stages'][0]['elements'], 30)
        self.assertEqual(got['input_report']['stages'][0]['busy_ms'], want['input_report']['stages'][0]['busy_ms'])
        for want, got in zip(expected['evaluations'], evaluations[2:]):
            self.assertEqual((got['step'], got['loss']), (want['step'], want['loss']))
            self.assertEqual({name: got['metrics'][name] for name in want['metrics']}, want['metrics'])
        self.assertEqual(evaluations[3]['tensors']['confusion_matrix'], expected['evaluations'][1]['confusion_matrix'])
        self.assertEqual(sum(map(sum, evaluations[3]['tensors']['confusion_matrix'])), 30)

    def test_it_tells_how_it_was_made(self):
        training = self.record(write_run('plain', self.path('run')), 'training')[1]
        self.assertEqual(training['reason'], 'MAX_STEPS')
        self.assertEqual(training['options']['seed'], {'value': 7, 'origin': 'set'})
        self.assertEqual(training['options']['keep_checkpoint_max'], {'value': 5, 'origin': 'default'})
        self.assertNotIn('model_dir', training['options'])
        self.assertEqual((training['settings']['batch_size'], training['settings']['optimizer']), (8, 'adam_update'))
        environment = training['environment']
        self.assertEqual([environment[key] for key in ('strategy', 'replicas', 'workers')], ['mirrored', 2, 1])
        self.assertRegex(environment['version'], r'^\d+\.\d+\.\d+$')
        self.assertEqual([device['device'] for device in environment['devices']], ['cpu:0', 'cpu:1'])
        shapes = {variable['name']: (variable['shape'], variable['parameters']) for variable in training['variables']}
        self.assertEqual(sorted(shapes.values()), [([3], 3), ([4, 8], 32), ([8], 8), ([8, 3], 24)])
        memory = training['memory']
        self.assertGreaterEqual(memory['weights'], 4 * 67)
        self.assertGreaterEqual(memory['slots'], 8 * 67)
        self.assertGreaterEqual(memory['most_resident'], memory['resident'])
        self.assertGreater(memory['resident'], 1e6)

    def test_failures_are_in_it(self):
        trainings = self.record(write_run('failed', self.path('run')), 'training')
        self.assertEqual([(line['reason'], line['step']) for line in trainings], [('CANCELLED', 5), ('ERROR', 5)])
        self.assertIn('99', trainings[1]['error'])
        page = self.report(self.path('run'))
        self.assertIn(trainings[1]['error'], page.text)
        self.assertEqual([row[1][0] for row in page.tables['Each training in this folder'][1:]], ['cancelled', 'error'])


class Report(Case):
    def test_numbers_are_those_of_the_record(self):
        folder = write_run('plain', self.path('run'))
        page = self.report(folder)
        training, evaluation = self.record(folder, 'training')[-1], self.record(folder, 'evaluation')[-1]
        results = page.rows('Results of the newest training and evaluation')
        for key in ('step', 'examples', 'loss'):
            self.assertEqual(results[key], [training[key], evaluation[key]])
        for name in ('accuracy', HOSTILE):
            self.assertEqual(results[name], [training['metrics'][name], evaluation['metrics'][name]])
        self.assertEqual(results['learning_rate'], [training['metrics']['learning_rate'], None])
        matrix = page.rows('confusion_matrix: rows are the true classes, columns the predicted ones')
        self.assertEqual([row[:3] for row in matrix.values()], evaluation['tensors']['confusion_matrix'])
        steps = page.rows('Shares of the time of steps')
        keys = ('compute', 'input', 'communication', 'imbalance')
        self.assertEqual(steps['all, mean'], [training['step_report'][key] for key in keys])
        for device in training['step_report']['devices']:
            self.assertEqual(steps[device['device']][1:], [device[key] for key in keys[1:]])
            self.assertAlmostEqual(steps[device['device']][0], device['utilisation'], 12)
        stages = page.rows('Stages of the input pipeline')
        for stage in training['input_report']['stages']:
            name = next(name for name in stages if name.split()[0] == stage['stage'])
            if stage['is_counted']:
                self.assertEqual(stages[name][:4], [stage[key] for key in ('elements', 'busy_ms', 'wait_in_ms', 'wait_out_ms')])
        memory = page.rows('Bytes of the process, and of the model on the devices')
        self.assertEqual(memory['Weights, each copy'], [training['memory']['weights']])
        variables = page.rows('Variables')
        self.assertEqual(sum(row[2] for row in variables.values()), 67)

    def test_curves_are_those_of_the_hooks(self):
        folder = write_run('plain', self.path('run'))
        with open(os.path.join(folder, 'expected.json'), encoding='utf-8') as file:
            losses = json.load(file)['losses']
        run = self.report(folder).data['runs'][0]
        self.assertEqual(run['name'], 'run')
        # Every fifth step from the first of each training.
        due = [(step, as_f32(loss)) for step, loss in losses if (step - 1) % 5 == 0]
        self.assertEqual([(step, as_f32(value)) for step, value in zip(*run['training']['loss'])], due)
        self.assertEqual(run['training']['learning_rate'][1], [0.01] * len(due))
        evaluations = self.record(folder, 'evaluation')
        for name in ('accuracy', HOSTILE):
            self.assertEqual(run['evaluation'][name][0], [line['step'] for line in evaluations])
            self.assertEqual([as_f32(value) for value in run['evaluation'][name][1]], [as_f32(line['metrics'][name]) for line in evaluations])
        self.assertIn('examples/sec', run['training'])

    def test_layers_are_those_of_the_profile(self):
        folder = write_run('plain', self.path('run'))
        with open(os.path.join(folder, 'profile.json'), encoding='utf-8') as file:
            profile = json.load(file)
        page = self.report(folder)
        layers = page.rows('Time of a step by layer')
        self.assertEqual(list(layers), [layer['layer'] for layer in profile['layers']])
        for layer in profile['layers']:
            self.assertEqual(layers[layer['layer']], [layer[key] for key in ('forward_ms', 'backward_ms', 'update_ms', 'share')])
        for device in profile['devices']:
            self.assertEqual(page.rows('Devices in the profile')[device['device']], [device[key] for key in ('utilisation', 'idle', 'kernels')])

    def test_options_with_their_origin(self):
        folder = write_run('plain', self.path('run'))
        page = self.report(folder)
        options = self.record(folder, 'training')[-1]['options']
        shown = {row[0][0]: (row[1], row[2][0]) for caption in ('Options that were set', 'Options at their defaults')
                 for row in page.tables[caption][1:]}
        self.assertEqual(set(shown), set(options))
        for name, option in options.items():
            (text, value), origin = shown[name]
            self.assertEqual(origin, option['origin'], name)
            if isinstance(option['value'], (int, float)) and not isinstance(option['value'], bool):
                self.assertEqual(float(value), option['value'], name)
            else:
                self.assertEqual(text, option['value'] if isinstance(option['value'], str) else json.dumps(option['value']))
        self.assertIn('seed', [row[0][0] for row in page.tables['Options that were set']])

    def test_nothing_is_loaded_and_nothing_of_a_run_is_markup(self):
        page = self.report(write_run('plain', self.path('a "run" <i>')))
        self.assertNotIn('b', [tag for tag, _ in page.elements])
        self.assertEqual([tag for tag, _ in page.elements].count('script'), 2)
        for tag, attributes in page.elements:
            self.assertNotIn(tag, ('link', 'img', 'iframe', 'object', 'embed', 'base'))
            self.assertNotIn('src', attributes)
            self.assertFalse([name for name in attributes if name.startswith('on')])
            if 'href' in attributes:
                self.assertTrue(attributes['href'].startswith('#'))
        policy = [attributes['content'] for _, attributes in page.elements if attributes.get('http-equiv') == 'Content-Security-Policy']
        self.assertEqual(policy, ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"])
        left = page.source.replace(SVG_NAMESPACE, '')
        self.assertNotRegex(left, r'https?:|@import|url\(|fetch\(|XMLHttpRequest|import\(|WebSocket|sendBeacon')
        anchors = {attributes['id'] for _, attributes in page.elements if 'id' in attributes}
        for _, attributes in page.elements:
            if 'href' in attributes:
                self.assertIn(attributes['href'][1:], anchors)
        self.assertEqual(page.data['runs'][0]['name'], 'a "run" <i>')

    def test_a_million_steps_stay_small(self):
        folder = write_run('many', self.path('run'))
        page = self.report(folder)
        self.assertLess(len(page.source.encode()), 1e6)
        curves = page.data['runs'][0]['training']
        self.assertEqual(len(curves), 8)
        for steps, values in curves.values():
            self.assertLessEqual(len(steps), 1000)
            self.assertGreater(len(steps), 400)
            self.assertEqual((steps[0], steps[-1]), (0, 1000000))
            self.assertEqual(steps, sorted(set(steps)))
            self.assertEqual(values[steps.index(654320)], 77.5)
        self.assertIn('there is no run.jsonl', page.text)

    def test_several_runs_are_compared(self):
        folders = [write_run('plain', self.path(name, 'run')) for name in ('first', 'second')]
        path = os.path.join(folders[1], 'run.jsonl')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text.replace('"seed":{"value":7', '"seed":{"value":8'))
        page = self.report(*folders)
        self.assertEqual([run['name'] for run in page.data['runs']], ['first/run', 'second/run'])
        rows = page.rows('Results of the newest training and evaluation')
        self.assertEqual(rows['loss'], [self.record(folder, event)[-1]['loss'] for folder in folders for event in ('training', 'evaluation')])
        self.assertIn(('first/run: Value', None), page.tables['Options that were set'][0])
        seeds = page.rows('Options that were set')['seed']
        self.assertEqual((seeds[0], seeds[2]), (7, 8))
        differing = re.findall(r'<tr class="differs"><td>([^<]*)', page.source)
        self.assertEqual(differing, ['seed'])

    def test_what_is_damaged_is_told_and_left_out(self):
        folder = write_run('plain', self.path('run'))
        with open(os.path.join(folder, 'run.jsonl'), 'a', encoding='utf-8') as file:
            file.write('{"event": "evalua')
        events = next(name for name in sorted(os.listdir(folder)) if 'tfevents' in name)
        os.truncate(os.path.join(folder, events), os.path.getsize(os.path.join(folder, events)) - 7)
        with open(os.path.join(folder, 'profile.json'), 'w', encoding='utf-8') as file:
            file.write('[]')
        page = self.report(folder)
        for needle in ('line 7 of run.jsonl is left out', events, 'profile.json is left out'):
            self.assertIn(needle, page.text)
        self.assertEqual(page.data['runs'][0]['training']['loss'][0][-1], 141)

    def test_any_json_makes_a_page(self):
        folder = write_run('plain', self.path('run'))
        line, evaluation = self.record(folder, 'training')[-1], self.record(folder, 'evaluation')[-1]
        folders, values = [], (None, 'x', -1e308, True, [[[]]], {'a': {'b': 1}})
        for base in (line, evaluation):
            for number, path in enumerate(places(base)):
                for value in (values[number % 6], values[(number * 5 + 2) % 6]):  # two of them for each
                    folders.append(self.path('mutated', str(len(folders))))
                    os.makedirs(folders[-1])
                    with open(os.path.join(folders[-1], 'run.jsonl'), 'w', encoding='utf-8') as file:
                        for whole in (line, evaluation):
                            file.write(json.dumps(changed(whole, path, value) if whole is base else whole) + '\n')
        self.assertGreater(len(folders), 200)
        for begin in range(0, len(folders), 100):
            page = self.report(*folders[begin:begin + 100])
            self.assertEqual(len(page.data['runs']), len(folders[begin:begin + 100]))
            if shutil.which('tidy'):
                done = subprocess.run(['tidy', '-e', '-q', '-utf8', '--drop-empty-elements', 'no', self.path('page.html')],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_of_thousands_of_trainings_the_newest_count(self):
        folder = write_run('plain', self.path('run'))
        line, evaluation = self.record(folder, 'training')[-1], self.record(folder, 'evaluation')[-1]
        with open(os.path.join(folder, 'run.jsonl'), 'w', encoding='utf-8') as file:
            for i in range(2000):
                former = {**line, 'first_step': i, 'step': i + 1, 'options': {'seed': {'value': i, 'origin': 'set'}}}
                file.write(json.dumps(former) + '\n' + json.dumps({**evaluation, 'step': i}) + '\n')
            file.write(json.dumps({**line, 'first_step': 2000, 'step': 2000, 'options': {}, 'reason': 'ERROR', 'error': 'x'}) + '\n')
            file.write(json.dumps({**evaluation, 'step': 2000, 'tensors': {}}) + '\n')
        page = self.report(folder)
        self.assertEqual(page.rows('Options that were set')['seed'][0], 1999)
        self.assertEqual(len(page.tables['Each training in this folder']), 1 + 50)
        self.assertIn('1,951 earlier trainings', page.text)
        self.assertIn('Evaluation of step 1,999', page.text)
        self.assertEqual(page.rows('Results of the newest training and evaluation')['step'], [2000, 2000])
        self.assertLess(len(page.source), 2e5)

    def test_a_resumed_run_has_each_step_once(self):
        folder = write_run('plain', self.path('run'))
        write_run('plain', folder)  # from its first step again
        steps = self.report(folder).data['runs'][0]['training']['loss'][0]
        self.assertEqual(steps, list(range(1, 150, 5)))

    def test_the_page_is_in_the_folder_unless_told(self):
        folder = write_run('plain', self.path('run'))
        done = call('report', folder)
        self.assertEqual((done.returncode, done.stdout), (0, os.path.join(folder, 'report.html') + '\n'))
        self.assertLess(os.path.getsize(os.path.join(folder, 'report.html')), 1e6)

    def test_what_is_missing_is_named(self):
        write_run('plain', self.path('runs', 'a'))
        os.mkdir(self.path('empty'))
        for command in ('report', 'explain'):
            for folder, needles in (('none', ["there is no folder '" + self.path('none')]),
                                    ('empty', ['run.jsonl', 'events.out.tfevents', 'save_summary_steps', 'summary_dir']),
                                    ('runs', [self.path('runs', 'a')])):
                done = call(command, self.path(folder))
                self.assertEqual((done.returncode, done.stdout), (1, ''))
                for needle in needles:
                    self.assertIn(needle, done.stderr)
        for words in (['report'], ['explain'], ['explain', 'a', 'b']):
            self.assertEqual(call(*words).returncode, 2)
        self.assertEqual(os.listdir(self.path('empty')), [])
        os.remove(self.path('runs', 'a', 'run.jsonl'))
        done = call('explain', self.path('runs', 'a'))
        self.assertEqual(done.returncode, 1)
        self.assertIn('has no training in a run.jsonl', done.stderr)

    @unittest.skipUnless(shutil.which('tidy'), 'the validator of HTML, tidy, is not installed')
    def test_pages_are_valid(self):
        folder = write_run('plain', self.path('a&b'))
        failed = write_run('failed', self.path('failed'))
        for folders in ([folder], [folder, failed]):
            self.report(*folders)
            done = subprocess.run(['tidy', '-e', '-q', '-utf8', '--drop-empty-elements', 'no', self.path('page.html')], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ''))


class Explain(Case):
    def test_a_slow_map_limits_by_the_input(self):
        folder = write_run('slow_map', self.path('run'))
        limit = self.limits(folder)['input']
        self.assertEqual((limit['confidence'], limit['figures']['stage']), ('sure', 'map_callback'))
        training = self.record(folder, 'training')[-1]
        self.assertEqual(limit['share'], training['step_report']['input'])
        self.assertGreater(limit['share'], 0.5)
        advice = ' '.join(limit['try'])
        for needle in ('parallelism', 'vectorise', 'prefetch', 'cache'):
            self.assertIn(needle, advice)
        self.assertIn(training['input_report']['limit']['reason'], limit['explanation'])
        said = call('explain', folder).stdout
        self.assertIn('Steps wait for their input. (sure)', said)
        self.assertIn('Stage map_callback limits the pipeline', self.report(folder).text)

    def test_many_shapes_build_many_programs(self):
        folder = write_run('shapes', self.path('run'))
        limit = self.limits(folder)['programs']
        self.assertGreaterEqual(limit['figures']['programs'], 30)
        self.assertEqual(limit['confidence'], 'sure')
        self.assertIn('padded_batch', ' '.join(limit['try']))
        self.assertIn('Many programs were built.', self.report(folder).text)

    def test_programs_of_earlier_trainings_count_with_their_steps(self):
        self.write_record(first_step=990, step_report__programs=60)
        self.assertIn('programs', self.limits(self.folder))
        with open(self.path('run.jsonl'), encoding='utf-8') as file:
            newest = json.loads(file.read())
        earlier = {**newest, 'first_step': 0, 'step': 5000}
        with open(self.path('run.jsonl'), 'w', encoding='utf-8') as file:
            file.write(json.dumps(earlier) + '\n' + json.dumps({**newest, 'first_step': 5000, 'step': 5010}) + '\n')
        self.assertNotIn('programs', self.limits(self.folder))

    def test_few_rows_of_a_small_model(self):
        folder = write_run('plain', self.path('run'))
        if self.record(folder, 'training')[-1]['step_report']['step_seconds'] >= 1e-3:
            self.skipTest('steps are slow here')
        self.assertIn('Each replica has 4 rows of a batch', self.limits(folder)['small_batch']['explanation'])

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, 'two replicas share a core here')
    def test_uneven_rows_leave_a_replica_waiting(self):
        limit = self.limits(write_run('uneven', self.path('run')))['slow_device']
        self.assertEqual(limit['figures']['device'], 'cpu:0')
        self.assertIn('A batch of 3 rows does not divide by 2 replicas', limit['explanation'])
        self.assertIn('multiple of 2', limit['try'][0])

    def test_nothing_limits(self):
        folder = self.write_record()
        self.assertEqual(self.limits(folder), {})
        said = call('explain', folder).stdout
        self.assertIn('Nothing limits it but computing, which took 97 % of the time of steps', said)
        self.assertIn('The 2 replicas train at 97 % of 2 times the speed of one that never waits.', said)
        self.assertIn('1,000 steps of 256 rows on 2 replicas in 20.5 s', said)

    def test_a_slow_source(self):
        stages = [{'stage': 'batch', 'level': 0, 'is_counted': True, 'threads': 0}, {'stage': 'tfrecord', 'level': 1, 'is_counted': True, 'threads': 0}]
        folder = self.write_record(step_report__input=0.3, input_report__stages=stages, input_wait_seconds=6.0,
                                   input_report__limit={'stage': 'tfrecord', 'reason': 'its own work took 9 s of 10 s'})
        limit = self.limits(folder)['input']
        self.assertEqual(limit['confidence'], 'likely')
        self.assertIn('tfrecord', limit['explanation'])
        self.assertIn('interleave', ' '.join(limit['try']))
        self.assertNotIn('vectorise', ' '.join(limit['try']))

    def test_waits_that_the_pipeline_does_not_explain(self):
        limit = self.limits(self.write_record(step_report__input=0.4))['input']
        self.assertEqual(limit['confidence'], 'possible')
        self.assertIn('device_prefetch', ' '.join(limit['try']))

    def test_slow_copies_to_devices(self):
        execution = {'copies_input': True, 'input_batches_copied': 2000, 'input_batches_in_time': 100, 'input_bytes_copied': 8e9}
        limits = self.limits(self.write_record(step_report__input=0.4, execution=execution))
        self.assertEqual(list(limits), ['transfer'])
        self.assertIn('1,900 of 2,000 copies to the devices, 4.0 MB each', limits['transfer']['explanation'])
        self.assertEqual(limits['transfer']['confidence'], 'sure')

    def test_communication(self):
        for share, confidence in ((0.1, None), (0.2, 'likely'), (0.5, 'sure')):
            found = self.limits(self.write_record(step_report__communication=share)).get('communication')
            self.assertEqual(found and found['confidence'], confidence)
        self.assertIn('took 50 % of the time of steps of 2 replicas', found['explanation'])
        found = self.limits(self.write_record(step_report__communication=0.5, environment__workers=2))
        self.assertIn('on 2 workers', found['communication']['explanation'])

    def test_one_slow_device(self):
        limit = self.limits(self.write_record(step_report__imbalance=0.25))['slow_device']
        self.assertEqual((limit['figures']['device'], limit['confidence']), ('cuda:1', 'likely'))
        self.assertNotIn('does not divide', limit['explanation'])
        self.assertIn('cuda:1', limit['try'][0])

    def test_the_host(self):
        folder = self.write_record()
        for host, is_limit in ((1.0, False), (12.0, True)):
            replica = {'replica': 'cuda:0', 'steps': 50, 'step_ms': 20.0, 'compute_ms': 20 - host, 'input_ms': 0.0, 'communication_ms': 0.0, 'host_ms': host}
            with open(self.path('profile.json'), 'w', encoding='utf-8') as file:
                json.dump({'seconds': 1.0, 'steps': 50, 'devices': [], 'replicas': [replica], 'layers': [], 'forgotten': 0, 'text': ''}, file)
            found = self.limits(folder)
            self.assertEqual(list(found), ['host'] if is_limit else [])
        self.assertIn('60 % of the time of steps', found['host']['explanation'])

    def test_small_batches(self):
        found = self.limits(self.write_record(settings__batch_size=4, step_report__step_seconds=0.0005))
        self.assertEqual(list(found), ['small_batch'])
        self.assertIn('2 rows of a batch, and a step takes 0.50 ms', found['small_batch']['explanation'])

    def test_a_short_training_tells_less(self):
        found = self.limits(self.write_record(step=6, step_report__steps=5, step_report__communication=0.5))
        self.assertEqual(found['communication']['confidence'], 'likely')
        self.assertIn('That is little to go by.', call('explain', self.folder).stdout)

    def test_the_newest_training_with_steps_counts(self):
        self.write_record(step_report__communication=0.5)
        with open(self.path('run.jsonl'), encoding='utf-8') as file:
            line = json.loads(file.read())
        with open(self.path('run.jsonl'), 'a', encoding='utf-8') as file:
            file.write(json.dumps({**line, 'first_step': 1000, 'step': 1000, 'step_report': {'steps': 0}}) + '\n')
        self.assertEqual(list(self.limits(self.folder)), ['communication'])


def chromium(*words):
    command = ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--virtual-time-budget=4000', *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


PROBE = """<script>
const faults = []; addEventListener("error", (event) => faults.push(event.message));
addEventListener("load", () => {
  const slide = document.getElementById("smoothing"), box = document.getElementById("logarithmic");
  slide.value = "0.9"; slide.dispatchEvent(new Event("input"));
  box.click();
  const svg = document.querySelector(".chart svg"), place = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", {clientX: place.left + place.width / 2, clientY: place.top + 20}));
  parent.postMessage(JSON.stringify({faults, width: document.documentElement.scrollWidth, window: innerWidth,
    charts: document.querySelectorAll(".chart svg").length, tip: document.querySelector(".tip").textContent,
    dark: getComputedStyle(document.body).backgroundColor,
    paths: [...document.querySelectorAll("path.curve")].map((path) => path.getAttribute("d"))}), "*");
});
</script>"""
# A frame may be narrower than any window.
FRAME = """<!DOCTYPE html><title>frame</title><body><iframe src="probe.html" width="WIDTH" height="900" style="border: 0"></iframe>
<script>addEventListener("message", (event) => { document.body.dataset.probe = event.data; });</script>"""


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Browser(Case):
    def probe(self, page, width, *words):
        for name, text in (('probe', page.source.replace('<head>', '<head>' + PROBE, 1)), ('frame', FRAME.replace('WIDTH', str(width)))):
            with open(self.path(name + '.html'), 'w', encoding='utf-8') as file:
                file.write(text)
        done = chromium('--window-size=1400,1000', *words, '--dump-dom', 'file://' + self.path('frame.html'))
        found = re.search(r'data-probe="([^"]*)"', done.stdout)
        self.assertTrue(found, done.stderr[-2000:])
        return json.loads(html.unescape(found[1]))

    def test_the_script_draws_and_the_page_fits(self):
        runs = [write_run('plain', self.path(name)) for name in ('one', 'n' * 120)]
        for folders in (runs[:1], runs):
            page = self.report(*folders)
            tags = {tag for run in page.data['runs'] for kind in ('training', 'evaluation') for tag in run[kind]}
            for width in (1280, 360):
                found = self.probe(page, width)
                self.assertEqual(found['faults'], [])
                self.assertEqual(found['charts'], len(tags))
                self.assertLessEqual(found['width'], width)
                self.assertEqual(found['window'], width)
                self.assertIn('step ', found['tip'])
                for path in found['paths']:
                    self.assertRegex(path, r'^(M[-\d.]+ [-\d.]+(L[-\d.]+ [-\d.]+)*)*$')

    def test_light_and_dark(self):
        page = self.report(write_run('plain', self.path('run')))
        backgrounds = [self.probe(page, 1280, f'--blink-settings=preferredColorScheme={scheme}')['dark'] for scheme in (1, 0)]
        self.assertEqual(backgrounds, ['rgb(246, 247, 249)', 'rgb(14, 17, 22)'])

    def test_screenshots(self):
        self.report(write_run('plain', self.path('run')))
        logs = os.environ.get('TUTTI_TEST_LOGS', self.folder)
        for name, width, scheme in (('light', 1280, 1), ('dark', 1280, 0), ('phone', 390, 1)):
            picture = os.path.join(logs, f'report_{name}.png')
            chromium(f'--window-size={width},4200', f'--blink-settings=preferredColorScheme={scheme}', '--screenshot=' + picture,
                     'file://' + self.path('page.html'))
            self.assertGreater(os.path.getsize(picture), 50000)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
