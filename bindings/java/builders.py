# SPDX-License-Identifier: Apache-2.0
"""The typed builders of the Java package, from the registries from which lib/capi/generate_ops_header.py makes ops.h.

An op is a method of GraphOps, a function of ops, layer, loss, metric, optimizer or schedule one of GraphLayers (Graph extends both), a transform
one of PipelineTransforms, a source one of PipelineSources (Pipeline extends both). Required inputs and attributes are arguments; the others are setters of an
options class, which callers may leave out. An enumeration is an enum, of its own or one that all entries share by its name;
several outputs are a record. What names files can be given as text or as paths.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import registries  # noqa: E402
from registries import camel, capitalised, sentence  # noqa: E402

HEAD = '// SPDX-License-Identifier: Apache-2.0\n// Made from the registries by bindings/java/builders.py.\npackage org.tutti;\n\n'
KEYWORDS = {'abstract', 'assert', 'boolean', 'break', 'byte', 'case', 'catch', 'char', 'class', 'const', 'continue', 'default',
            'do', 'double', 'else', 'enum', 'extends', 'final', 'finally', 'float', 'for', 'goto', 'if', 'implements',
            'import', 'instanceof', 'int', 'interface', 'long', 'native', 'new', 'package', 'private', 'protected', 'public',
            'return', 'short', 'static', 'strictfp', 'super', 'switch', 'synchronized', 'this', 'throw', 'throws',
            'transient', 'try', 'void', 'volatile', 'while', 'true', 'false', 'null', 'options'}
TYPES = {'i64': 'long', 'f64': 'double', 'string': 'String', 'dtype': 'DType', 'bool': 'boolean', 'ints': 'long[]',
         'dims': 'long[]', 'doubles': 'double[]', 'strings': 'String[]', 'value': 'Value',
         'dataset': 'Dataset'}
# Enumerations that mean the same wherever there is one of this name, though not every entry knows all of their values.
SHARED = {'activation': 'What is applied to the result of a layer.',
          'padding': 'How the border of images is padded. Layers and their pooling know SAME and VALID.',
          'kernel_normalization': 'What a layer uses in place of the variable kernel.',
          'reduction': 'How the losses of the rows become one number.',
          'rotary_pairs': 'Which channels of a head are turned together by positions.'}
# Attributes and options that name files of the machine, and the Java types in whose place there can be paths.
FILES = {'path', 'paths', 'model_dir'}
PATHS = {'String': 'java.nio.file.Path', 'String[]': 'java.util.List<java.nio.file.Path>'}
ESCAPES = (('&', '&amp;'), ('<', '&lt;'), ('>', '&gt;'), ('@', '&#64;'))


def local(name):
    text = camel(name)
    return text + 'Value' if text in KEYWORDS else text


def html(text):
    for old, new in ESCAPES:
        text = text.replace(old, new)
    return text


def comment(text, indent='', tags=()):
    """A documentation comment: a text, and lines "@param name text"."""
    lines = registries.lines_of(html(text), 110 - len(indent))
    result = f'{indent}/**\n' + ''.join(f'{indent} * {line}\n' for line in lines)
    if tags:
        result += f'{indent} *\n'
    for tag in tags:
        first, *rest = registries.lines_of(tag, 106 - len(indent))
        result += f'{indent} * {first}\n' + ''.join(f'{indent} *     {line}\n' for line in rest)
    return result + f'{indent} */\n'


def constant(value):
    text = ''.join(c if c.isalnum() else '_' for c in value).upper()
    return '_' + text if text[0].isdigit() else text


def enumeration(name, doc, values):
    text = HEAD + comment(doc) + f'public enum {name} implements Choice {{\n'
    text += ',\n'.join(f'    /** The choice {{@code {value}}}. */\n    {constant(value)}("{value}")' for value in values)
    return text + f''';

    private final String text;

    {name}(String text) {{
        this.text = text;
    }}

    @Override
    public String text() {{
        return text;
    }}
}}
'''


class Field:
    """One attribute of an entry, as an argument or as a setter of its options."""

    def __init__(self, builder, attribute):
        self.builder, self.attribute = builder, attribute
        self.name, self.kind, self.spec = attribute.name, attribute.type, attribute.spec
        self.local = local(attribute.field)

    def type_name(self):
        if self.kind != 'enum':
            return TYPES[self.kind]
        return capitalised(self.name if self.name in SHARED else f'{self.builder.java_name}_{self.name}')

    def names_files(self):
        return self.name in FILES and self.type_name() in PATHS

    def argument(self):
        return f'{self.type_name()} {self.local}'

    def path_argument(self):
        return f'{PATHS[self.type_name()]} {self.local}'

    def tag(self):
        return f'@param {self.local} ' + (html(sentence(self.spec.get('doc', ''))) or 'its value.')

    def setter(self, owner):
        array = self.kind in ('ints', 'dims', 'doubles', 'strings')
        argument = self.argument().replace('[]', '...') if array else self.argument()
        doc = registries.documentation(self.attribute) or sentence(self.name)
        value = ('!' if self.attribute.is_negative else '') + self.local
        text = setter(doc, owner, self.name, self.local, argument, value)
        if self.names_files():
            text += '\n' + setter(doc, owner, self.name, self.local, self.path_argument(), f'PathText.of({self.local})')
        return text


def setter(doc, owner, key, name, argument, value):
    return (comment(doc, '    ', [f'@param {name} its value', '@return these options']) +
            f'    public {owner} {name}({argument}) {{\n        set("{key}", {value});\n        return this;\n    }}\n')


class Builder:
    """One entry of a registry as Java methods, and the types that they need."""

    def __init__(self, entry):
        self.entry = entry
        self.java_name = registries.method_name(entry)
        self.is_graph = entry.target == 'graph'
        self.required = [Field(self, a) for a in entry.required]
        self.optional = [Field(self, a) for a in entry.optional]
        self.options_name = capitalised(registries.options_stem(entry)) + 'Options'
        self.outputs = [local(output.get('name') or 'y') for output in entry.outputs]
        self.record_name = capitalised(self.java_name) + 'Values'

    def types(self):
        """File name to text of each type that the method needs."""
        files = {}
        for field in self.required + self.optional:
            if field.kind == 'enum' and field.name not in SHARED:
                name = field.type_name()
                doc = f'A choice of {camel(self.java_name)}. {sentence(field.spec.get("doc", ""))}'
                files[name + '.java'] = enumeration(name, doc.strip(), field.spec['values'])
        if self.optional:
            files[self.options_name + '.java'] = self.options()
        if self.is_graph and len(self.outputs) > 1:
            tags = [f'@param {name} {html(sentence(output.get("doc", ""))) or "one of them."}'
                    for name, output in zip(self.outputs, self.entry.outputs)]
            fields = ', '.join(f'Value {name}' for name in self.outputs)
            files[self.record_name + '.java'] = (HEAD + comment(f'What {camel(self.java_name)} gives.', '', tags) +
                                                 f'public record {self.record_name}({fields}) {{}}\n')
        return files

    def options(self):
        name = self.options_name
        text = HEAD + comment(f'What {camel(self.java_name)} may be told. What is not set has its default.')
        text += f'public final class {name} extends Attributes {{\n    /** Nothing but defaults. */\n    public {name}() {{}}\n'
        return text + ''.join('\n' + field.setter(name) for field in self.optional) + '}\n'

    def arguments(self):
        arguments, tags = [], []
        if self.entry.spec.get('named'):
            arguments, tags = ['String name'], ['@param name how it is reported']
        for value in self.entry.inputs:
            name = local(value['name'])
            kind = 'List<Value>' if value.get('variadic') else 'java.util.List<Dataset>' if value.get('datasets') else 'Dataset' if value.get('dataset') else 'Value'
            if not value.get('optional'):
                arguments.append(f'{kind} {name}')
                tags.append(f'@param {name} ' + (html(sentence(value.get('doc', ''))) or 'an input.'))
        return arguments + [f.argument() for f in self.required], tags + [f.tag() for f in self.required]

    def inputs(self):
        names = [local(v['name']) for v in self.entry.inputs if not v.get('optional') and not v.get('dataset') and not v.get('datasets')]
        names += [f'input(options, "{field.name}")' for field in self.optional if field.kind == 'value']
        return f'inputs({", ".join(names)})'

    def attributes(self):
        pairs = [('name', 'name')] if self.entry.spec.get('named') else []
        pairs += [(v['name'], local(v['name'])) for v in self.entry.inputs if v.get('dataset') or v.get('datasets')]
        pairs += [(f.name, f.local) for f in self.required]
        return 'new Attributes()' + ''.join(f'.set("{key}", {value})' for key, value in pairs) if pairs else 'null'

    def body(self):
        head = f'"{self.entry.registry_name}", {self.entry.spec.get("revision", 1)}, {self.attributes()}, '
        head += 'options' if self.optional else 'null'
        if not self.is_graph:
            return 'Pipeline', f'        return apply({head});\n', '@return this pipeline'
        if self.entry.count:
            doc = html(sentence(self.entry.outputs[0].get('doc', '')))
            return 'List<Value>', f'        return results({local(self.entry.count)}, {head}, {self.inputs()});\n', f'@return {doc}'
        if len(self.outputs) == 1:
            doc = html(sentence(self.entry.outputs[0].get('doc', ''))) or 'the result'
            return 'Value', f'        return op({head}, {self.inputs()});\n', f'@return {doc}'
        count = len(self.outputs)
        values = ', '.join(f'values[{i}]' for i in range(count))
        return self.record_name, (f'        Value[] values = ops({count}, {head}, {self.inputs()});\n'
                                  f'        return new {self.record_name}({values});\n'), '@return its outputs'

    def methods(self):
        (arguments, tags), (result, body, returned), name = self.arguments(), self.body(), local(self.java_name)
        doc = self.entry.spec['doc'].rstrip('.') + '.'
        full = arguments + ([f'{self.options_name} options'] if self.optional else [])
        more = ['@param options what else it is told'] if self.optional else []

        def method(given, given_tags, lines):
            head = wrapped(f'    public final {result} {name}({", ".join(given)}) {{\n')
            return '\n' + comment(doc, '    ', given_tags + [returned]) + head + wrapped(lines) + '    }\n'

        def call(values):
            return f'        return {name}({", ".join(values)});\n'

        names, defaults = [argument.split()[-1] for argument in arguments], [f'new {self.options_name}()']
        text = method(full, tags + more, body)
        if self.optional:
            text += method(arguments, tags, call(names + defaults))
        files = {field.argument(): field for field in self.required if field.names_files()}
        if files:
            paths = [files[argument].path_argument() if argument in files else argument for argument in arguments]
            texts = [f'PathText.of({value})' if argument in files else value for argument, value in zip(arguments, names)]
            text += method(paths + full[len(arguments):], tags + more, call(texts + (['options'] if self.optional else [])))
            if self.optional:
                text += method(paths, tags, call(texts + defaults))
        return text


def wrapped(line):
    """Lines of code, those too long broken at a comma."""
    lines = []
    for part in line.rstrip('\n').split('\n'):
        while len(part) > 120:
            cut = part.rfind(', ', 0, 119)
            lines.append(part[:cut + 1])
            part = ' ' * 12 + part[cut + 2:]
        lines.append(part)
    return '\n'.join(lines) + '\n'


CLASSES = {'ops': ('GraphOps', 'GraphCalls', 'The ops of a graph.', 'long number', 'number'),
           'layers': ('GraphLayers', 'GraphOps', 'The functions of ops, layers, losses, metrics, optimizers and schedules of a graph.', 'long number', 'number'),
           'sources': ('PipelineSources', 'PipelineTransforms', 'The sources of a pipeline, and its transforms.', 'Handle handle', 'handle'),
           'transforms': ('PipelineTransforms', 'PipelineCalls', 'The transforms of a pipeline.', 'Handle handle', 'handle')}


def builder_class(kind, builders):
    name, base, doc, argument, value = CLASSES[kind]
    methods = ''.join(builder.methods() for builder in builders)
    text = HEAD
    if kind not in ('sources', 'transforms'):
        text += 'import static org.tutti.Attributes.input;\n\n' if 'input(options' in methods else ''
        text += 'import java.util.List;\n\n' if 'List<' in methods else ''
    text += comment(doc) + f'abstract class {name} extends {base} {{\n    {name}({argument}) {{\n        super({value});\n    }}\n'
    return {name + '.java': text + methods + '}\n'}


SCHEMAS = {'context': 'Options of a context.', 'run': 'Options of an estimator.', 'train': 'Options of one training.',
           'predictor': 'Options of a predictor.', 'cluster': 'Options of a strategy of several processes.'}


def option_files():
    schemas = registries.option_schemas()
    files = {capitalised(key) + '.java': enumeration(capitalised(key), f'A choice of the option {key}.', values)
             for key, values in registries.option_choices(schemas).items()}
    for schema, keys in schemas.items():
        name = capitalised(schema) + 'Options'
        text = HEAD + comment(SCHEMAS[schema] + ' What is not set has its default.')
        text += f'public final class {name} extends Options {{\n    /** Nothing but defaults. */\n    public {name}() {{\n'
        text += f'        super("{schema}");\n    }}\n'
        for key in keys:
            kind = capitalised(key['key']) if 'values' in key else TYPES[key['type']]
            doc = sentence(key['doc']) + (f' Default: {registries.shown(key["default"])}.' if key['default'] else '')
            field = local(key['key'])
            text += '\n' + setter(doc, name, key['key'], field, f'{kind} {field}', field)
            if key['key'] in FILES:
                text += '\n' + setter(doc, name, key['key'], field, f'{PATHS[kind]} {field}', f'PathText.of({field})')
        files[name + '.java'] = text + '}\n'
    return files


def shared_enumerations(builders):
    """Each with all values that some entry knows, in the order in which entries name them."""
    values = {name: {} for name in SHARED}
    for builder in builders:
        for field in builder.required + builder.optional:
            if field.kind == 'enum' and field.name in SHARED:
                values[field.name].update(dict.fromkeys(field.spec['values']))
    return {capitalised(name) + '.java': enumeration(capitalised(name), SHARED[name], list(values[name])) for name in SHARED}


def files():
    """File name to text of each generated class."""
    result = option_files()
    all_builders = {kind: [Builder(entry) for entry in entries] for kind, entries in registries.entries().items()}
    result.update(shared_enumerations(sum(all_builders.values(), [])))
    for kind, builders in all_builders.items():
        result.update(builder_class(kind, builders))
        for builder in builders:
            result.update(builder.types())
    return result
