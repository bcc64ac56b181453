# SPDX-License-Identifier: Apache-2.0
"""What the generators of all languages share: the registries' entries, and their names and texts in parts.

An entry (lib/capi/generate_ops_header.py) has inputs, required attributes, optional attributes and outputs. Which of them are
arguments and what a language calls them is the business of its generator.
"""
import functools
import os
import re
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAPI = os.path.join(ROOT, 'lib', 'capi')
sys.path.insert(0, CAPI)
import generate_ops_header as c_helpers  # noqa: E402  the registries are read in one place

# What passes an attribute of this type on: graph_set_<this> or pipeline_set_<this>; strings one by one.
SETTERS = {'i64': 'i64', 'f64': 'f64', 'string': 'string', 'enum': 'string', 'dtype': 'i64', 'bool': 'bool',
           'ints': 'i64s', 'dims': 'i64s', 'doubles': 'f64s', 'strings': 'string'}
PATHS = {'ops': os.path.join(ROOT, 'lib', 'graph', 'ops', 'ops.yaml'), 'layers': os.path.join(ROOT, 'lib', 'nn', 'nn.yaml'),
         'transforms': os.path.join(ROOT, 'lib', 'data', 'transforms.yaml'),
         'sources': os.path.join(ROOT, 'lib', 'data', 'sources.yaml'), 'options': os.path.join(CAPI, 'options.yaml')}


def capitalised(name):
    """LikeThis."""
    return ''.join(part[:1].upper() + part[1:] for part in name.split('_'))


def camel(name):
    """likeThis."""
    text = capitalised(name)
    return text[:1].lower() + text[1:]


def method_name(entry):
    """The entry's name as a method of its object: shuffle, text_lines, layer_dense."""
    return entry.name.removeprefix('pipeline_').removeprefix('source_') if entry.target == 'pipeline' else entry.name


def options_stem(entry):
    """What the options of an entry are called after: its method, and its object too where a pipeline has such a method."""
    name = method_name(entry)
    return f'graph_{name}' if entry.target == 'graph' and name in pipeline_methods() else name


@functools.cache
def pipeline_methods():
    lists = (c_helpers.transform_entries(PATHS['transforms']), c_helpers.source_entries(PATHS['sources']))
    return {method_name(entry) for entries_of in lists for entry in entries_of}


def lines_of(text, width):
    """The text in lines of at most so many characters."""
    lines, line = [], ''
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = ''
        line += (' ' if line else '') + word
    return lines + [line]


def sentence(text):
    """The text with a full stop, and a capital unless it begins with a name."""
    text = ' '.join(text.split()).rstrip('.')
    if re.match(r'[a-z]+ ', text):
        text = text[:1].upper() + text[1:]
    return text + '.' if text else ''


def shown(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def documentation(attribute):
    """What an attribute means, and its default."""
    text = sentence(attribute.documentation())
    default = attribute.spec.get('default')
    if attribute.type not in ('value', 'bool') and default is not None and default != []:
        text += f' Default: {shown(default)}.'
    return text


def entries():
    """The entries of "ops", "layers", "sources" and "transforms"."""
    return {'ops': list(c_helpers.op_entries(PATHS['ops'])), 'layers': list(c_helpers.nn_entries(PATHS['layers'])),
            'sources': list(c_helpers.source_entries(PATHS['sources'])),
            'transforms': list(c_helpers.transform_entries(PATHS['transforms']))}


def option_schemas():
    """Schema to its keys, each with key, type, default, doc and maybe values and minimum."""
    with open(PATHS['options'], encoding='utf-8') as file:
        return yaml.safe_load(file)


def option_choices(schemas):
    """Key to values of each option that takes one of a list; an option of that name is the same in all schemas."""
    return {key['key']: key['values'] for keys in schemas.values() for key in keys if 'values' in key}
