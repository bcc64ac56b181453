#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary_writer_peer.py PROGRAM [FOLDER]: reads with TensorBoard, tbparse and prometheus_client what summary_writer_test
writes.

PROGRAM is summary_writer_test; it writes into FOLDER, by default a new one that is removed. Without PROGRAM ("-") the files
are there already. Ends with status 77, and says so, where one of the three is missing.
"""
import io
import json
import math
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    import numpy
    from PIL import Image
    from prometheus_client.parser import text_string_to_metric_families
    from tbparse import SummaryReader
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
    from google.protobuf import text_format
    from tensorboard.plugins.hparams import metadata as hparams_metadata
    from tensorboard.plugins.pr_curve import metadata as pr_metadata
    from tensorboard.plugins.pr_curve import summary as pr_summary
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    from tensorboard.util import tensor_util
except ImportError as missing:
    print(f'summary_writer_peer.py: {missing}: nothing is read')
    sys.exit(SKIPPED)

EVERYTHING = {'scalars': 0, 'tensors': 0, 'histograms': 0, 'images': 0, 'audio': 0, 'compressedHistograms': 0}


def check(holds, what):
    if not holds:
        sys.exit(f'summary_writer_peer.py: {what}')


def tensors_of(new, tag, plugin):
    check(new.SummaryMetadata(tag).plugin_data.plugin_name == plugin, f'"{tag}" is not of {plugin}')
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in new.Tensors(tag)]


def check_scalars(new, folder, expected):
    curves = {expected['curve']: [(1, .5), (2, 1), (40, 20)], expected['other_curve']: [(1, -1), (2, -2), (40, -40)],
              expected['strange']: [(3, math.inf)]}
    frame = SummaryReader(folder).scalars
    for tag, points in curves.items():
        got = [(step, float(value)) for step, value in tensors_of(new, tag, 'scalars')]
        check(got == points, f'"{tag}" is {got}, expected {points}')
        rows = frame[frame['tag'] == tag]
        check(list(zip(rows['step'], rows['value'])) == points, f'tbparse: "{tag}" is {rows}')


def pixels(files):
    return numpy.stack([numpy.atleast_3d(numpy.asarray(Image.open(io.BytesIO(file)))) for file in files])


def check_images(new, expected):
    if 'colors' not in new.Tags()['tensors']:
        return  # of a library without libspng
    (step, colors), = tensors_of(new, 'colors', 'images')
    wanted = numpy.uint8(expected['colors']).reshape(4, 2, 3, 3)[:3]
    check(step == 6 and list(colors[:2]) == [b'3', b'2'], f'"colors" is of {colors[:2]}')
    check((pixels(colors[2:]) == wanted).all(), 'the pixels of "colors" differ')
    (step, grays), = tensors_of(new, 'grays', 'images')
    # -1, 0, 1/4 and 1/2 as TensorFlow makes colours of them.
    check(pixels(grays[2:]).flatten().tolist() == [0, 0, 63, 127], f'"grays" is {pixels(grays[2:]).flatten()}')
    (step, clear), = tensors_of(new, 'clear', 'images')
    check(pixels(clear[2:]).flatten().tolist() == [1, 2, 3, 4, 5, 6, 7, 8], '"clear" differs')


def check_histogram(folder, expected):
    event, = event_accumulator.EventAccumulator(folder, EVERYTHING).Reload().Histograms('weights')
    points = numpy.float32(expected['points']).astype(float)
    value = event.histogram_value
    check(event.step == 5 and value.num == 6 and value.min == points.min() and value.max == points.max(), f'{value}')
    check(abs(value.sum - points.sum()) < 1e-9, f'the sum is {value.sum}')


def check_pr_curves(new, expected):
    """As TensorBoard itself makes them of the same examples."""
    for tag, thresholds, weights in (('curve', 201, None), ('weighed', 5, numpy.float32(expected['weights']))):
        (step, got), = tensors_of(new, tag, 'pr_curves')
        made = pr_summary.pb(tag, numpy.array(expected['labels'], bool), numpy.float32(expected['predictions']),
                             num_thresholds=thresholds, weights=weights).value[0]
        wanted = tensor_util.make_ndarray(made.tensor)
        check(step == 9 and got.shape == wanted.shape and numpy.allclose(got, wanted, rtol=1e-6, atol=1e-7),
              f'"{tag}" is {got}, expected {wanted}')
        content = new.SummaryMetadata(tag).plugin_data.content
        check(pr_metadata.parse_plugin_metadata(content).num_thresholds == thresholds, f'"{tag}" has other thresholds')


def check_embeddings(folder, expected):
    with open(os.path.join(folder, 'projector_config.pbtxt'), encoding='utf-8') as file:
        config = text_format.Parse(file.read(), ProjectorConfig())
    check(sorted(one.tensor_name for one in config.embeddings) == ['old', 'words / "drei"'], f'{config}')
    points = numpy.float32(expected['points']).reshape(3, 2)
    for one in config.embeddings:
        table = numpy.loadtxt(os.path.join(folder, one.tensor_path), delimiter='\t').astype(numpy.float32)
        check((table == points).all(), f'the points of {one.tensor_name} are {table}')
        with open(os.path.join(folder, one.metadata_path), encoding='utf-8') as file:
            wanted = 'a\nb\nc\n' if one.tensor_name == 'old' else expected['metadata']
            check(file.read() == wanted, f'the metadata of {one.tensor_name} differ')


def check_hyperparameters(new, folder):
    content = new.SummaryMetadata('_hparams_/session_start_info').plugin_data.content
    start = hparams_metadata.parse_session_start_info_plugin_data(content).hparams
    check(start['rate'].number_value == 0.1 and start['is deep'].bool_value and start['name'].string_value == 'x',
          f'the hyper-parameters are {start}')
    check(len(SummaryReader(folder).hparams) == 3, 'tbparse reads other hyper-parameters')


def check_prometheus(texts):
    """Idle, in the midst of a training, and behind it."""
    for text in texts:
        families = {family.name: family for family in text_string_to_metric_families(text)}
        check(all(family.documentation and family.type in ('gauge', 'counter') for family in families.values()),
              f'a metric is of no type: {text}')
    check('tutti_step' in families and families['tutti_step'].samples[0].value in (10, 20), f'{texts[-1]}')
    sample, = families['tutti_metric'].samples if len(families['tutti_metric'].samples) == 1 else [
        one for one in families['tutti_metric'].samples if one.labels['name'] == 'a "b\\c"\nd']
    check(sample.labels['name'] == 'a "b\\c"\nd' and math.isfinite(sample.value), f'{sample}')
    check(families['tutti_examples'].type == 'counter', f'{families["tutti_examples"]}')
    return len(families)


def check_all(folder):
    with open(os.path.join(folder, 'expected.json'), encoding='utf-8') as file:
        expected = json.load(file)
    run = os.path.join(folder, 'run')
    new = plugin_event_accumulator.EventAccumulator(run, EVERYTHING).Reload()
    check_scalars(new, run, expected)
    check_images(new, expected)
    check_histogram(run, expected)
    check_pr_curves(new, expected)
    (step, text), = tensors_of(new, 'notes', 'text')
    check(step == 8 and text[0].decode() == '| a |\n|---|\n| **b** |', f'"notes" is {text}')
    check_embeddings(run, expected)
    check_hyperparameters(new, run)
    families = check_prometheus(expected['prometheus'])
    print(f'TensorBoard and tbparse read every kind as expected; prometheus_client reads {families} metrics')


def main(program, folder=None):
    with tempfile.TemporaryDirectory() as made:
        folder = folder or made
        if program != '-':
            subprocess.run([program, '--write', folder], check=True)
        check_all(folder)


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
