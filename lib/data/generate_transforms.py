#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate_transforms.py transforms.yaml header.h table.cc: parameter structs and table of the dataset transforms."""

import json
import sys

import yaml

HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Generated from lib/data/transforms.yaml by generate_transforms.py.
"""

TYPES = {"boolean": "bool", "i64": "int64_t", "f64": "double", "string": "std::string"}
ATTRIBUTE_KEYS = {"name", "type", "default", "minimum", "maximum", "doc"}


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
    if value is None:
        return "{}"
    return json.dumps(value)


def bound(parameter, key, otherwise):
    return repr(float(parameter[key])) if key in parameter else otherwise


def check(transforms):
    names = [(transform["name"], transform["revision"]) for transform in transforms]
    if names != sorted(set(names)):
        sys.exit("transforms.yaml: entries must be ordered by name and revision, each once")
    for transform in transforms:
        for parameter in transform["parameters"]:
            unknown = set(parameter) - ATTRIBUTE_KEYS
            if unknown or parameter["type"] not in TYPES or not parameter.get("doc"):
                sys.exit(f"transforms.yaml: {transform['name']}.{parameter.get('name')}: bad entry {unknown}")


def header(transforms):
    out = [HEAD, "#ifndef TUTTI_DATA_TRANSFORM_PARAMETERS_H_", "#define TUTTI_DATA_TRANSFORM_PARAMETERS_H_", "",
           "#include <cstdint>", "#include <optional>", "#include <string>", "", '#include "base/status.h"',
           '#include "data/dataset.h"', '#include "data/pipeline.h"', "", "namespace tutti::impl::data {", ""]
    for transform in transforms:
        struct = camel(transform["name"]) + "Parameters"
        out += [f"/// {' '.join(transform['doc'].split())}", f"struct {struct} {{"]
        for parameter in transform["parameters"]:
            out.append(f"  /// {parameter['doc']}")
            out.append(f"  {field_type(parameter)} {parameter['name']} = {literal(parameter)};")
        out += ["};",
                f"base::Result<DatasetRef> apply_{transform['name']}(const DatasetRef &input, "
                f"const {struct} &parameters, TransformArguments &arguments);", ""]
    out += ["}  // namespace tutti::impl::data", "", "#endif  // TUTTI_DATA_TRANSFORM_PARAMETERS_H_", ""]
    return "\n".join(out)


def parameter_row(parameter):
    default = "" if "default" not in parameter else json.dumps(parameter["default"])
    type_name = parameter["type"]
    fields = [json.dumps(parameter["name"]), f"ParameterType::{type_name}",
              "false" if "default" in parameter else "true", json.dumps(default), bound(parameter, "minimum", "-kInfinity"),
              bound(parameter, "maximum", "kInfinity"), json.dumps(parameter["doc"])]
    return "    {" + ", ".join(fields) + "},"


def apply_function(transform):
    name = transform["name"]
    out = [f"Result<DatasetRef> call_{name}(const DatasetRef &input, const Attributes &attributes, "
           "TransformArguments &arguments) {"]
    for need in transform.get("needs", []):
        out.append(f"  TUTTI_TRY(require_argument(has_{need}(arguments), \"{need}\"));")
    out.append(f"  {camel(name)}Parameters parameters;")
    for parameter in transform["parameters"]:
        out.append(f"  read_parameter(attributes, \"{parameter['name']}\", parameters.{parameter['name']});")
    if not transform["parameters"]:
        out.append("  (void)attributes;")
    out += [f"  return apply_{name}(input, parameters, arguments);", "}", ""]
    return out


def table(transforms):
    out = [HEAD, '#include <limits>', "", '#include "data/parameter_reader.h"', '#include "data/transform_parameters.h"', "",
           "namespace tutti::impl::data {", "", "using base::Result;", "using graph::Attributes;", "", "namespace {", "",
           "constexpr double kInfinity = std::numeric_limits<double>::infinity();", ""]
    for transform in transforms:
        if transform["parameters"]:
            out += [f"constexpr ParameterDefinition k{camel(transform['name'])}Parameters[] = {{"]
            out += [parameter_row(parameter) for parameter in transform["parameters"]]
            out += ["};", ""]
        out += apply_function(transform)
    out.append("constexpr TransformDefinition kTransforms[] = {")
    for transform in transforms:
        name = transform["name"]
        parameters = f"k{camel(name)}Parameters" if transform["parameters"] else "{}"
        doc = json.dumps(" ".join(transform["doc"].split()))
        out.append(f"    {{\"{name}\", {transform['revision']}, {doc}, {parameters}, call_{name}}},")
    out += ["};", "", "}  // namespace", "",
            "std::span<const TransformDefinition> transform_definitions() { return kTransforms; }", "",
            "}  // namespace tutti::impl::data", ""]
    return "\n".join(out)


def main():
    source, header_path, table_path = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        transforms = yaml.safe_load(file)
    check(transforms)
    for path, text in ((header_path, header(transforms)), (table_path, table(transforms))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
