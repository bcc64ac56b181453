#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate_sources.py sources.yaml header.h table.cc: parameter structs and table of the dataset sources."""

from generate_transforms import HEAD, camel, definition_row, generate, parameter_struct, parameter_table, read_parameters

SOURCE_HEAD = HEAD.replace("transforms", "sources")


def header(sources):
    out = [SOURCE_HEAD, "#ifndef TUTTI_DATA_SOURCE_PARAMETERS_H_", "#define TUTTI_DATA_SOURCE_PARAMETERS_H_", "",
           "#include <cstdint>", "#include <optional>", "#include <string>", "#include <vector>", "", '#include "base/status.h"',
           '#include "data/dataset/dataset.h"', '#include "data/pipeline/pipeline.h"', "", "namespace tutti::impl::data {", ""]
    for source in sources:
        struct = camel(source["name"]) + "Parameters"
        out += [line.replace(f"struct {struct} {{", f"struct {struct} : SourceServices {{") for line in parameter_struct(struct, source)]
        out += [f"base::Result<DatasetRef> make_{source['name']}(const {struct} &parameters);", ""]
    return "\n".join(out + ["}  // namespace tutti::impl::data", "", "#endif  // TUTTI_DATA_SOURCE_PARAMETERS_H_", ""])


def make_function(source):
    name = source["name"]
    return [f"Result<DatasetRef> call_{name}(const Attributes &attributes, const SourceServices &services) {{",
            *read_parameters(source), "  static_cast<SourceServices &>(parameters) = services;", f"  return make_{name}(parameters);", "}", ""]


def table(sources):
    out = [SOURCE_HEAD, '#include "data/pipeline/parameter_reader.h"', '#include "data/source_parameters.h"', "",
           "namespace tutti::impl::data {", "", "using base::Result;", "using graph::Attributes;", "", "namespace {", ""]
    for source in sources:
        out += parameter_table(source) + make_function(source)
    out.append("constexpr SourceDefinition kSources[] = {")
    out += [definition_row(source, f"call_{source['name']}") for source in sources]
    out += ["};", "", "}  // namespace", "", "std::span<const SourceDefinition> source_definitions() { return kSources; }", "",
            "}  // namespace tutti::impl::data", ""]
    return "\n".join(out)


if __name__ == "__main__":
    generate(header, table)
