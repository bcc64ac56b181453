#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes include/tutti/ops.h, the typed C helpers, from the registries.

usage: generate_ops_header.py OUTPUT OPS_YAML NN_YAML TRANSFORMS_YAML SOURCES_YAML

A helper is inline code over the generic calls of graph.h and dataset.h, so it adds no symbol to the library. Required
inputs and attributes become arguments; the others become fields of an attribute struct in which all zeros mean all
defaults: a truth value that defaults to true has the name of its opposite, enumerations start at 1, numbers whose default is not zero but may be zero have a
`has_` flag, arrays are given by pointer and count.
"""
import sys

import yaml

HEAD = """/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops and functions of ops, layers, losses, metrics, optimizers, schedules, dataset sources and transforms, one typed
 * helper each. Generated from the registries; do not edit.
 *
 * Attribute structs may be NULL or all zeros: every attribute then has its default. Set a field to change one; a field
 * with a has_ flag counts when the flag is 1. Truth values are 0 or 1, and 0 is the default: what is usual and can be
 * left out has a name that says so (without_bias). Shapes may use TUTTI_DIM_BATCH.
 */
#ifndef TUTTI_OPS_H_
#define TUTTI_OPS_H_

#include <tutti/dataset.h>
#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

TAIL = """
#ifdef __cplusplus
}
#endif

#endif /* TUTTI_OPS_H_ */
"""

SCALARS = {'i64': 'int64_t', 'f64': 'double', 'string': 'const char *', 'dtype': 'int32_t', 'enum': 'int32_t',
           'dataset': 'const tutti_dataset *'}
# The argument of transforms that say what they give by a dataset.
LIKE = {'name': 'like', 'type': 'dataset', 'default': None,
        'doc': 'Has the components of what comes out; its elements are not read. Without it they are as those that go in.'}


def ascii_text(text):
    for old, new in (('−', '-'), ('·', '*'), ('×', 'x'), ('²', '^2'), ('Φ', 'Phi'), ('≠', '!='), ('≤', '<='), ('≥', '>='),
                     ('→', '->'), ('§', 'section ')):
        text = text.replace(old, new)
    return ' '.join(text.split())


def comment(text, indent=''):
    lines, line = [], ''
    for word in ascii_text(text).split():
        if len(indent) + len(line) + len(word) > 112:
            lines.append(line)
            line = ''
        line += (' ' if line else '') + word
    lines.append(line)
    return indent + '/* ' + ('\n' + indent + ' * ').join(lines) + ' */\n'


def each(array, call, missing):
    """The loop that hands every item of an array on. Without an array, `missing` goes in place of the first: an error
    of the generic call."""
    item = f'{array} != NULL ? {array}[i] : {missing}'
    return f'for (int64_t i = 0; i < {array}_count && (i == 0 || {array} != NULL); i++) {call.format(item)}'


class Attribute:
    """One attribute of an entry: how it is declared, tested and passed on."""

    def __init__(self, owner, spec):
        self.owner, self.spec = owner, spec
        self.name, self.type = spec['name'], spec['type']
        # Of a truth value that defaults to true: the field says the opposite, so that zero is the default.
        self.is_negative = self.type == 'bool' and spec.get('default') is True
        if self.is_negative and not ('negative' in spec and 'negative_doc' in spec):
            sys.exit(f'{owner}: {self.name} defaults to true and so needs a "negative" name and a "negative_doc"')
        self.field = spec['negative'] if self.is_negative else self.name
        self.required = 'default' not in spec and self.type != 'value'
        self.length = spec.get('length')

    def documentation(self):
        """Of the field."""
        return self.spec['negative_doc'] if self.is_negative else self.spec.get('doc', '')

    def enum_constant(self, value):
        return f'TUTTI_{self.owner}_{self.name}_{value}'.upper()

    def needs_flag(self):
        if self.required or self.type not in ('i64', 'f64') or self.spec['default'] == 0:
            return False
        if self.spec['default'] is None:
            return self.spec.get('minimum', 0) <= 0
        smallest = self.spec.get('minimum', self.spec.get('exclusive_minimum', -1))
        return smallest < 0 or (smallest == 0 and 'exclusive_minimum' not in self.spec)

    def arguments(self):
        if self.type in ('ints', 'dims', 'doubles'):
            element = 'double' if self.type == 'doubles' else 'int64_t'
            count = [] if self.length else [f'int64_t {self.name}_count']
            return [f'const {element} *{self.name}'] + count
        if self.type == 'bool':
            return [f'uint8_t {self.field}']
        if self.type == 'strings':
            return [f'const char *const *{self.name}', f'int64_t {self.name}_count']
        kind = SCALARS[self.type]
        return [kind + ('' if kind.endswith('*') else ' ') + self.name]

    def fields(self):
        if self.type == 'value':
            return [f'tutti_value {self.name};']
        if self.type in ('ints', 'dims', 'doubles') and self.length:
            return [f'{"double" if self.type == "doubles" else "int64_t"} {self.name}[{self.length}];']
        flag = [f'uint8_t has_{self.name};'] if self.needs_flag() else []
        return flag + [argument + ';' for argument in self.arguments()]

    def is_set(self):
        field = f'attrs->{self.field}'
        if self.needs_flag():
            return f'attrs->has_{self.name}'
        if self.type in ('ints', 'dims', 'doubles'):
            if self.length:
                return ' || '.join(f'{field}[{i}] != 0' for i in range(self.length))
            return f'{field} != NULL || {field}_count != 0'
        return f'{field} != NULL' if self.type in ('string', 'dataset') else f'{field} != 0'

    def pass_on(self, target, handle, source):
        """The statement that hands the value to the generic setter."""
        call = f'tutti_{target}_set_'
        if self.type in ('ints', 'dims', 'doubles'):
            count = self.length or source + '_count'
            kind = 'f64s' if self.type == 'doubles' else 'i64s'
            return f'{call}{kind}({handle}, "{self.name}", {source}, {count});'
        if self.type == 'strings':
            return each(source, f'{call}string({handle}, "{self.name}", {{}});', 'NULL')
        if self.type == 'enum':
            # A number that none of them has is handed on as it is: an error that names it.
            known = f'{source} >= 1 && {source} <= {len(self.spec["values"])}'
            text = f'{call}string({handle}, "{self.name}", tutti_{self.owner}_{self.name}_name({source}));'
            return f'{{ if ({known}) {text} else {call}i64({handle}, "{self.name}", {source}); }}'
        if self.type == 'bool':
            value = source if self.required else '0' if self.is_negative else '1'
            return f'{call}bool({handle}, "{self.name}", {value});'
        kind = {'dtype': 'i64'}.get(self.type, self.type)
        return f'{call}{kind}({handle}, "{self.name}", {source});'

    def constants(self):
        if self.type != 'enum':
            return ''
        values = self.spec['values']
        text = ''.join(f'#define {self.enum_constant(v)} {i}\n' for i, v in enumerate(values, 1))
        text += f'static inline const char *tutti_{self.owner}_{self.name}_name(int32_t value) {{\n  switch (value) {{\n'
        text += ''.join(f'    case {self.enum_constant(v)}: return "{v}";\n' for v in values)
        return text + '    default: return "(no such value)";\n  }\n}\n'


class Entry:
    """An op, a layer, ..., a source or a transform, as one helper."""

    def __init__(self, target, name, registry_name, spec):
        self.target, self.name, self.registry_name, self.spec = target, name, registry_name, spec
        self.inputs = spec.get('inputs', [])
        listed = spec.get('parameters', []) + spec.get('attributes', [])
        optional = [{'name': i['name'], 'type': 'value', 'doc': i.get('doc', 'optional input')}
                    for i in self.inputs if i.get('optional')]
        self.attributes = [Attribute(name, a) for a in optional + listed]
        self.required = [a for a in self.attributes if a.required]
        self.optional = [a for a in self.attributes if not a.required]
        self.outputs = spec.get('outputs', [{}])
        # The parameter that says how many results there are, where it is the caller who does.
        self.count = self.outputs[0].get('count')

    def struct(self):
        if not self.optional:
            return ''
        text = f'typedef struct tutti_{self.name}_attrs {{\n'
        for attribute in self.optional:
            default = attribute.spec.get('default')
            shown = '' if attribute.type in ('value', 'bool') or default in (None, []) else f' Default: {default}.'
            text += comment(attribute.documentation().rstrip('.') + '.' + shown, '  ')
            text += ''.join(f'  {field}\n' for field in attribute.fields())
        return text + f'}} tutti_{self.name}_attrs;\n'

    def arguments(self):
        handle = {'graph': 'tutti_graph *graph', 'pipeline': 'tutti_pipeline *pipeline'}[self.target]
        arguments = [handle] + (['const char *name'] if self.spec.get('named') else [])
        for value in self.inputs:
            if value.get('variadic'):
                arguments += [f'const tutti_value *{value["name"]}', f'int64_t {value["name"]}_count']
            elif value.get('datasets'):
                arguments += [f'const tutti_dataset *const *{value["name"]}', f'int64_t {value["name"]}_count']
            elif value.get('dataset'):
                arguments.append(f'const tutti_dataset *{value["name"]}')
            elif not value.get('optional'):
                arguments.append(f'tutti_value {value["name"]}')
        for attribute in self.required:
            arguments += attribute.arguments()
        if self.optional:
            arguments.append(f'const tutti_{self.name}_attrs *attrs')
        if self.count:
            arguments.append(f'tutti_value *{self.outputs[0]["name"]}')
        if len(self.outputs) > 1:
            arguments.append(f'tutti_value more[{len(self.outputs) - 1}]')
        return arguments

    def body(self):
        handle, lines = self.target, []
        lines.append(f'tutti_{handle}_begin({handle}, "{self.registry_name}", {self.spec.get("revision", 1)});')
        if self.spec.get('named'):
            lines.append(f'tutti_{handle}_set_string({handle}, "name", name);')
        for value in self.inputs:
            name = value['name']
            if value.get('variadic'):
                lines.append(f'if ({name} == NULL && {name}_count != 0) tutti_graph_set_i64s(graph, "{name}", NULL, {name}_count);')
                lines.append(f'for (int64_t i = 0; {name} != NULL && i < {name}_count; i++) tutti_graph_add_input(graph, {name}[i]);')
            elif value.get('datasets'):
                lines.append(each(name, f'tutti_pipeline_set_dataset(pipeline, "{name}", {{}});', 'NULL'))
            elif value.get('dataset'):
                lines.append(f'tutti_pipeline_set_dataset(pipeline, "{name}", {name});')
            elif not value.get('optional'):
                lines.append(f'tutti_graph_add_input(graph, {name});')
        lines += [a.pass_on(handle, handle, a.name) for a in self.required]
        values = [a for a in self.optional if a.type == 'value']
        lines += [f'tutti_graph_add_input(graph, attrs != NULL ? attrs->{a.name} : tutti_no_value());' for a in values]
        settings = [a for a in self.optional if a.type != 'value']
        if settings:
            lines.append('if (attrs != NULL) {')
            for a in settings:
                condition = '' if a.type == 'strings' else f'if ({a.is_set()}) '
                lines.append(f'  {condition}{a.pass_on(handle, handle, "attrs->" + a.field)}')
            lines.append('}')
        return lines

    def render(self):
        text = '\n' + ''.join(a.constants() for a in self.attributes) + self.struct()
        text += comment(self.spec['doc'] + ''.join(
            f' {a.name}: {a.spec.get("doc", "").rstrip(".")}.' for a in self.required))
        if self.count:
            # One result comes from the call that ends the op, the rest behind it.
            results = self.outputs[0]['name']
            result, last = 'void', (f'const tutti_value first = tutti_graph_end(graph, {results} != NULL ? {results} + 1 : NULL, {self.count} > 0 ? {self.count} - 1 : 0);\n'
                                    f'  if ({results} != NULL && {self.count} > 0) {results}[0] = first;')
        elif self.target == 'graph':
            more = f'more, {len(self.outputs) - 1}' if len(self.outputs) > 1 else 'NULL, 0'
            result, last = 'tutti_value', f'return tutti_graph_end(graph, {more});'
        else:
            result, last = 'void', 'tutti_pipeline_end(pipeline);'
        text += f'static inline {result} tutti_{self.name}({", ".join(self.arguments())}) {{\n'
        return text + ''.join(f'  {line}\n' for line in self.body() + [last]) + '}\n'


# What the documentation of an op says that has one form only.
WHERE = {('program',): ' In models only, not in maps and filters of datasets.',
         ('routine',): ' In maps and filters of datasets only, not in models.'}


def op_entries(path):
    for group in yaml.safe_load(open(path, encoding='utf-8')):
        for op in group['ops']:
            spec = {**group.get('defaults', {}), **op}
            if spec.get('public', True) and not spec.get('regions'):
                where = WHERE.get(tuple(spec.get('forms', ())), '')
                spec['doc'] = spec['doc'].strip().rstrip('.') + '.' + where
                yield Entry('graph', op['name'], op['name'], spec)


def nn_name(spec):
    """What an entry of nn.yaml is called: a function as ops are, the others with their kind in front."""
    return spec['name'] if spec['kind'] == 'function' else f'{spec["kind"]}_{spec["name"]}'


def nn_entries(path):
    for spec in yaml.safe_load(open(path, encoding='utf-8')):
        name = nn_name(spec)
        yield Entry('graph', name, name, {**spec, 'outputs': spec.get('outputs', [{}])})


def transform_entries(path):
    for spec in yaml.safe_load(open(path, encoding='utf-8')):
        needs = spec.get('needs', [])
        if spec.get('public', True) and set(needs) <= {'others'}:
            parameters = [{**p, 'type': {'boolean': 'bool'}.get(p['type'], p['type'])} for p in spec.get('parameters', [])]
            parameters += [LIKE] if spec.get('like') else []
            several = [{'name': 'others', 'datasets': True, 'doc': 'the datasets behind the own one'}]
            inputs = several if spec.get('several') else [{'name': 'other', 'dataset': True}] if needs else []
            yield Entry('pipeline', f'pipeline_{spec["name"]}', spec['name'], {**spec, 'inputs': inputs, 'attributes': parameters, 'parameters': []})


def source_entries(path):
    for spec in yaml.safe_load(open(path, encoding='utf-8')):
        parameters = [{**p, 'type': {'boolean': 'bool'}.get(p['type'], p['type'])} for p in spec['parameters']]
        yield Entry('pipeline', f'source_{spec["name"]}', spec['name'], {**spec, 'attributes': parameters, 'parameters': []})


def main():
    output, ops, layers, transforms, sources = sys.argv[1:6]
    parts, ops, layers = [HEAD], list(op_entries(ops)), list(nn_entries(layers))
    twice = {entry.name for entry in ops} & {entry.name for entry in layers}
    if twice:
        sys.exit(f'both ops and functions: {sorted(twice)}')
    functions = [entry for entry in layers if entry.spec['kind'] == 'function']
    layers = [entry for entry in layers if entry.spec['kind'] != 'function']
    for title, entries in (('ops', ops), ('functions of ops', functions),
                           ('layers, losses, metrics, optimizers, schedules', layers),
                           ('dataset sources', source_entries(sources)), ('dataset transforms', transform_entries(transforms))):
        parts.append(f'\n/* --- {title} {"-" * (109 - len(title))} */\n')
        parts += [entry.render() for entry in entries]
    with open(output, 'w', encoding='utf-8') as file:
        file.write(''.join(parts) + TAIL)


if __name__ == '__main__':
    main()
