# SPDX-License-Identifier: Apache-2.0
#
# Makes the table of op_signature.h of the op registry: generate_op_table.py ops.yaml OUTPUT. It has the public ops that
# maps of datasets run, each in its newest revision, in the order of their names.
import importlib.util
import os
import sys

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by lib/tool/generate_op_table.py from ops.yaml. Do not edit.
#include "tool/dataset/op_signature.h"

namespace tutti::tool {

const std::vector<OpSignature> &op_signatures() {
  static const std::vector<OpSignature> signatures = {
"""
TAIL = """  };
  return signatures;
}

}  // namespace tutti::tool
"""


def load_registry(path):
    """The generator beside the registry knows how it is read."""
    spec = importlib.util.spec_from_file_location("generate", os.path.join(os.path.dirname(path), "generate.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(path)


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def flag(value):
    return "true" if value else "false"


def input_text(one):
    fields = [quoted(one["name"]), quoted(one["dtype"]), quoted(one.get("match", "")), flag(one.get("optional")),
              flag(one.get("variadic"))]
    return "{" + ", ".join(fields) + "}"


def attribute_text(one):
    values = ", ".join(quoted(value) for value in one.get("values", []))
    fields = [quoted(one["name"]), f"AttributeKind::{one['type']}_", flag("default" not in one), "{" + values + "}"]
    return "{" + ", ".join(fields) + "}"


def signature(op):
    inputs = ", ".join(input_text(one) for one in op["inputs"])
    attributes = ",\n       ".join(attribute_text(one) for one in op["attributes"])
    return f"      {{{quoted(op['name'])}, {op['revision']},\n       {{{inputs}}},\n       {{{attributes}}}}},\n"


def main():
    newest = {}
    for op in load_registry(sys.argv[1]):
        if op["public"] and "routine" in op["forms"] and op["revision"] >= newest.get(op["name"], op)["revision"]:
            newest[op["name"]] = op
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(signature(newest[name]) for name in sorted(newest)) + TAIL)


main()
