#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes calls of every public function with bad handles. usage: generate_sweep.py OUTPUT HEADER...

Every handle argument of a call is the same kind of bad: NULL, stale, foreign or of another type; everything else is
valid. A fallible function must answer INVALID_ARGUMENT (with NULL: unless all its handles are nullable) and set an
error; every other function must just survive.
"""
import re
import sys

# Handle arguments that may be NULL, by type.
NULLABLE = {'tutti_context', 'tutti_cancel', 'tutti_options', 'tutti_hooks', 'tutti_strategy'}
# Functions whose handle argument of such a type may not be NULL all the same.
STRICT = {'tutti_cancel_request', 'tutti_cancel_set_deadline', 'tutti_hooks_add', 'tutti_options_check'}
# Takes no handle in, or takes over what it is given.
SKIPPED = {'tutti_error_set'}


def functions(paths):
    for path in paths:
        text = re.sub(r'/\*.*?\*/', '', open(path, encoding='utf-8').read(), flags=re.S)
        for match in re.finditer(r'TUTTI_API\s+([\w\s\*]+?)\b(tutti_\w+)\s*\(([^;]*?)\)\s*;', text, flags=re.S):
            result, name, arguments = (' '.join(part.split()) for part in match.groups())
            yield result, name, [] if arguments == 'void' else [a.strip() for a in arguments.split(',')]


def kind_of(argument, handles):
    """('handle', type), ('value', C expression)."""
    # The name goes; what is left is the type.
    kind = re.sub(r'\s*\b\w+(\[\d*\])?$', '', argument).strip()
    bare = kind.replace('const', '').replace(' ', '')
    if bare.endswith('*') and not bare.endswith('**') and bare[:-1] in handles and '*const*' not in kind.replace(' ', ''):
        return 'handle', bare[:-1]
    if kind in ('int64_t', 'int32_t', 'uint8_t'):
        return 'value', '1'
    if kind == 'double':
        return 'value', '1.0'
    if kind == 'tutti_value':
        return 'value', 'sweep_value'
    if kind.replace(' ', '') == 'constchar*':
        return 'value', '"x"'
    if kind.endswith('_fn'):
        return 'value', {'tutti_destroy_fn': 'NULL', 'tutti_release_fn': 'NULL'}.get(kind, 'NULL')
    if kind.replace(' ', '') == 'tutti_error**':
        return 'error', None
    if kind.replace(' ', '') == 'void*':
        return 'value', 'NULL'
    return 'value', f'({kind})sweep_scratch()'


def main():
    output, headers = sys.argv[1], sys.argv[2:]
    listed = list(functions(headers))
    handles = {name[:-len('_unref')] for _, name, _ in listed if name.endswith('_unref')} | {'tutti_graph', 'tutti_hook_event'}
    lines = ['/* Generated; see generate_sweep.py. */']
    count = 0
    for result, name, arguments in listed:
        if name in SKIPPED:
            continue
        kinds = [kind_of(a, handles) for a in arguments]
        types = [value for kind, value in kinds if kind == 'handle']
        if not types:
            continue
        fallible = kinds[-1][0] == 'error'
        null_is_legal = name == 'tutti_error_create' or (name not in STRICT and all(t in NULLABLE for t in types))
        call = ', '.join(f'bad->{value}' if kind == 'handle' else '&err' if kind == 'error' else value for kind, value in kinds)
        count += 1
        if fallible:
            guard = 'if (bad->is_null) return; ' if null_is_legal else ''
            lines.append(f'static void sweep_{name}(const struct bad_handles *bad) {{ {guard}tutti_error *err = NULL; '
                         f'int32_t code = {name}({call}); sweep_check("{name}", bad, code, err); }}')
        else:
            lines.append(f'static void sweep_{name}(const struct bad_handles *bad) {{ (void){name}({call}); }}')
    lines.append('static void (*const sweeps[])(const struct bad_handles *) = {')
    lines += [f'  sweep_{name},' for _, name, arguments in listed
              if name not in SKIPPED and any(kind_of(a, handles)[0] == 'handle' for a in arguments)]
    lines.append('};')
    fields = ''.join(f'  {h} *{h};\n' for h in sorted(handles))
    head = 'struct bad_handles {\n  const char *kind;\n  int is_null;\n' + fields + '};\n'
    fill = 'static void fill_bad_handles(struct bad_handles *bad, void *handle, void *for_cancel) {\n  (void)for_cancel;\n'
    fill += ''.join(f'  bad->{h} = ({h} *)({"for_cancel" if h == "tutti_cancel" else "handle"});\n' for h in sorted(handles)) + '}\n'
    head += fill + 'static void sweep_check(const char *function, const struct bad_handles *bad, int32_t code, tutti_error *err);\n'
    head += 'static void *sweep_scratch(void);\nstatic const tutti_value sweep_value = {0};\n'
    with open(output, 'w', encoding='utf-8') as file:
        file.write(head + '\n'.join(lines) + f'\nenum {{ SWEPT_FUNCTIONS = {count} }};\n')


if __name__ == '__main__':
    main()
