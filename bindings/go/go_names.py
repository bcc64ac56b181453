# SPDX-License-Identifier: Apache-2.0
"""What things of the registries are called in Go, and their documentation in those words.

The registries' texts are written once for all languages and name things as the registries do: max_steps, clip_value,
tutti_batch_get_first_row. Here they become MaxSteps, ClipValue and Batch.FirstRow, where Go has something of that name;
other words stay.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import registries  # noqa: E402
from registries import sentence  # noqa: E402

KEYWORDS = {'break', 'case', 'chan', 'const', 'continue', 'default', 'defer', 'else', 'fallthrough', 'for', 'func', 'go',
            'goto', 'if', 'import', 'interface', 'map', 'package', 'range', 'return', 'select', 'struct', 'switch', 'type',
            'var', 'len', 'cap', 'string'}
# Words that are not written as others are; the rest get a capital.
WORDS = {'adamax': 'AdaMax', 'adamw': 'AdamW', 'amsgrad': 'AMSGrad', 'auc': 'AUC', 'bf16': 'BF16', 'block2d': 'Block2D',
         'conv1d': 'Conv1D', 'conv2d': 'Conv2D', 'conv3d': 'Conv3D', 'cropping1d': 'Cropping1D', 'cropping2d': 'Cropping2D',
         'cropping3d': 'Cropping3D', 'csv': 'CSV', 'ctc': 'CTC', 'dct': 'DCT', 'dtype': 'DType', 'elu': 'ELU',
         'f16': 'F16', 'f32': 'F32', 'ftrl': 'FTRL', 'gelu': 'GELU', 'gpu': 'GPU', 'gpus': 'GPUs', 'gru': 'GRU',
         'id': 'ID', 'idx': 'IDX', 'iou': 'IOU', 'jpeg': 'JPEG', 'json': 'JSON', 'lamb': 'LAMB', 'lars': 'LARS',
         'lstm': 'LSTM', 'nadam': 'NAdam', 'nan': 'NaN', 'nd': 'ND', 'npy': 'NPY', 'npz': 'NPZ', 'padding1d': 'Padding1D',
         'padding2d': 'Padding2D', 'padding3d': 'Padding3D', 'png': 'PNG',
         'pool1d': 'Pool1D', 'pool2d': 'Pool2D', 'pool3d': 'Pool3D', 'prelu': 'PReLU', 'relu': 'ReLU',
         'relu6': 'ReLU6', 'resize2d': 'Resize2D', 'rms': 'RMS', 'rmsprop': 'RMSProp', 'rnn': 'RNN',
         'sampling1d': 'Sampling1D', 'sampling2d': 'Sampling2D', 'sampling3d': 'Sampling3D', 'secs': 'Seconds',
         'selu': 'SELU', 'sgd': 'SGD', 'silu': 'SiLU', 'tf32': 'TF32', 'tfrecord': 'TFRecord'}
# Methods that are called otherwise than their entry.
METHODS = {'options': 'SetOptions'}
# Types of choices that are called otherwise than the attribute, which would say too little.
CHOICES = {'dct': 'DCTMethod', 'direction': 'FlipDirection', 'method': 'Interpolation', 'mode': 'PadMode',
           'normalize': 'ConfusionShares', 'order': 'NormOrder', 'output': 'ImageOutput', 'scale': 'MuonScale',
           'statistics': 'BatchStatistics', 'unit': 'TextUnit'}
DTYPES = {'bool': 'Boolean', 'bytes': 'ByteArray', 'bf16': 'BFloat16', 'f16': 'Float16', 'f32': 'Float32', 'f64': 'Float64',
          'i8': 'Int8', 'i16': 'Int16', 'i32': 'Int32', 'i64': 'Int64', 'u8': 'Uint8', 'u16': 'Uint16', 'u32': 'Uint32',
          'u64': 'Uint64'}
# Objects whose C functions a text may name.
OBJECTS = ('batch', 'context', 'dataset', 'estimator', 'feed', 'graph', 'iterator', 'pipeline', 'predictor', 'session',
           'strategy', 'tensor')
# Other names that the texts have.
OTHERS = {'average_decay': 'AverageDecay', 'train_and_evaluate': 'Estimator.TrainAndEvaluate',
          'tutti_summary_scalar': 'Graph.SummaryScalar', 'tutti_hook_event_get_summary_writer': 'Event.SummaryWriter'}
PHRASES = {'mode TRAIN': 'ModeTrain', 'mode EVAL': 'ModeEval', 'mode PREDICT': 'ModePredict',
           'the reason stopped': 'ReasonStopped', 'the reason max_seconds': 'ReasonMaxSeconds', 'As for run': 'As in RunOptions'}
# Kinds whose entries a text names without the kind: "as for softmax_cross_entropy".
KINDS = ('loss_', 'metric_', 'optimizer_', 'schedule_')


def exported(name):
    """LikeThis, with the words that Go writes otherwise."""
    return ''.join(WORDS.get(part, part[:1].upper() + part[1:]) for part in name.split('_'))


def local(name):
    """likeThis; not a keyword."""
    first, _, rest = name.partition('_')
    text = first + exported(rest)
    return text + 'Value' if text in KEYWORDS else text


def method(entry):
    name = registries.method_name(entry)
    return METHODS.get(name) or exported(name)


def options_type(entry):
    if registries.method_name(entry) == 'options':
        return 'PipelineOptions'
    stem = registries.options_stem(entry)
    return (method(entry) if stem == registries.method_name(entry) else exported(stem)) + 'Options'


def choice_type(attribute):
    return CHOICES.get(attribute.name) or exported(attribute.name)


def choice(kind, value):
    """The constant of a choice."""
    return kind + exported(value)


def option_field(key):
    """The field of an option; times have their unit in their type."""
    return exported(key['key'].removesuffix('_ms'))


def function(name):
    """Object.Method of a C function, such as tutti_batch_get_first_row; None for another name."""
    for owner in OBJECTS:
        rest = name.removeprefix(f'tutti_{owner}_')
        if rest != name:
            return f'{exported(owner)}.{exported(rest.removeprefix("get_"))}'
    return None


def of_registries():
    """What names in texts stand for: ops and transforms, options, and choices of options."""
    names = dict(OTHERS)
    for entries in registries.entries().values():
        for entry in entries:
            for name in {entry.name, entry.registry_name, registries.method_name(entry)}:
                names[name] = names['tutti_' + name] = method(entry)
    schemas = registries.option_schemas()
    for keys in schemas.values():
        names.update((key['key'], option_field(key)) for key in keys)
    for key, values in registries.option_choices(schemas).items():
        names.update((value, choice(exported(key), value)) for value in values)
    return names


class Translator:
    """Puts Go's names into texts. Only what is a name beyond doubt is one: it has an underscore, or is in PHRASES."""

    def __init__(self, names):
        self.names = names

    def of_entry(self, entry):
        """With the names of an entry's attributes; its own variables are called as its short name."""
        names = dict(self.names)
        for kind in (kind for kind in KINDS if entry.name.startswith(kind)):
            names.update((name.removeprefix(kind), value) for name, value in self.names.items() if name.startswith(kind))
        for attribute in entry.attributes:
            name = local(attribute.name) if attribute.required else exported(attribute.field)
            names[attribute.name] = names[attribute.field] = name
            for value in attribute.spec.get('values', []) if attribute.type == 'enum' else []:
                names[value] = choice(choice_type(attribute), value)
        names.update((value['name'], local(value['name'])) for value in entry.inputs if not value.get('optional'))
        names.pop(entry.name.partition('_')[2], None)
        return Translator(names)

    def __call__(self, text):
        for phrase, name in PHRASES.items():
            text = re.sub(rf'\b{phrase}\b', name, text)
        return re.sub(r'(?<![\w.<*])[a-z]\w*_\w+\b(?! \[)', self._name, text)

    def _name(self, match):
        name = match.group()
        return self.names.get(name) or (function(name) if name.startswith('tutti_') else None) or name


def shown_default(attribute):
    """The default in Go's words; empty where the zero value says it or the text does."""
    default, kind = attribute.spec.get('default'), attribute.type
    if kind in ('value', 'bool') or default in (None, [], '', 0):
        return ''
    if kind == 'enum':
        return choice(choice_type(attribute), default)
    if kind == 'dtype':
        return DTYPES.get(default, str(default))
    return f'"{default}"' if kind == 'string' else str(default)


def documentation(attribute, translate):
    """What a field means, and its default."""
    text, default = translate(sentence(attribute.documentation())), shown_default(attribute)
    return text + (f' Default: {default}.' if default else '')


def option_documentation(key, translate):
    text, default = translate(sentence(key['doc'])), key['default']
    if default in (None, '', 0, False):
        return text
    if 'values' in key:
        default = choice(exported(key['key']), default)
    elif key['key'].endswith('_ms'):
        default = f'{default / 60000:g} minutes'
    elif isinstance(default, str):
        default = f'"{default}"'
    return f'{text} Default: {default}.'
