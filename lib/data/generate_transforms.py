#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate_transforms.py transforms.yaml header.h table.cc: parameter structs and table of the dataset transforms.

generate_sources.py does the same for sources, with the functions that both registries need.
"""

import json
import os
import sys

import yaml

HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Generated from lib/data/transforms.yaml by generate_transforms.py.
"""

TYPES = {"boolean": "bool", "i64": "int64_t", "f64": "double", "string": "std::string",
         "strings": "std::vector<std::string>", "ints": "std::vector<int64_t>", "doubles": "std::vector<double>"}
ATTRIBUTE_KEYS = {"name", "type", "default", "minimum", "maximum", "doc", "negative", "negative_doc"}


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def is_optional(parameter):
    return "default" in parameter and parameter["default"] is None


def field_type(parameter):
    base = TYPES[parameter["type"]]
    return f"std::optional<{base}>" if is_optional(parameter) else base


def literal(parameter):
    """The default as C++."""
    value = parameter.get("default")
    if value is None or value == []:
        return "{}"
    return json.dumps(value)


def bound(parameter, key, otherwise):
    return repr(float(parameter[key])) if key in parameter else otherwise


def is_good(parameter):
    if set(parameter) - ATTRIBUTE_KEYS or parameter["type"] not in TYPES or not parameter.get("doc"):
        return False
    return parameter["type"] != "strings" or parameter.get("default", []) == []


def check(entries, file):
    names = [(entry["name"], entry["revision"]) for entry in entries]
    if names != sorted(set(names)):
        sys.exit(f"{file}: entries must be ordered by name and revision, each once")
    for entry in entries:
        for parameter in entry["parameters"]:
            if not is_good(parameter):
                sys.exit(f"{file}: {entry['name']}.{parameter.get('name')}: bad entry")


def parameter_struct(name, entry):
    out = [f"/// {' '.join(entry['doc'].split())}", f"struct {name} {{"]
    for parameter in entry["parameters"]:
        out.append(f"  /// {parameter['doc']}")
        out.append(f"  {field_type(parameter)} {parameter['name']} = {literal(parameter)};")
    return out + ["};"]


def header(transforms):
    out = [HEAD, "#ifndef TUTTI_DATA_TRANSFORM_PARAMETERS_H_", "#define TUTTI_DATA_TRANSFORM_PARAMETERS_H_", "",
           "#include <cstdint>", "#include <optional>", "#include <string>", "#include <vector>", "",
           '#include "base/status.h"',
           '#include "data/dataset/dataset.h"', '#include "data/pipeline/pipeline.h"', "", "namespace tutti::impl::data {", ""]
    for transform in transforms:
        struct = camel(transform["name"]) + "Parameters"
        out += parameter_struct(struct, transform)
        out += [f"base::Result<DatasetRef> apply_{transform['name']}(const DatasetRef &input, "
                f"const {struct} &parameters, TransformArguments &arguments);", ""]
    out += ["}  // namespace tutti::impl::data", "", "#endif  // TUTTI_DATA_TRANSFORM_PARAMETERS_H_", ""]
    return "\n".join(out)


def parameter_row(parameter):
    default = "" if "default" not in parameter else json.dumps(parameter["default"])
    type_name = parameter["type"]
    fields = [json.dumps(parameter["name"]), f"ParameterType::{type_name}",
              "false" if "default" in parameter else "true", json.dumps(default), bound(parameter, "minimum", "-kOpenBound"),
              bound(parameter, "maximum", "kOpenBound"), json.dumps(parameter["doc"])]
    return "    {" + ", ".join(fields) + "},"


def read_parameters(entry):
    out = [f"  {camel(entry['name'])}Parameters parameters;"]
    for parameter in entry["parameters"]:
        out.append(f"  read_parameter(attributes, \"{parameter['name']}\", parameters.{parameter['name']});")
    return out + ([] if entry["parameters"] else ["  (void)attributes;"])


def parameter_table(entry):
    if not entry["parameters"]:
        return []
    return [f"constexpr ParameterDefinition k{camel(entry['name'])}Parameters[] = {{",
            *[parameter_row(parameter) for parameter in entry["parameters"]], "};", ""]


def definition_row(entry, function):
    """The beginning of every definition: name, revision, documentation, parameters, and the function behind it."""
    parameters = f"k{camel(entry['name'])}Parameters" if entry["parameters"] else "{}"
    doc = json.dumps(" ".join(entry["doc"].split()))
    return f"    {{\"{entry['name']}\", {entry['revision']}, {doc}, {parameters}, {function}}},"


# What a transform may be given besides its parameters, and what it is called where it is of no use.
ARGUMENTS = {"others": "another dataset", "graph": "a graph", "map": "a function", "filter": "a predicate",
             "expand": "a function to a dataset", "scan": "a step of a scan", "state": "a state",
             "like": "a dataset 'like' what it yields"}


def apply_function(transform):
    name = transform["name"]
    out = [f"Result<DatasetRef> call_{name}(const DatasetRef &input, const Attributes &attributes, "
           "TransformArguments &arguments) {"]
    for need in transform.get("needs", []):
        out.append(f"  TUTTI_TRY(require_argument(has_{need}(arguments), \"{need}\"));")
    taken = set(transform.get("needs", [])) | ({"like"} if transform.get("like") else set())
    for argument, what in ARGUMENTS.items():
        if argument not in taken:
            out.append(f"  TUTTI_TRY(refuse_argument(has_{argument}(arguments), \"{what}\"));")
    out += read_parameters(transform)
    out += [f"  return apply_{name}(input, parameters, arguments);", "}", ""]
    return out


def table(transforms):
    out = [HEAD, '#include "data/pipeline/parameter_reader.h"', '#include "data/transform_parameters.h"', "",
           "namespace tutti::impl::data {", "", "using base::Result;", "using graph::Attributes;", "", "namespace {", ""]
    for transform in transforms:
        out += parameter_table(transform) + apply_function(transform)
    out.append("constexpr TransformDefinition kTransforms[] = {")
    out += [definition_row(transform, f"call_{transform['name']}") for transform in transforms]
    out += ["};", "", "}  // namespace", "",
            "std::span<const TransformDefinition> transform_definitions() { return kTransforms; }", "",
            "}  // namespace tutti::impl::data", ""]
    return "\n".join(out)


def generate(make_header, make_table):
    """The program: reads argument 1, writes arguments 2 and 3."""
    source, header_path, table_path = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        entries = yaml.safe_load(file)
    check(entries, os.path.basename(source))
    for path, text in ((header_path, make_header(entries)), (table_path, make_table(entries))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    generate(header, table)
