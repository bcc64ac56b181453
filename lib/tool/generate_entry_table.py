# SPDX-License-Identifier: Apache-2.0
#
# Makes the table of registry_entry.h of both registries: generate_entry_table.py OPS_YAML NN_YAML OUTPUT. It has what a
# model is made of: the public ops that models run, without those with regions, then functions, layers, losses, metrics,
# optimizers, schedules and what is said of parameters; each in its newest revision, in the order of kind and name.
import importlib.util
import json
import os
import sys

import yaml

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by lib/tool/generate_entry_table.py from ops.yaml and nn.yaml. Do not edit.
#include "tool/training/registry_entry.h"

namespace tutti::tool {

const std::vector<RegistryEntry> &registry_entries() {
  static const std::vector<RegistryEntry> entries = {
"""
TAIL = """  };
  return entries;
}

}  // namespace tutti::tool
"""
KINDS = ['op', 'function', 'layer', 'loss', 'metric', 'optimizer', 'schedule', 'parameter']


def load_script(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ops_of(path):
    generate = load_script(os.path.join(os.path.dirname(path), 'generate.py'))
    for op in generate.load(path):
        if op['public'] and 'program' in op['forms'] and not op['regions']:
            yield dict(op, kind='op', registered=op['name'])


def parts_of(path):
    with open(path, encoding='utf-8') as file:
        entries = yaml.safe_load(file)
    for entry in entries:
        listed = entry.get('parameters', []) + entry.get('attributes', [])
        values = [dict(one, optional=True) for one in listed if one['type'] == 'value']
        attributes = [one for one in listed if one['type'] != 'value']
        if entry.get('named'):
            attributes.insert(0, {'name': 'name', 'type': 'string'})
        name = entry['name']
        yield dict(entry, registered=name if entry['kind'] == 'function' else f"{entry['kind']}_{name}",
                   inputs=entry.get('inputs', []) + values, attributes=attributes)


def quoted(value):
    return json.dumps(str(value), ensure_ascii=False)


def flag(value):
    return 'true' if value else 'false'


def input_text(one):
    return '{' + ', '.join([quoted(one['name']), quoted(one.get('dtype', 'any')), quoted(one.get('match', '')),
                            flag(one.get('optional')), flag(one.get('variadic'))]) + '}'


def attribute_text(one):
    values = ', '.join(quoted(value) for value in one.get('values', []))
    default = quoted(json.dumps(one['default'])) if 'default' in one else '""'
    return '{' + ', '.join([quoted(one['name']), f"AttributeKind::{one['type']}_", flag('default' not in one),
                            '{' + values + '}', default]) + '}'


def entry_text(entry):
    names = [one['name'] for one in entry['inputs'] + entry['attributes']]
    if len(set(names)) != len(names):
        sys.exit(f"{entry['registered']}: a name stands for two of its inputs and attributes: {names}")
    inputs = ', '.join(input_text(one) for one in entry['inputs'])
    attributes = ',\n        '.join(attribute_text(one) for one in entry['attributes'])
    return (f"      {{{quoted(entry['kind'])}, {quoted(entry['name'])},\n"
            f"       {{{quoted(entry['registered'])}, {entry['revision']},\n        {{{inputs}}},\n        {{{attributes}}}}}}},\n")


def main():
    ops, parts, output = sys.argv[1:4]
    newest = {}
    for entry in [*ops_of(ops), *parts_of(parts)]:
        key = (KINDS.index(entry['kind']), entry['name'])
        if key not in newest or entry['revision'] > newest[key]['revision']:
            newest[key] = entry
    with open(output, 'w', encoding='utf-8') as file:
        file.write(HEAD + ''.join(entry_text(newest[key]) for key in sorted(newest)) + TAIL)


main()
