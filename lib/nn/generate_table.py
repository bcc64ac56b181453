#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of lib/nn/registry.h from nn.yaml. usage: generate_table.py NN_YAML OUTPUT"""
import json
import sys

import yaml

# Those of inputs, as in lib/graph/ops/ops.yaml.
CLASSES = {'any': 'any', 'float': 'floating', 'number': 'number', 'integer': 'integer', 'index': 'index', 'boolean': 'boolean'}


def text(value):
    return json.dumps(value, ensure_ascii=False)


def flag(value):
    return str(bool(value)).lower()


def bounds(attribute):
    fields = []
    for bound in ('minimum', 'maximum'):
        exclusive = f'exclusive_{bound}'
        if bound in attribute or exclusive in attribute:
            fields.append(f'.{bound} = {float(attribute.get(bound, attribute.get(exclusive)))!r}')
    fields += [f'.excludes_{bound} = true' for bound in ('minimum', 'maximum') if f'exclusive_{bound}' in attribute]
    if 'length' in attribute:
        fields.append(f'.length = {attribute["length"]}')
    return f', {{{", ".join(fields)}}}' if fields else ''


def attribute_call(attribute):
    name, kind, doc = text(attribute['name']), attribute['type'], text(attribute['doc'])
    if kind == 'enum':
        value = text(attribute['default']) if 'default' in attribute else 'nullptr'
        return f'choice({name}, {text(",".join(attribute["values"]))}, {value}, {doc})'
    if 'default' not in attribute:
        kind = 'boolean' if kind == 'bool' else kind
        return f'required({name}, graph::AttributeType::{kind}, {doc}{bounds(attribute)})'
    value = attribute['default']
    if kind == 'bool':
        return f'boolean({name}, {flag(value)}, {doc})'
    if kind == 'string':
        return f'text({name}, {text(value)}, {doc})'
    if kind == 'i64':
        return f'integer({name}, {value}, {doc}{bounds(attribute)})'
    if kind == 'f64':
        return f'number({name}, {float(value)!r}, {doc}{bounds(attribute)})'
    form = {'ints': 'integers', 'doubles': 'numbers'}[kind]
    return f'{form}({name}, {text(",".join(map(str, value)))}, {doc}{bounds(attribute)})'


def input_call(value):
    arguments = [text(value['name']), f'graph::DTypeClass::{CLASSES[value.get("dtype", "any")]}',
                 f"'{value['match']}'" if 'match' in value else '0', flag(value.get('optional')), flag(value.get('variadic')),
                 str(value.get('minimum', 0))]
    defaults = ['0', 'false', 'false', '0']
    while len(arguments) > 2 and arguments[-1] == defaults[len(arguments) - 3]:
        arguments.pop()
    return f'input({", ".join(arguments)})'


def entry_calls(entry):
    name = entry['name'] if entry['kind'] == 'function' else f'{entry["kind"]}_{entry["name"]}'
    expand = f'expand_{entry["kind"]}_{entry["name"]}'
    listed = entry.get('parameters', []) + entry.get('attributes', [])
    if entry.get('named'):
        listed = [{'name': 'name', 'type': 'string', 'doc': 'what it is reported as'}] + listed
    optional = [{'name': a['name'], 'optional': True} for a in listed if a['type'] == 'value']
    calls = [f'entry({text(name)}, {entry["revision"]}, {text(entry["doc"])}, {flag(entry["kind"] == "function")}, &{expand})']
    calls += [input_call(i) for i in entry.get('inputs', []) + optional]
    calls += [attribute_call(a) for a in listed if a['type'] != 'value']
    return calls, expand


def main():
    source, output = sys.argv[1:3]
    entries = [entry_calls(e) for e in yaml.safe_load(open(source, encoding='utf-8'))]
    with open(output, 'w', encoding='utf-8') as file:
        file.write('// SPDX-License-Identifier: Apache-2.0\n// Generated from nn.yaml; do not edit.\n'
                   '#include "nn/definition_table.h"\n\nnamespace tutti::impl::nn {\n\n')
        file.write(''.join(f'graph::ValueId {expand}(Expansion &expansion);\n' for _, expand in entries))
        file.write('\nstatic std::vector<Definition> make_definitions() {\n  DefinitionTable table;\n')
        file.write(''.join(f'  table.{call};\n' for calls, _ in entries for call in calls))
        file.write('  return table.take();\n}\n\n'
                   'std::span<const Definition> all_definitions() {\n'
                   '  // Made on first use and never destroyed.\n'
                   '  static const auto *const table = new std::vector<Definition>(make_definitions());\n'
                   '  return *table;\n}\n\n}  // namespace tutti::impl::nn\n')


if __name__ == '__main__':
    main()
