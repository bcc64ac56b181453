# SPDX-License-Identifier: Apache-2.0
"""The typed builders of the Go module, from the registries from which lib/capi/generate_ops_header.py makes ops.h.

An op, layer, loss, metric, optimizer or schedule is a method of Graph, a source
or a transform a method of Pipeline. Required inputs
and attributes are arguments; the others are fields of an options struct, of which callers may pass one. The zero value of
a field means the default: truth values whose default is true are of type Bool, numbers whose default is not zero but may
be zero are pointers, an enumeration is a text type.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import registries  # noqa: E402
from registries import SETTERS, camel, capitalised as exported, sentence  # noqa: E402

KEYWORDS = {'break', 'case', 'chan', 'const', 'continue', 'default', 'defer', 'else', 'fallthrough', 'for', 'func', 'go',
            'goto', 'if', 'import', 'interface', 'map', 'package', 'range', 'return', 'select', 'struct', 'switch', 'type',
            'var', 'len', 'cap', 'string'}
TYPES = {'i64': 'int64', 'f64': 'float64', 'string': 'string', 'dtype': 'DType', 'bool': 'bool', 'ints': '[]int64',
         'dims': '[]int64', 'doubles': '[]float64', 'strings': '[]string', 'value': 'Value',
         'dataset': '*Dataset'}


def local(name):
    text = camel(name)
    return text + 'Value' if text in KEYWORDS else text


def comment(text, indent=''):
    return ''.join(f'{indent}// {line}\n' for line in registries.lines_of(text, 113 - 4 * len(indent)))


class Field:
    """One attribute of an entry, as an argument or as a field of its options."""

    def __init__(self, entry, attribute):
        self.entry, self.attribute = entry, attribute
        self.name, self.kind, self.spec = attribute.name, attribute.type, attribute.spec

    def type_name(self):
        if self.kind == 'enum':
            return exported(f'{self.entry.go_name}_{self.name}')
        return TYPES[self.kind]

    def is_pointer(self):
        return self.attribute.needs_flag()

    def field_type(self):
        if self.attribute.length and self.kind in ('ints', 'dims'):
            return f'[{self.attribute.length}]int64'
        return ('*' if self.is_pointer() else '') + self.type_name()

    def set_argument(self):
        name = local(self.name)
        value = {'enum': f'string({name})', 'dtype': f'int64({name})'}.get(self.kind, name)
        return self.call(value)

    def call(self, value):
        owner = self.entry.owner
        if self.kind == 'dataset':
            return f'p.setDataset("{self.name}", {value})'
        if self.kind == 'strings':
            call = f'raw.{owner}_set_string({self.entry.receiver}.handle, "{self.name}", text)'
            return f'for _, text := range {value} {{\n{call}\n}}'
        return f'raw.{owner}_set_{SETTERS[self.kind]}({self.entry.receiver}.handle, "{self.name}", {value})'

    def set_option(self):
        """The statements that pass a field on when it is not zero."""
        field = 'o.' + exported(self.attribute.field)
        if self.kind == 'bool':
            return f'if {field} {{\n{self.call("false" if self.attribute.is_negative else "true")}\n}}\n'
        if self.is_pointer():
            return f'if {field} != nil {{\n{self.call("*" + field)}\n}}\n'
        if self.attribute.length and self.kind in ('ints', 'dims'):
            return f'if {field} != {self.field_type().join(("(", "{})"))} {{\n{self.call(field + "[:]")}\n}}\n'
        value = {'enum': f'string({field})', 'dtype': f'int64({field})'}.get(self.kind, field)
        if self.kind == 'strings':
            return self.call(field) + '\n'
        empty = {'string': '""', 'enum': '""', 'ints': 'nil', 'dims': 'nil', 'doubles': 'nil',
                 'dataset': 'nil'}.get(self.kind, '0')
        return f'if {field} != {empty} {{\n{self.call(value)}\n}}\n'

    def enumeration(self):
        if self.kind != 'enum':
            return ''
        name = self.type_name()
        text = comment(f'{name} is a choice of {exported(self.entry.go_name)}: {sentence(self.spec.get("doc", ""))}')
        text += f'type {name} string\n\nconst (\n'
        text += ''.join(f'{name}{exported(value)} {name} = "{value}"\n' for value in self.spec['values'])
        return text + ')\n\n'


class Builder:
    """One entry of a registry as a Go method."""

    def __init__(self, entry):
        self.entry = entry
        self.go_name = registries.method_name(entry)
        self.owner = {'graph': 'Graph', 'pipeline': 'Pipeline'}[entry.target]
        self.receiver = {'graph': 'g', 'pipeline': 'p'}[entry.target]
        self.required = [Field(self, a) for a in entry.required]
        self.optional = [Field(self, a) for a in entry.optional]
        self.options_name = exported(self.go_name) + 'Options'
        self.results = len(entry.outputs)

    def struct(self):
        if not self.optional:
            return ''
        text = comment(f'{self.options_name} are what {exported(self.go_name)} may be told; the zero value means the defaults.')
        text += f'type {self.options_name} struct {{\n'
        for field in self.optional:
            text += comment(registries.documentation(field.attribute), '\t') + f'\t{exported(field.attribute.field)} {field.field_type()}\n'
        return text + '}\n\n'

    def arguments(self):
        arguments = ['name string'] if self.entry.spec.get('named') else []
        for value in self.entry.inputs:
            if value.get('variadic'):
                arguments.append(f'{local(value["name"])} []Value')
            elif value.get('datasets'):
                arguments.append(f'{local(value["name"])} []*Dataset')
            elif value.get('dataset'):
                arguments.append(f'{local(value["name"])} *Dataset')
            elif not value.get('optional'):
                arguments.append(f'{local(value["name"])} Value')
        arguments += [f'{local(f.name)} {f.type_name()}' for f in self.required]
        if self.optional:
            arguments.append(f'options ...{self.options_name}')
        return ', '.join(arguments)

    def inputs(self):
        text = ''
        for value in self.entry.inputs:
            name = local(value['name'])
            if value.get('variadic'):
                text += f'for _, value := range {name} {{\nraw.Graph_add_input(g.handle, int64(value))\n}}\n'
            elif value.get('datasets'):
                text += f'for _, one := range {name} {{\np.setDataset("{value["name"]}", one)\n}}\n'
            elif value.get('dataset'):
                text += f'p.setDataset("{value["name"]}", {name})\n'
            elif not value.get('optional'):
                text += f'raw.Graph_add_input(g.handle, int64({name}))\n'
        return text

    def body(self):
        spec = self.entry.spec
        text = f'raw.{self.owner}_begin({self.receiver}.handle, "{self.entry.registry_name}", {spec.get("revision", 1)})\n'
        if spec.get('named'):
            text += f'raw.{self.owner}_set_string({self.receiver}.handle, "name", name)\n'
        text += self.inputs() + ''.join(field.set_argument() + '\n' for field in self.required)
        values = [field for field in self.optional if field.kind == 'value']
        if self.optional:
            text += 'o := first(options)\n'
        text += ''.join(f'raw.Graph_add_input(g.handle, int64(o.{exported(field.name)}))\n' for field in values)
        return text + ''.join(field.set_option() for field in self.optional if field.kind != 'value')

    def ending(self):
        if self.owner == 'Pipeline':
            return '*Pipeline', 'p.end()\nreturn p\n'
        if self.results == 1:
            return 'Value', 'return Value(raw.Graph_end(g.handle, nil))\n'
        count = self.results
        more = ', '.join(f'Value(more[{i}])' for i in range(count - 1))
        end = f'more := make([]int64, {count - 1})\nresult := Value(raw.Graph_end(g.handle, more))\nreturn result, {more}\n'
        names = [output.get('name') or 'y' for output in self.entry.outputs]
        return '(' + ', '.join(f'{local(name)} Value' for name in names) + ')', end

    def render(self):
        name = exported(self.go_name)
        listed = ''.join(f' {local(f.name)}: {sentence(f.spec.get("doc", ""))}' for f in self.required)
        result, end = self.ending()
        text = ''.join(field.enumeration() for field in self.required + self.optional) + self.struct()
        text += comment(f'{name}: {self.entry.spec["doc"].rstrip(".")}.{listed}')
        lock = 'p.mutex.Lock()\ndefer p.mutex.Unlock()\n' if self.owner == 'Pipeline' else ''
        return text + f'func ({self.receiver} *{self.owner}) {name}({self.arguments()}) {result} {{\n{lock}{self.body()}{end}}}\n\n'


EXTRA_FIELDS = {'train': comment('Stop ends training politely when it is closed: the step is finished, the checkpoint '
                                 'written, and the reason is Stopped.', '\t') + '\tStop <-chan struct{}\n'}
SCHEMAS = {'context': ('ContextOptions', 'of a context'), 'run': ('RunOptions', 'of an estimator'),
           'train': ('TrainOptions', 'of one training'), 'predictor': ('PredictorOptions', 'of a predictor'),
           'cluster': ('ClusterOptions', 'of a strategy of several processes')}


def option_choices(schemas):
    """A type for each option whose values are a list; an option of that name is the same in all schemas."""
    text = ''
    for key, values in registries.option_choices(schemas).items():
        name = exported(key)
        text += comment(f'{name} is a choice of the option {key}.') + f'type {name} string\n\nconst (\n'
        text += ''.join(f'{name}{exported(value)} {name} = "{value}"\n' for value in values) + ')\n\n'
    return text


def option_struct(schema, keys):
    name, what = SCHEMAS[schema]
    text = comment(f'{name} are the options {what}; the zero value means the defaults.') + f'type {name} struct {{\n'
    setters = ''
    for key in keys:
        kind, default, field = key['type'], key['default'], exported(key['key'])
        pointer = kind == 'i64' and default != 0 and key.get('minimum', 0) <= 0
        text += comment(sentence(key['doc']) + (f' Default: {registries.shown(default)}.' if default else ''), '\t')
        choice = 'values' in key
        text += f'\t{field} {"*" if pointer else ""}{field if choice else TYPES[kind]}\n'
        value = f'string(o.{field})' if choice else ("*" if pointer else "") + f'o.{field}'
        test = {'bool': f'o.{field}', 'string': f'o.{field} != ""'}.get(kind, f'o.{field} != ' + ('nil' if pointer else '0'))
        setters += f'if {test} {{\nraw.Options_set_{kind}(handle, "{key["key"]}", {value})\n}}\n'
    text += EXTRA_FIELDS.get(schema, '') + '}\n\n'
    return text + f'func (o {name}) schema() string {{ return "{schema}" }}\n\nfunc (o {name}) fill(handle uintptr) {{\n{setters}}}\n\n'


def formatted(text):
    return subprocess.run(['gofmt'], input=text, capture_output=True, text=True, check=True).stdout


def files(head):
    """Path to text of each generated file."""
    begin = head + 'package tutti\n\nimport "tutti.org/tutti/internal/raw"\n\n'
    result = {f'{name}_gen.go': formatted(begin + ''.join(Builder(entry).render() for entry in entries))
              for name, entries in registries.entries().items()}
    schemas = registries.option_schemas()
    result['options_gen.go'] = formatted(begin + option_choices(schemas) + ''.join(option_struct(name, keys) for name, keys in schemas.items()))
    return result
