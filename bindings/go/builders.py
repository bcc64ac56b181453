# SPDX-License-Identifier: Apache-2.0
"""The typed builders of the Go module, from the registries from which lib/capi/generate_ops_header.py makes ops.h.

An op, function, layer, loss, metric, optimizer or schedule is a method of Graph, a source or a transform a method of Pipeline.
Required inputs and attributes are arguments; the others are fields of an options struct, which the last argument points
to; nil means the defaults. So does the zero value of a field: truth values whose default is true say the opposite, numbers
whose default is not zero but may be zero are pointers, a choice is a text type. Attributes of one name that are choices
have one type (choices_gen.go).
"""
import subprocess

import go_names
from go_names import exported, local
import registries
from registries import SETTERS, sentence

TYPES = {'i64': 'int64', 'f64': 'float64', 'string': 'string', 'dtype': 'DType', 'bool': 'bool', 'ints': '[]int64',
         'dims': '[]int64', 'doubles': '[]float64', 'strings': '[]string', 'value': 'Value',
         'dataset': '*Dataset'}
WIDTH = 113


def comment(text, indent=''):
    return ''.join(f'{indent}// {line}\n' for line in registries.lines_of(text, WIDTH - 4 * len(indent)))


def listed(items):
    """A list in a comment, behind a text: a name and what it means."""
    text = '//\n' if items else ''
    for name, meaning in items:
        lines = registries.lines_of(f'{name}: {meaning}', WIDTH - 4)
        text += ''.join(f'//   {"-" if line is lines[0] else " "} {line}\n' for line in lines)
    return text


def parameters(pairs):
    """Parameters in Go, those of one type that stand together with the type once."""
    text = ''
    for i, (name, kind) in enumerate(pairs):
        is_shared = i + 1 < len(pairs) and pairs[i + 1][1] == kind
        text += name + ('' if is_shared else ' ' + kind) + (', ' if i + 1 < len(pairs) else '')
    return text


class Field:
    """One attribute of an entry, as an argument or as a field of its options."""

    def __init__(self, builder, attribute):
        self.builder, self.attribute = builder, attribute
        self.name, self.kind, self.spec = attribute.name, attribute.type, attribute.spec

    def type_name(self):
        return go_names.choice_type(self.attribute) if self.kind == 'enum' else TYPES[self.kind]

    def is_pointer(self):
        return self.attribute.needs_flag()

    def is_array(self):
        return bool(self.attribute.length) and self.kind in ('ints', 'dims')

    def field_type(self):
        if self.is_array():
            return f'[{self.attribute.length}]int64'
        return ('*' if self.is_pointer() else '') + self.type_name()

    def set_argument(self):
        name = local(self.name)
        value = {'enum': f'string({name})', 'dtype': f'int64({name})'}.get(self.kind, name)
        return self.call(value)

    def call(self, value):
        owner, receiver = self.builder.owner, self.builder.receiver
        if self.kind == 'dataset':
            return f'p.setDataset("{self.name}", {value})'
        if self.kind == 'strings':
            call = f'raw.{owner}_set_string({receiver}.handle, "{self.name}", text)'
            return f'for _, text := range {value} {{\n{call}\n}}'
        return f'raw.{owner}_set_{SETTERS[self.kind]}({receiver}.handle, "{self.name}", {value})'

    def set_option(self):
        """The statements that pass a field on when it is not zero."""
        field = 'o.' + exported(self.attribute.field)
        if self.kind == 'bool':
            return f'if {field} {{\n{self.call("false" if self.attribute.is_negative else "true")}\n}}\n'
        if self.is_pointer():
            return f'if {field} != nil {{\n{self.call("*" + field)}\n}}\n'
        if self.is_array():
            return f'if {field} != {self.field_type().join(("(", "{})"))} {{\n{self.call(field + "[:]")}\n}}\n'
        value = {'enum': f'string({field})', 'dtype': f'int64({field})'}.get(self.kind, field)
        if self.kind == 'strings':
            return self.call(field) + '\n'
        empty = {'string': '""', 'enum': '""', 'ints': 'nil', 'dims': 'nil', 'doubles': 'nil',
                 'dataset': 'nil'}.get(self.kind, '0')
        return f'if {field} != {empty} {{\n{self.call(value)}\n}}\n'


class Builder:
    """One entry of a registry as a Go method."""

    def __init__(self, entry, translate):
        self.entry, self.translate = entry, translate.of_entry(entry)
        self.go_name, self.options_name = go_names.method(entry), go_names.options_type(entry)
        self.owner = {'graph': 'Graph', 'pipeline': 'Pipeline'}[entry.target]
        self.receiver = {'graph': 'g', 'pipeline': 'p'}[entry.target]
        self.required = [Field(self, a) for a in entry.required]
        self.optional = [Field(self, a) for a in entry.optional]

    def struct(self):
        if not self.optional:
            return ''
        text = comment(f'{self.options_name} are what {self.go_name} may be told; the zero value means the defaults.')
        text += f'type {self.options_name} struct {{\n'
        for field in self.optional:
            text += comment(go_names.documentation(field.attribute, self.translate), '\t')
            text += f'\t{exported(field.attribute.field)} {field.field_type()}\n'
        return text + '}\n\n'

    def arguments(self):
        pairs = [('name', 'string')] if self.entry.spec.get('named') else []
        for value in self.entry.inputs:
            name = local(value['name'])
            if value.get('variadic'):
                pairs.append((name, '[]Value'))
            elif value.get('datasets'):
                pairs.append((name, '[]*Dataset'))
            elif value.get('dataset'):
                pairs.append((name, '*Dataset'))
            elif not value.get('optional'):
                pairs.append((name, 'Value'))
        pairs += [(local(f.name), f.type_name()) for f in self.required]
        return parameters(pairs + ([('options', '*' + self.options_name)] if self.optional else []))

    def inputs(self):
        text = ''
        for value in self.entry.inputs:
            name = local(value['name'])
            if value.get('variadic'):
                text += f'for _, value := range {name} {{\nraw.Graph_add_input(g.handle, value.id)\n}}\n'
            elif value.get('datasets'):
                text += f'for _, one := range {name} {{\np.setDataset("{value["name"]}", one)\n}}\n'
            elif value.get('dataset'):
                text += f'p.setDataset("{value["name"]}", {name})\n'
            elif not value.get('optional'):
                text += f'raw.Graph_add_input(g.handle, {name}.id)\n'
        return text

    def body(self):
        spec, owner, handle = self.entry.spec, self.owner, self.receiver + '.handle'
        text = f'raw.{owner}_begin({handle}, "{self.entry.registry_name}", {spec.get("revision", 1)})\n'
        if spec.get('named'):
            text += f'raw.{owner}_set_string({handle}, "name", name)\n'
        text += self.inputs() + ''.join(field.set_argument() + '\n' for field in self.required)
        values = [field for field in self.optional if field.kind == 'value']
        if self.optional:
            text += 'o := given(options)\n'
        text += ''.join(f'raw.Graph_add_input(g.handle, o.{exported(field.name)}.id)\n' for field in values)
        return text + ''.join(field.set_option() for field in self.optional if field.kind != 'value')

    def ending(self):
        if self.owner == 'Pipeline':
            return '*Pipeline', 'p.end()\nreturn p\n'
        if self.entry.count:
            return '[]Value', f'return g.endMany({local(self.entry.count)})\n'
        count = len(self.entry.outputs)
        if count == 1:
            return 'Value', 'return Value{raw.Graph_end(g.handle, nil)}\n'
        more = ', '.join(f'Value{{more[{i}]}}' for i in range(count - 1))
        end = f'more := make([]int64, {count - 1})\nresult := Value{{raw.Graph_end(g.handle, more)}}\n'
        names = [local(output.get('name') or 'y') for output in self.entry.outputs]
        return '(' + ', '.join(names) + ' Value)', end + f'return result, {more}\n'

    def documentation(self):
        meanings = [(local(f.name), self.translate(sentence(f.spec.get('doc', '')))) for f in self.required]
        return comment(f'{self.go_name}: {self.translate(self.entry.spec["doc"]).rstrip(".")}.') + listed(meanings)

    def render(self):
        result, end = self.ending()
        lock = 'p.mutex.Lock()\ndefer p.mutex.Unlock()\n' if self.owner == 'Pipeline' else ''
        head = f'func ({self.receiver} *{self.owner}) {self.go_name}({self.arguments()}) {result}'
        if len(head) > 118:
            head = head.replace(f'{self.go_name}(', f'{self.go_name}(\n', 1).replace(f') {result}', f',\n) {result}')
        return self.struct() + self.documentation() + head + f' {{\n{lock}{self.body()}{end}}}\n\n'


def constants(kind, values):
    """The constants of a text type."""
    text = comment(f'The choices of {kind}.') + 'const (\n'
    return text + ''.join(f'{go_names.choice(kind, value)} {kind} = "{value}"\n' for value in values) + ')\n\n'


def choices(entries, translate):
    """A type for the choices of each name: all values that an attribute of that name has anywhere."""
    types = {}
    for entry in (entry for group in entries.values() for entry in group):
        for attribute in (a for a in entry.attributes if a.type == 'enum'):
            kind = types.setdefault(go_names.choice_type(attribute), {'values': [], 'of': [], 'doc': ''})
            kind['values'] += [value for value in attribute.spec['values'] if value not in kind['values']]
            kind['of'].append(go_names.method(entry))
            kind['doc'] = kind['doc'] or translate.of_entry(entry)(sentence(attribute.documentation()))
    text = ''
    for name, kind in sorted(types.items()):
        text += comment(f'{name}: {kind["doc"]} For {", ".join(kind["of"])}.') + f'type {name} string\n\n'
        text += constants(name, kind['values'])
    return text


EXTRA_FIELDS = {'train': comment('Stop ends training politely when it is closed: the step is finished, the checkpoint '
                                 'written, and the reason is ReasonStopped.', '\t') + '\tStop <-chan struct{}\n'}
SCHEMAS = {'context': ('ContextOptions', 'of a context'), 'run': ('RunOptions', 'of an estimator'),
           'train': ('TrainOptions', 'of one training'), 'predictor': ('PredictorOptions', 'of a predictor'),
           'cluster': ('ClusterOptions', 'of a strategy of several processes')}


def option_choices(schemas):
    """A type for each option whose values are a list; an option of that name is the same in all schemas."""
    text = ''
    for key, values in registries.option_choices(schemas).items():
        name = exported(key)
        of = [SCHEMAS[schema][0] for schema, keys in schemas.items() if any(one['key'] == key for one in keys)]
        text += comment(f'{name} is a choice of {" and ".join(of)}.') + f'type {name} string\n\n'
        text += constants(name, values)
    return text


class Option:
    """One option of a schema as a field."""

    def __init__(self, key):
        self.key, self.name, self.kind = key, go_names.option_field(key), key['type']
        self.is_choice, self.is_time = 'values' in key, key['key'].endswith('_ms')
        is_optional = self.kind in ('i64', 'f64') and key['default'] != 0 and key.get('minimum', 0) <= 0
        self.is_pointer = is_optional and not self.is_time

    def field(self, translate):
        kind = exported(self.key['key']) if self.is_choice else 'time.Duration' if self.is_time else TYPES[self.kind]
        text = comment(go_names.option_documentation(self.key, translate), '\t')
        return text + f'\t{self.name} {"*" if self.is_pointer else ""}{kind}\n'

    def set(self):
        field = f'o.{self.name}'
        value = f'string({field})' if self.is_choice else f'milliseconds({field})' if self.is_time else field
        empty = 'nil' if self.is_pointer else '""' if self.kind == 'string' else '0'
        test = field if self.kind == 'bool' else f'{field} != {empty}'
        call = f'raw.Options_set_{self.kind}(handle, "{self.key["key"]}", {"*" if self.is_pointer else ""}{value})'
        return f'if {test} {{\n{call}\n}}\n'


def option_struct(schema, keys, translate):
    name, what = SCHEMAS[schema]
    options = [Option(key) for key in keys]
    text = comment(f'{name} are the options {what}; the zero value means the defaults.') + f'type {name} struct {{\n'
    text += ''.join(option.field(translate) for option in options) + EXTRA_FIELDS.get(schema, '') + '}\n\n'
    text += f'func (o {name}) schema() string {{ return "{schema}" }}\n\n'
    text += f'func (o {name}) fill(handle uintptr) {{\n{"".join(option.set() for option in options)}}}\n\n'
    return text + printing(name, [option.name for option in options if option.key.get('secret')])


def printing(name, secrets):
    """How options that contain secrets are printed by package fmt."""
    if not secrets:
        return ''
    text = comment('String shows the options, a secret as (hidden).')
    text += f'func (o {name}) String() string {{\ntype plain {name}\n'
    for field in secrets:
        text += f'if o.{field} != "" {{\no.{field} = "(hidden)"\n}}\n'
    text += 'return fmt.Sprintf("%+v", plain(o))\n}\n\n'
    return text + comment('GoString is String.') + f'func (o {name}) GoString() string {{ return o.String() }}\n\n'


def formatted(text):
    return subprocess.run(['gofmt'], input=text, capture_output=True, text=True, check=True).stdout


def files(head):
    """Path to text of each generated file."""
    begin = head + 'package tutti\n\nimport "tutti.org/tutti/internal/raw"\n\n'
    entries, translate = registries.entries(), go_names.Translator(go_names.of_registries())
    result = {f'{name}_gen.go': formatted(begin + ''.join(Builder(entry, translate).render() for entry in of))
              for name, of in entries.items()}
    result['choices_gen.go'] = formatted(head + 'package tutti\n\n' + choices(entries, translate))
    schemas = registries.option_schemas()
    begin = begin.replace('import "tutti.org', 'import (\n"fmt"\n"time"\n\n"tutti.org').replace('raw"\n', 'raw"\n)\n')
    structs = ''.join(option_struct(name, keys, translate) for name, keys in schemas.items())
    result['options_gen.go'] = formatted(begin + option_choices(schemas) + structs)
    return result
