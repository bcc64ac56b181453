#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary_peer.py PROGRAM [FOLDER]: reads with TensorBoard and tbparse what summary_test writes.

PROGRAM is summary_test; it writes a run into FOLDER, by default a new one that is removed. Without PROGRAM ("-") the run is
there already. Everything that the program expects must be read by TensorBoard's loader (as one run, where a resumed
training takes back steps) and by tbparse, with the same values, steps and times. Ends with status 77, and says so, where
TensorBoard or tbparse is missing.
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
    from tbparse import SummaryReader
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
    from tensorboard.compat.proto import graph_pb2
    from tensorboard.plugins.hparams import metadata as hparams_metadata
    from tensorboard.util import tensor_util
except ImportError as missing:
    print(f'summary_peer.py: {missing}: nothing is read with TensorBoard')
    sys.exit(SKIPPED)

EVERYTHING = {'scalars': 0, 'tensors': 0, 'histograms': 0, 'images': 0, 'audio': 0, 'compressedHistograms': 0}


def check(holds, what):
    if not holds:
        sys.exit(f'summary_peer.py: {what}')


def same(got, expected):
    return got == expected or (math.isnan(got) and math.isnan(expected))


def check_curve(reader, tag, got, expected, times):
    """`got`: (step, value, wall time) of each point."""
    steps = [point[0] for point in got]
    check(steps == [point[0] for point in expected], f'{reader}: "{tag}" has the steps {steps}, expected {expected}')
    for (step, value, time), (_, wanted) in zip(got, expected):
        check(same(value, wanted), f'{reader}: "{tag}" is {value} at step {step}, expected {wanted}')
        check(times[0] - 1e-3 <= time <= times[1] + 1e-3, f'{reader}: "{tag}" has the time {time}, expected {times}')


def check_scalars(folder, expected, times):
    """Three readers, each its own way: old and new event accumulator of TensorBoard, and tbparse."""
    old = event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    new = plugin_event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    frame = SummaryReader(folder, extra_columns={'wall_time', 'dir_name'}).scalars
    for tag, points in expected.items():
        check_curve('TensorBoard', tag, [(e.step, e.value, e.wall_time) for e in old.Scalars(tag)], points, times)
        tensors = [(e.step, float(tensor_util.make_ndarray(e.tensor_proto)), e.wall_time) for e in new.Tensors(tag)]
        check_curve('the scalars plug-in', tag, tensors, points, times)
        check(new.SummaryMetadata(tag).plugin_data.plugin_name == 'scalars', f'"{tag}" is no scalar')
        rows = frame[(frame['tag'] == tag) & (frame['dir_name'] == '')]
        got = sorted((int(r.step), float(r.value), float(r.wall_time)) for r in rows.itertuples())
        check_curve('tbparse', tag, got, points, times)
    return len(expected)


def check_histograms(folder, expected, times):
    """Message by message, and as the plug-in draws them: counts between limits that ascend."""
    old = event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    new = plugin_event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    frame = SummaryReader(folder).histograms
    for tag in {entry[0] for entry in expected}:
        wanted = [entry[1:] for entry in expected if entry[0] == tag]
        got = old.Histograms(tag)
        check([event.step for event in got] == [step for step, _ in wanted], f'"{tag}" has other steps')
        for event, (_, numbers) in zip(got, wanted):
            value = event.histogram_value
            check([value.min, value.max, value.num, value.sum, value.sum_squares] == numbers,
                  f'"{tag}" is {value} at step {event.step}, expected {numbers}')
            check(times[0] - 1e-3 <= event.wall_time <= times[1] + 1e-3, f'"{tag}" has the time {event.wall_time}')
        for event, (_, numbers) in zip(new.Tensors(tag), wanted):
            buckets = tensor_util.make_ndarray(event.tensor_proto)
            check(buckets[:, 2].sum() == numbers[2] and (buckets[:, 0] <= buckets[:, 1]).all(), f'"{tag}": {buckets}')
        rows = frame[frame['tag'] == tag]
        check(sorted(set(rows['step'])) == [step for step, _ in wanted], f'tbparse: "{tag}" has other steps')
    return len(expected)


def near(got, expected):
    return len(got) == len(expected) and all(abs(a - b) <= 1e-9 * max(1, abs(b)) for a, b in zip(got, expected))


def pixels_of(images):
    """Of texts of a tensor: width, height, and files."""
    width, height = int(images[0]), int(images[1])
    pixels = [numpy.atleast_3d(numpy.asarray(Image.open(io.BytesIO(file)))) for file in images[2:]]
    check(all(one.shape[:2] == (height, width) for one in pixels), f'images are not of {width} x {height}')
    return numpy.stack(pixels)


def as_colors(numbers):
    """As TensorFlow makes colours of floating point numbers (tf.image.convert_image_dtype)."""
    return numpy.clip(numpy.asarray(numbers) * 255.5, 0, 255).astype(numpy.uint8)


def check_image(tag, images, dims, numbers):
    wanted = as_colors(numpy.float32(numbers)).reshape(dims)
    got = pixels_of(images)
    check(got.shape == wanted.shape and (got == wanted).all(), f'the images "{tag}" are {got}, expected {wanted}')


def check_shown(folder, expected, times):
    """Summaries of a model: scalars, histograms, images and a text."""
    new = plugin_event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    old = event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    check_scalars(folder, expected['scalars'], times)
    for tag, step, numbers in expected['histograms']:
        value = next(event.histogram_value for event in old.Histograms(tag) if event.step == step)
        check(near([value.min, value.max, value.num, value.sum, value.sum_squares], numbers), f'"{tag}" is {value}')
    frame = SummaryReader(folder).tensors
    for tag, step, dims, numbers in expected['images']:
        check(new.SummaryMetadata(tag).plugin_data.plugin_name == 'images', f'"{tag}" is no image')
        event = next(event for event in new.Tensors(tag) if event.step == step)
        check_image(tag, tensor_util.make_ndarray(event.tensor_proto), dims, numbers)
        rows = frame[(frame['tag'] == tag) & (frame['step'] == step)]
        check(len(rows) == 1, f'tbparse reads {len(rows)} tensors "{tag}" at step {step}')
        check_image(tag, rows['value'].iloc[0], dims, numbers)
    tag, text = expected['text']
    check(new.SummaryMetadata(tag).plugin_data.plugin_name == 'text', f'"{tag}" is no text')
    got = tensor_util.make_ndarray(new.Tensors(tag)[0].tensor_proto)[0].decode()
    check(got == text, f'"{tag}" is {got!r}')
    texts = SummaryReader(folder).text
    check(text in list(texts[texts['tag'] == tag]['value']), f'tbparse reads other texts: {texts}')
    return len(expected['images'])


def check_settings(folder, expected):
    """As text, as hyper-parameters of the run, and the graph."""
    new = plugin_event_accumulator.EventAccumulator(folder, EVERYTHING).Reload()
    text = tensor_util.make_ndarray(new.Tensors('settings')[0].tensor_proto)[0].decode()
    content = new.SummaryMetadata('_hparams_/session_start_info').plugin_data.content
    start = hparams_metadata.parse_session_start_info_plugin_data(content).hparams
    infos = hparams_metadata.parse_experiment_plugin_data(
        new.SummaryMetadata('_hparams_/experiment').plugin_data.content)
    for name, value in expected.items():
        got = getattr(start[name], start[name].WhichOneof('kind'))
        check(got == value and isinstance(value, bool) == isinstance(got, bool), f'"{name}" is {got}, expected {value}')
        check(name in [info.name for info in infos.hparam_infos], f'"{name}" is not listed')
        check(f'| {name} | {json.dumps(value).strip(chr(34))} |' in text, f'"{name}" is not in the text: {text}')
    check('loss' in [info.name.tag for info in infos.metric_infos], 'the loss is no metric of the hyper-parameters')
    frame = SummaryReader(folder).hparams
    check(set(expected) <= set(frame['tag']), f'tbparse reads the hyper-parameters {sorted(frame["tag"])}')
    graph = graph_pb2.GraphDef.FromString(event_accumulator.EventAccumulator(folder).Reload().Graph().SerializeToString())
    names = {node.name for node in graph.node}
    for node in graph.node:
        check('_output_shapes' in node.attr, f'node "{node.name}" has no shapes')
        check(all(entry.split(':')[0] in names for entry in node.input), f'node "{node.name}" has an unknown input')
    return len(graph.node)


def check_run(folder):
    with open(os.path.join(folder, 'expected.json'), encoding='utf-8') as file:
        expected = json.load(file)
    times = (expected['began'], expected['ended'])
    run = os.path.join(folder, 'run')
    curves = check_scalars(run, expected['training'], times)
    curves += check_scalars(os.path.join(run, 'eval'), expected['evaluation'], times)
    curves += check_scalars(run, {'gradient_norm': expected['gradient_norms']}, times)
    histograms = check_histograms(run, expected['histograms'], times)
    nodes = check_settings(run, expected['settings'])
    shown = expected['shown']
    times = (shown['began'], shown['ended'])
    images = check_shown(os.path.join(folder, 'shown'), shown['training'], times)
    images += check_shown(os.path.join(folder, 'shown/eval'), shown['evaluation'], times)
    print(f'TensorBoard and tbparse read {images} images of models as expected')
    print(f'TensorBoard and tbparse read {curves} curves, {histograms} histograms, the settings and a graph of {nodes} '
          'nodes as expected')


def main(program, folder=None):
    with tempfile.TemporaryDirectory() as made:
        folder = folder or made
        if program != '-':
            subprocess.run([program, '--write', folder], check=True)
        check_run(folder)


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
