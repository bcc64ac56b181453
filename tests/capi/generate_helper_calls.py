#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes calls of every helper of ops.h and the generic calls each must make.

usage: generate_helper_calls.py OUTPUT OPS_YAML NN_YAML TRANSFORMS_YAML SOURCES_YAML

Every helper is called with NULL, with an all-zero struct, with every field set, and so with NULL in place of every array
that has a count. What the first two must hand on are the inputs and the required attributes; the third every attribute
too; the fourth must hand on the NULL once, which is an error of the generic call. The expectations come from the
registries and from the rules stated in ops.h, not from the generator of ops.h.
"""
import sys

import yaml

LISTS = ('ints', 'dims', 'doubles')


def entries(ops_path, nn_path, transforms_path, sources_path):
    """(target, helper name, registry name, inputs, attributes, outputs, named)"""
    def load(path):
        with open(path, encoding='utf-8') as file:
            return yaml.safe_load(file)

    for group in load(ops_path):
        for op in group['ops']:
            spec = {**group.get('defaults', {}), **op}
            if spec.get('public', True) and not spec.get('regions'):
                yield 'graph', op['name'], op['name'], spec
    for spec in load(nn_path):
        name = spec['name'] if spec['kind'] == 'function' else f'{spec["kind"]}_{spec["name"]}'
        yield 'graph', name, name, {**spec, 'outputs': spec.get('outputs', [{}])}
    for spec in load(transforms_path):
        if set(spec.get('needs', [])) <= {'others'}:
            yield 'pipeline', f'pipeline_{spec["name"]}', spec['name'], spec
    for spec in load(sources_path):
        yield 'pipeline', f'source_{spec["name"]}', spec['name'], spec


def is_required(attribute):
    return 'default' not in attribute and attribute['type'] != 'value'


def has_flag(attribute):
    """A number that may be 0 although its default is not: 0 alone could not be told from "not set"."""
    default = attribute.get('default')
    if attribute['type'] not in ('i64', 'f64') or is_required(attribute) or default == 0:
        return False
    if 'exclusive_minimum' in attribute:
        return attribute['exclusive_minimum'] < 0
    return attribute.get('minimum', -1 if default is not None else 0) <= 0


class Sample:
    """A value to set an attribute to: C expression(s), and what the library must be handed."""

    def __init__(self, helper, attribute):
        self.key, kind = attribute['name'], attribute['type']
        # A truth value that defaults to true is set through a field that says the opposite.
        self.field = attribute['negative'] if kind == 'bool' and attribute.get('default') is True else self.key
        length = attribute.get('length')
        self.setup, self.count, self.recorded_null = '', None, None
        if kind in LISTS:
            element, values = ('double', '0.5, 1.5') if kind == 'doubles' else ('int64_t', '3, 4')
            if length:
                values = ', '.join(str(3 + i) for i in range(length))
            self.setup = f'static const {element} {self.key}_values[] = {{{values}}};'
            self.expression = f'{self.key}_values'
            self.items = values.split(', ')
            self.count = None if length else len(self.items)
            setter = 'f64s' if kind == 'doubles' else 'i64s'
            self.recorded = f'{setter} {self.key} {" ".join(self.items)}'
            self.recorded_null = f'{setter} {self.key} NULL'
        elif kind == 'strings':
            self.setup = f'static const char *const {self.key}_values[] = {{"one", "two"}};'
            self.expression, self.count = f'{self.key}_values', 2
            self.recorded = f'string {self.key} one\\nstring {self.key} two'
            self.recorded_null = f'string {self.key} NULL'
        elif kind in ('bool', 'boolean'):
            self.expression, self.recorded = '1', f'bool {self.key} {0 if attribute.get("default") else 1}'
        elif kind == 'enum':
            value = attribute['values'][-1]
            self.expression = f'TUTTI_{helper}_{self.key}_{value}'.upper()
            self.recorded = f'string {self.key} {value}'
        elif kind == 'string':
            self.expression, self.recorded = '"words"', f'string {self.key} words'
        elif kind == 'f64':
            # A zero that counts, where a flag says so.
            number = '0' if has_flag(attribute) else '0.25'
            self.expression, self.recorded = number, f'f64 {self.key} {number}'
        elif kind == 'value':
            self.expression, self.recorded = '(tutti_value){77}', 'input 77'
        elif kind == 'dataset':
            self.expression, self.recorded = 'dataset', f'dataset {self.key}'
        elif kind == 'dtype':
            self.expression, self.recorded = 'TUTTI_DTYPE_F64', f'i64 {self.key} 2'
        else:
            number = '0' if has_flag(attribute) else '7'
            self.expression, self.recorded = number, f'i64 {self.key} {number}'


def unless_null(expression):
    """An array, but NULL in the form that has NULL for all of them."""
    return f'form == NULL_ARRAYS ? NULL : {expression}'


def normal(attribute):
    return {**attribute, 'type': {'boolean': 'bool'}.get(attribute['type'], attribute['type'])}


def test_code(target, helper, registry_name, spec):
    inputs = spec.get('inputs', [])
    listed = [normal(a) for a in spec.get('parameters', []) + spec.get('attributes', [])]
    if spec.get('like'):
        listed.append({'name': 'like', 'type': 'dataset', 'default': None})
    optional_inputs = [{'name': i['name'], 'type': 'value'} for i in inputs if i.get('optional')]
    required = [a for a in listed if is_required(a)]
    values = optional_inputs + [a for a in listed if a['type'] == 'value']
    settings = [a for a in listed if not is_required(a) and a['type'] != 'value']
    arguments, setup = [target], []
    head = [f'begin {registry_name} {spec.get("revision", 1)}']
    if spec.get('named'):
        arguments.append('"label"')
        head.append('string name label')
    null_head = list(head)
    number = 10
    for one in inputs:
        if one.get('variadic'):
            setup.append('static const tutti_value many[] = {{11}, {12}};')
            arguments += [unless_null('many'), '2']
            head += ['input 11', 'input 12']
            null_head.append(f'i64s {one["name"]} NULL')
        elif not one.get('optional'):
            number += 10
            arguments.append(f'(tutti_value){{{number}}}')
            head.append(f'input {number}')
            null_head.append(f'input {number}')
    if spec.get('several'):
        setup.append('const tutti_dataset *const datasets[] = {dataset, dataset};')
        arguments += [unless_null('datasets'), '2']
        head += ['dataset others', 'dataset others']
        null_head.append('dataset others NULL')
    elif 'others' in spec.get('needs', []):
        arguments.append('dataset')
        head.append('dataset other')
        null_head.append('dataset other')
    for attribute in required:
        sample = Sample(helper, attribute)
        setup.append(sample.setup)
        value = unless_null(sample.expression) if sample.recorded_null else sample.expression
        arguments += [value] + ([str(sample.count)] if sample.count else [])
        head.append(sample.recorded)
        null_head.append(sample.recorded_null or sample.recorded)
    outputs = len(spec.get('outputs', [{}])) if target == 'graph' else 1
    more = ['more'] if outputs > 1 else []
    if spec.get('outputs', [{}])[0].get('count'):  # as many as the parameter says, which is the sample of an integer
        outputs, more = 7, ['more']
    end = f'end {outputs - 1}' if target == 'graph' else 'end'
    bare = head + ['input 0'] * len(values) + [end]
    nulls = null_head + ['input 0'] * len(values)
    lines = [f'static void call_{helper}(int form) {{', '  (void)form;'] + [f'  {s}' for s in setup if s]
    if more:
        lines.append(f'  tutti_value more[{outputs}];')
    if not values + settings:
        lines.append(f'  tutti_{helper}({", ".join(arguments + more)});')
        expected = [bare] * 3 + [nulls + [end]]
    else:
        lines.append(f'  tutti_{helper}_attrs zero, full, nulls;')
        lines += [f'  memset(&{form}, 0, sizeof {form});' for form in ('zero', 'full', 'nulls')]
        full = list(head)
        for attribute in values + settings:
            sample = Sample(helper, attribute)
            full.append(sample.recorded)
            if has_flag(attribute):
                lines.append(f'  full.has_{sample.key} = 1;')
            if attribute['type'] in LISTS and attribute.get('length'):
                lines += [f'  full.{sample.key}[{i}] = {item};' for i, item in enumerate(sample.items)]
                continue
            if sample.setup:
                lines.append('  ' + sample.setup)
            lines.append(f'  full.{sample.field} = {sample.expression};')
            if sample.count:
                lines.append(f'  full.{sample.key}_count = nulls.{sample.key}_count = {sample.count};')
                nulls.append(sample.recorded_null)
        full.append(end)
        attrs = 'form == 0 ? NULL : form == 1 ? &zero : form == NULL_ARRAYS ? &nulls : &full'
        lines.append(f'  tutti_{helper}({", ".join(arguments + [attrs] + more)});')
        expected = [bare, bare, full, nulls + [end]]
    lines.append('}')
    texts = ', '.join('"' + ''.join(line + '\\n' for line in form) + '"' for form in expected)
    return '\n'.join(lines) + '\n', f'    {{"{helper}", call_{helper}, {{{texts}}}}},\n'


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    code, table = [], []
    for entry in entries(*paths):
        function, row = test_code(*entry)
        code.append(function)
        table.append(row)
    with open(output, 'w', encoding='utf-8') as file:
        file.write('/* Generated; see generate_helper_calls.py. */\n' + ''.join(code) + 'static const struct helper helpers[] = {\n' +
                   ''.join(table) + '};\n')


if __name__ == '__main__':
    main()
