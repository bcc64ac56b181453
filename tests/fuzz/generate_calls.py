#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one call with drawn arguments for every public function. usage: generate_calls.py
OUTPUT.h OUTPUT.cc REGISTRY... -- HEADER...

The headers say what there is to call, the registries (YAML) which words mean something: names of ops, layers, transforms
and options and their keys. A function with an argument of a kind that is not known here, and that is not in WRITTEN_BY_HAND,
ends this program, so that a new function cannot be forgotten.
"""
import json
import os
import re
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'capi'))
from generate_sweep import functions  # noqa: E402

# Arguments that depend on each other in ways that no rule below knows: see hand_written_calls.cc.
WRITTEN_BY_HAND = {
    'tutti_cluster_resolver_connect',  # waits for nobody
    'tutti_cancel_set_deadline',  # always a deadline, or a sequence could wait for ever
    'tutti_tensor_from_data',  # the size fits the shape, often
    'tutti_tensor_take_memory',
    'tutti_tensor_take_dlpack',
    'tutti_context_add_file_system',
    'tutti_pipeline_set_arrow_stream',
    'tutti_dataset_to_arrow',
    'tutti_dataset_count_classes',  # room for as many counts as are said
    'tutti_tensor_to_dlpack',
    'tutti_tensor_get_mutable_data',
    'tutti_record_writer_create',  # files stay inside the scratch directory
    'tutti_record_writer_write',
    'tutti_options_set_string',  # names of directories stay inside the scratch directory
    'tutti_options_set_json',
    'tutti_serve_map',  # would take the standard streams
    'tutti_pipeline_set_string',  # paths of caches and snapshots stay inside the scratch directory
}
CALLBACKS = {
    'tutti_model_fn': 'model_callback',
    'tutti_hook_fn': 'hook_callback',
    'tutti_map_graph_fn': 'map_graph_callback',
    'tutti_map_fn': 'map_callback',
    'tutti_map_to_fn': 'map_to_callback',
    'tutti_predicate_fn': 'predicate_callback',
    'tutti_expand_fn': 'expand_callback',
    'tutti_input_fn': 'input_callback',
    'tutti_scan_fn': 'scan_callback',
    'tutti_generator_fn': 'generator_callback',
    'tutti_log_fn': 'log_callback',
    'tutti_destroy_fn': 'destroy_callback',
}
SCALARS = {'int64_t': 'i64', 'int32_t': 'i32', 'uint8_t': 'u8', 'double': 'f64', 'tutti_value': 'value'}
ARRAYS = {'int64_t': 'dims', 'double': 'doubles', 'tutti_value': 'values', 'char*': 'texts'}


def split(argument):
    """The type without spaces, and the name."""
    match = re.fullmatch(r'(.*?)(\w+)', argument)
    return match.group(1).replace(' ', ''), match.group(2)


def plain(kind):
    return kind.replace('const', '')


class Call:
    """The lines of one call."""

    def __init__(self, name, result, arguments, handles):
        self.name, self.result, self.handles = name, result, handles
        self.arguments = [split(a) for a in arguments]
        self.before, self.values, self.after = [], [], []
        self.error = next((i for i, a in enumerate(self.arguments) if a == ('tutti_error**', 'err')), None)
        self.has_destroy = any(kind == 'tutti_destroy_fn' for kind, _ in self.arguments)
        self.user = None

    def is_array(self, index):
        kind, _ = self.arguments[index]
        bare = plain(kind)
        if bare.endswith('**') and kind.endswith('*const*'):
            return True
        return bare in ('int64_t*', 'double*', 'tutti_value*') and not self.is_one_number(index)

    def is_one_number(self, index):
        """A result: nothing says how many there are."""
        return self.arguments[index][0] == 'int64_t*' and not any(map(self.may_count, range(len(self.arguments))))

    def may_count(self, index):
        kind, name = self.arguments[index]
        return kind == 'int64_t' and name.endswith(('count', 'rank'))

    def is_count(self, index):
        return self.may_count(index) and any(self.is_array(i) for i in range(len(self.arguments)))

    def argument(self, index):
        kind, name = self.arguments[index]
        bare, here = plain(kind), f'a{index}'
        line = None
        if index == self.error:
            line, value = f'Err {here}(s);', f'{here}.get()'
        elif self.is_count(index):
            line, value = None, 'count'
        elif self.is_array(index) and bare[:-2] in self.handles and bare.endswith('**'):
            line, value = f'const auto {here} = s.handles<{bare[:-2]}>(count);', f'{here}.get()'
        elif self.is_array(index):
            element = 'char*' if bare == 'char**' else bare[:-1]
            line, value = f'const auto {here} = s.{ARRAYS[element]}(count);', f'{here}.get()'
            if kind == 'tutti_value*':
                self.after.append(f's.keep_values({here}.get(), count);')
        elif kind in CALLBACKS:
            if kind == 'tutti_destroy_fn':
                line, value = None, CALLBACKS[kind]
            else:
                line, value = f'const auto {here} = s.sometimes_null({CALLBACKS[kind]});', here
        elif kind == 'void*':
            line, value = f'Registration *const {here} = s.registration({str(self.has_destroy).lower()}, "{self.name}");', here
        elif kind in SCALARS:
            line, value = f'const auto {here} = s.{SCALARS[kind]}("{name}");', here
        elif kind == 'constchar*':
            line, value = f'const char *const {here} = s.text("{name}");', here
        elif kind == 'constchar**':
            line, value = f'OutText {here}(s);', f'{here}.get()'
            self.after.append(f'{here}.done(code);')
        elif self.is_one_number(index):
            line, value = f'int64_t {here} = 0;', f'&{here}'
        elif kind == 'uint8_t*':
            line, value = f'uint8_t {here} = 0;', f'&{here}'
        elif bare.endswith('**') and bare[:-2] in self.handles:
            line, value = f'Out<{bare[:-2]}> {here}(s);', f'{here}.get()'
            self.after.append(f'{here}.done("{self.name}", code);')
        elif bare == 'tutti_cancel*' and not self.name.startswith('tutti_cancel_'):
            line, value = f'tutti_cancel *const {here} = s.token();', here
        elif bare.endswith('*') and bare[:-1] in self.handles:
            line, value = f'{bare[:-1]} *const {here} = s.handle<{bare[:-1]}>();', here
        else:
            sys.exit(f'{self.name}: no rule for argument {name!r} of type {kind!r}; see WRITTEN_BY_HAND in generate_calls.py')
        if line:
            self.before.append(line)
        self.values.append(value)

    def text(self):
        if any(self.is_count(i) for i in range(len(self.arguments))):
            self.before.append('const int64_t count = s.count();')
        for index in range(len(self.arguments)):
            self.argument(index)
        call = f'{self.name}({", ".join(self.values)})'
        result = self.result.replace(' ', '')
        if self.error is not None:
            call = f'const int32_t code = {call};'
            self.after.insert(0, f's.check_code("{self.name}", code, a{self.error});')
        elif result == 'void':
            call += ';'
        elif result == 'constchar*':
            call = f's.look_at({call});'
        elif result == 'tutti_value':
            call = f's.keep_value({call});'
        elif result.endswith('*') and result[:-1] in self.handles:
            call = f's.keep({call}, 0);'
        else:
            call = f'(void){call};'
        if self.name.endswith('_ref'):
            self.after.append('s.count_reference(a0);')
        lines = self.before + [call] + self.after
        parameter = '&s' if any('s.' in line or '(s)' in line for line in lines) else '&'
        return f'void call_{short(self.name)}(Sequence {parameter}) {{\n' + ''.join(f'  {line}\n' for line in lines) + '}\n'


def words_of(node, found):
    """Every name in a registry that a caller could write."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ('name', 'key', 'default') and isinstance(value, str) and value:
                found.add(value)
            elif key == 'values' and isinstance(value, list):
                found.update(str(v) for v in value)
            words_of(value, found)
    elif isinstance(node, list):
        for value in node:
            words_of(value, found)


def short(handle):
    return handle[len('tutti_'):]


def counted_handles(listed):
    return sorted({name[:-len('_unref')] for _, name, _ in listed if name.endswith('_unref')})


def all_handles(listed):
    return counted_handles(listed) + ['tutti_graph', 'tutti_hook_event']


def kinds_text(listed):
    """The header: what kinds of handles there are, and the calls written by hand."""
    handles = all_handles(listed)
    lines = ['// Generated; see generate_calls.py.', '#ifndef TUTTI_FUZZ_API_CALLS_H_', '#define TUTTI_FUZZ_API_CALLS_H_',
             '#include "api_sequence.h"', 'namespace tutti_fuzz {', 'enum Kind {']
    lines += [f'  kind_{short(handle)},' for handle in handles] + ['  kind_count', '};']
    for handle in handles:
        lines.append(f'template <> struct KindOf<{handle}> {{ static constexpr int value = kind_{short(handle)}; }};')
    lines += [f'void call_{short(name)}(Sequence &s);' for name in sorted(WRITTEN_BY_HAND)]
    lines += ['void drop(int kind, void *handle);', 'const char *name_of(int kind);', 'const std::vector<Function> &functions();',
              'const std::vector<const char *> &registry_words();', '}  // namespace tutti_fuzz', '#endif']
    return '\n'.join(lines) + '\n'


def calls_text(listed, words):
    handles, counted = all_handles(listed), counted_handles(listed)
    lines = ['// Generated; see generate_calls.py.', '#include "api_calls.h"', 'namespace tutti_fuzz {']
    lines += ['void drop(int kind, void *handle) {', '  switch (kind) {']
    for handle in counted:
        lines.append(f'    case kind_{short(handle)}: {handle}_unref(static_cast<{handle} *>(handle)); break;')
    lines += ['    default: break;', '  }', '}', 'const char *name_of(int kind) {']
    lines += ['  static const char *const names[] = {' + ', '.join(json.dumps(short(h)) for h in handles) + '};', '  return names[kind];', '}']
    lines += ['const std::vector<const char *> &registry_words() {', '  static const std::vector<const char *> words = {',
              ', '.join(json.dumps(w) for w in sorted(words)), '};', '  return words;', '}', 'namespace {']
    lines += [Call(name, result, arguments, handles).text() for result, name, arguments in listed if name not in WRITTEN_BY_HAND]
    lines += ['}  // namespace', 'const std::vector<Function> &functions() {', '  static const std::vector<Function> list = {']
    for _, name, arguments in listed:
        on_graph = bool(arguments) and plain(split(arguments[0])[0]) == 'tutti_graph*'
        lines.append(f'    {{"{name}", call_{short(name)}, {str(on_graph).lower()}}},')
    lines += ['};', '  return list;', '}', '}  // namespace tutti_fuzz']
    return '\n'.join(lines) + '\n'


def main():
    header, source = sys.argv[1:3]
    middle = sys.argv.index('--')
    listed = list(functions(sys.argv[middle + 1:]))
    unknown = WRITTEN_BY_HAND - {name for _, name, _ in listed}
    if unknown:
        sys.exit(f'no such public functions: {", ".join(sorted(unknown))}')
    words = set()
    for path in sys.argv[3:middle]:
        with open(path, encoding='utf-8') as file:
            words_of(yaml.safe_load(file), words)
    with open(header, 'w', encoding='utf-8') as file:
        file.write(kinds_text(listed))
    with open(source, 'w', encoding='utf-8') as file:
        file.write(calls_text(listed, words))


if __name__ == '__main__':
    main()
