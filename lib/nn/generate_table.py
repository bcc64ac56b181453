#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of lib/nn/registry.h from nn.yaml. usage: generate_table.py NN_YAML OUTPUT"""
import json
import sys

import yaml

TYPES = {'bool': 'boolean', 'enum': 'enumeration'}
# Those of inputs, as in lib/graph/ops/ops.yaml.
CLASSES = {'any': 'any', 'float': 'floating', 'number': 'number', 'integer': 'integer', 'index': 'index', 'boolean': 'boolean'}
EMPTY = {'ints': 'std::vector<int64_t>', 'doubles': 'std::vector<double>'}


def text(value):
    return json.dumps(value, ensure_ascii=False)


def default(attribute):
    kind, value = attribute['type'], attribute.get('default')
    if 'default' not in attribute:
        return 'Attribute()'
    if kind in EMPTY:
        return f'Attribute({EMPTY[kind]}{{{", ".join(map(str, value))}}})'
    if kind == 'bool':
        return f'Attribute({str(value).lower()})'
    if kind == 'i64':
        return f'Attribute(int64_t{{{value}}})'
    return f'Attribute({float(value)!r})' if kind == 'f64' else f'Attribute(std::string({text(value)}))'


def attribute_code(attribute):
    kind = TYPES.get(attribute['type'], attribute['type'])
    fields = [f'.name = {text(attribute["name"])}', f'.type = AttributeType::{kind}',
              f'.required = {str("default" not in attribute).lower()}', f'.default_value = {default(attribute)}']
    fields.append(f'.choices = {{{", ".join(map(text, attribute.get("values", [])))}}}')
    if 'length' in attribute:
        fields.append(f'.length = {attribute["length"]}')
    for bound in ('minimum', 'maximum'):
        exclusive = f'exclusive_{bound}'
        if bound in attribute or exclusive in attribute:
            fields.append(f'.{bound} = {float(attribute.get(bound, attribute.get(exclusive)))!r}')
    fields += [f'.{bound} = true' for bound in ('exclusive_minimum', 'exclusive_maximum') if bound in attribute]
    fields.append(f'.doc = {text(attribute["doc"])}')
    return '{' + ', '.join(fields) + '}'


def input_code(value):
    fields = [f'.name = {text(value["name"])}', f'.dtype_class = graph::DTypeClass::{CLASSES[value.get("dtype", "any")]}']
    if 'match' in value:
        fields.append(f".match = '{value['match']}'")
    fields += [f'.{key} = true' for key in ('optional', 'variadic') if value.get(key)]
    if 'minimum' in value:
        fields.append(f'.minimum_count = {value["minimum"]}')
    return '{' + ', '.join(fields) + ', .doc = {}}'


def entry_code(entry):
    name = entry['name'] if entry['kind'] == 'function' else f'{entry["kind"]}_{entry["name"]}'
    expand = f'expand_{entry["kind"]}_{entry["name"]}'
    listed = entry.get('parameters', []) + entry.get('attributes', [])
    if entry.get('named'):
        listed = [{'name': 'name', 'type': 'string', 'doc': 'what it is reported as'}] + listed
    optional = [{'name': a['name'], 'optional': True} for a in listed if a['type'] == 'value']
    inputs = ', '.join(input_code(i) for i in entry.get('inputs', []) + optional)
    attributes = ',\n      '.join(attribute_code(a) for a in listed if a['type'] != 'value')
    return (f'    {{.name = {text(name)}, .revision = {entry["revision"]}, .doc = {text(entry["doc"])},\n'
            f'     .is_function = {str(entry["kind"] == "function").lower()},\n     .inputs = {{{inputs}}},\n'
            f'     .attributes = {{{attributes}}},\n     .expand = &{expand}}},\n'), expand


def main():
    source, output = sys.argv[1:3]
    entries = [entry_code(e) for e in yaml.safe_load(open(source, encoding='utf-8'))]
    with open(output, 'w', encoding='utf-8') as file:
        file.write('// SPDX-License-Identifier: Apache-2.0\n// Generated from nn.yaml; do not edit.\n'
                   '#include "nn/registry.h"\n\nnamespace tutti::impl::nn {\n\n')
        file.write(''.join(f'graph::ValueId {expand}(Expansion &expansion);\n' for _, expand in entries))
        file.write('\nusing graph::Attribute;\nusing graph::AttributeType;\n\n'
                   'std::span<const Definition> all_definitions() {\n'
                   '  // Made on first use and never destroyed.\n'
                   '  static const auto *const table = new std::vector<Definition>{\n')
        file.write(''.join(code for code, _ in entries))
        file.write('  };\n  return *table;\n}\n\n}  // namespace tutti::impl::nn\n')


if __name__ == '__main__':
    main()
