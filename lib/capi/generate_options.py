#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the option schemas as a C++ table. usage: generate_options.py OPTIONS_YAML OUTPUT"""
import json
import sys

import yaml

TYPES = {'bool': 1, 'i64': 2, 'f64': 3, 'string': 4}


def value(option):
    default = option['default']
    return {'bool': lambda: str(default).lower(), 'i64': lambda: f'int64_t{{{default}}}', 'f64': lambda: repr(float(default)),
            'string': lambda: f'std::string({json.dumps(default)})'}[option['type']]()


def key_code(option):
    assert option['type'] == 'string' or 'environment' not in option, f'{option["key"]}: only a text is read from the environment'
    described = {**option, 'documentation': option['doc']}
    del described['doc']
    values = ', '.join(json.dumps(v) for v in option.get('values', []))
    return (f'      {{{json.dumps(option["key"])}, {TYPES[option["type"]]}, {value(option)}, '
            f'{float(option.get("minimum", "-inf"))}, {float(option.get("maximum", "inf"))}, {{{values}}}, {str(option.get("secret", False)).lower()}, '
            f'{json.dumps(option.get("environment", ""))}, '
            f'{json.dumps(json.dumps(described))}}},\n').replace('-inf', '-kUnbounded').replace(' inf', ' kUnbounded')


def main():
    source, output = sys.argv[1:3]
    schemas = yaml.safe_load(open(source, encoding='utf-8'))
    with open(output, 'w', encoding='utf-8') as file:
        file.write('// SPDX-License-Identifier: Apache-2.0\n// Generated from options.yaml; do not edit.\n#include "capi/options_c.h"\n\n'
                   '#include <limits>\n\nnamespace tutti::impl::capi {\n\n'
                   'constexpr double kUnbounded = std::numeric_limits<double>::infinity();\n\n'
                   'std::span<const OptionSchema> option_schemas() {\n  static const auto *const table = new std::vector<OptionSchema>{\n')
        for name, keys in schemas.items():
            file.write(f'    {{{json.dumps(name)}, {{\n' + ''.join(map(key_code, keys)) + '    }},\n')
        file.write('  };\n  return *table;\n}\n\n}  // namespace tutti::impl::capi\n')


if __name__ == '__main__':
    main()
