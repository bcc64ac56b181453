# SPDX-License-Identifier: Apache-2.0
#
# Makes C++ of the op registry: generate.py ops.yaml OUTPUT, where the name of OUTPUT says what is wanted:
#   op_table.cc        definitions with pointers to shape and gradient rules
#   op_attributes.h    one struct of typed attributes per op
#   op_attributes.cc   their readers and writers
# Refuses entries that contradict themselves, naming the op.
import os
import sys

import yaml

HEAD = "// SPDX-License-Identifier: Apache-2.0\n// Made by lib/graph/ops/generate.py from ops.yaml. Do not edit.\n"
ENTRY_KEYS = {
    "name", "doc", "revision", "inputs", "outputs", "attributes", "batch", "reduction", "infer", "gradient", "effect",
    "forms", "public", "regions",
}
INPUT_KEYS = {"name", "dtype", "match", "optional", "variadic", "minimum", "doc"}
ATTRIBUTE_KEYS = {
    "name", "type", "default", "values", "length", "minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "doc",
    "negative", "negative_doc",
}
CLASSES = {"any": "any", "float": "floating", "number": "number", "integer": "integer", "index": "index", "boolean": "boolean"}
DTYPES = ["f32", "f64", "i32", "i64", "u8", "f16", "bf16", "i8", "i16", "u16", "u32", "u64", "bytes"]
REDUCTIONS = {"sum": "sum", "max": "maximum", "min": "minimum"}
CPP_TYPES = {
    "bool": "bool", "i64": "int64_t", "f64": "double", "string": "std::string", "ints": "std::vector<int64_t>",
    "doubles": "std::vector<double>", "strings": "std::vector<std::string>", "dims": "Dims", "tensor": "tensor::Tensor",
    "dtype": "tensor::DType",
}
TYPE_NAMES = {"bool": "boolean", "enum": "enumeration"}
RESERVED = {"explicit", "default", "true", "false", "and", "or", "not"}


def load(path):
    """All op entries in order, group defaults applied, checked."""
    ops = []
    with open(path, encoding="utf-8") as file:
        for group in yaml.safe_load(file):
            for entry in group["ops"]:
                op = dict(group.get("defaults", {}))
                op.update(entry)
                op["group"] = group["group"]
                ops.append(complete(op))
    names = [(op["name"], op["revision"]) for op in ops]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"op {name[0]} revision {name[1]} stands twice in the registry")
    return ops


def complete(op):
    unknown = set(op) - ENTRY_KEYS - {"group"}
    if unknown:
        sys.exit(f"op {op.get('name')}: unknown keys {sorted(unknown)}")
    for key, value in {
        "revision": 1, "attributes": [], "reduction": "sum", "infer": op["name"], "gradient": op["name"], "effect": "pure",
        "forms": ["program", "routine"], "public": True, "regions": [], "doc": "",
    }.items():
        op.setdefault(key, value)
    if op["batch"] not in ("rowwise", "reduces", "mixes", "none"):
        sys.exit(f"op {op['name']}: batch {op['batch']}")
    if not op["forms"] or set(op["forms"]) - {"program", "routine"}:
        sys.exit(f"op {op['name']}: forms {op['forms']}")
    for one in op["inputs"]:
        if set(one) - INPUT_KEYS or (one["dtype"] not in CLASSES and one["dtype"] not in DTYPES):
            sys.exit(f"op {op['name']}: input {one}")
    for one in op["attributes"]:
        if set(one) - ATTRIBUTE_KEYS or (one["type"] not in CPP_TYPES and one["type"] != "enum"):
            sys.exit(f"op {op['name']}: attribute {one}")
        if one["type"] == "enum" and "default" in one and one["default"] not in one["values"]:
            sys.exit(f"op {op['name']}: default of {one['name']} is not among its values")
    return op


def text(value):
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").strip() + '"'


def flag(value):
    return "true" if value else "false"


def literal(kind, value):
    """A default as a C++ expression of the attribute's type."""
    if kind == "bool":
        return flag(value)
    if kind == "i64":
        return f"int64_t{{{value}}}"
    if kind == "f64":
        return repr(float(value))
    if kind in ("string", "enum"):
        return f"std::string({text(value)})"
    if kind == "ints":
        return "std::vector<int64_t>{" + ", ".join(str(v) for v in value) + "}"
    if kind == "doubles":
        return "std::vector<double>{" + ", ".join(repr(float(v)) for v in value) + "}"
    if kind == "dtype":
        return f"tensor::DType::{value}"
    sys.exit(f"no default of type {kind}")


def class_name(name):
    return "".join(part.capitalize() for part in name.split("_")) + "Attributes"


def enum_type(name):
    return "".join(part.capitalize() for part in name.split("_"))


def enumerator(name):
    return name + "_" if name in RESERVED else name


# ---- op_table.cc ----


def input_definition(one):
    fields = [f".name = {text(one['name'])}"]
    if one["dtype"] in CLASSES:
        fields.append(f".dtype_class = DTypeClass::{CLASSES[one['dtype']]}")
    else:
        fields += [".dtype_class = DTypeClass::exactly", f".dtype = tensor::DType::{one['dtype']}"]
    if "match" in one:
        fields.append(f".match = '{one['match']}'")
    if one.get("optional"):
        fields.append(".optional = true")
    if one.get("variadic"):
        fields.append(".variadic = true")
    if one.get("minimum"):
        fields.append(f".minimum_count = {one['minimum']}")
    if one.get("doc"):
        fields.append(f".doc = {text(one['doc'])}")
    return "{" + ", ".join(fields) + "}"


def output_definition(one):
    fields = [f".name = {text(one['name'])}"]
    if one.get("variadic"):
        fields.append(".variadic = true")
    if one.get("doc"):
        fields.append(f".doc = {text(one['doc'])}")
    return "{" + ", ".join(fields) + "}"


def attribute_definition(one):
    kind = one["type"]
    fields = [f".name = {text(one['name'])}", f".type = AttributeType::{TYPE_NAMES.get(kind, kind)}"]
    if "default" in one:
        fields.append(f".default_value = Attribute({literal(kind, one['default'])})")
    else:
        fields.append(".required = true")
    if kind == "enum":
        fields.append(".choices = {" + ", ".join(text(v) for v in one["values"]) + "}")
    if "length" in one:
        fields.append(f".length = {one['length']}")
    for bound in ("minimum", "maximum"):
        exclusive = "exclusive_" + bound
        if bound in one or exclusive in one:
            fields.append(f".{bound} = {float(one.get(bound, one.get(exclusive)))!r}")
    for bound in ("exclusive_minimum", "exclusive_maximum"):
        if bound in one:
            fields.append(f".{bound} = true")
    fields.append(f".doc = {text(one.get('doc', ''))}")
    return "{" + ", ".join(fields) + "}"


def op_definition(op):
    gradient = op["gradient"]
    kind = gradient if gradient in ("none", "unimplemented") else "differentiable"
    lines = [
        f".name = {text(op['name'])}",
        f".revision = {op['revision']}",
        ".inputs = {" + ",\n                 ".join(input_definition(one) for one in op["inputs"]) + "}",
        ".outputs = {" + ", ".join(output_definition(one) for one in op["outputs"]) + "}",
        ".attributes = {" + ",\n                     ".join(attribute_definition(one) for one in op["attributes"]) + "}",
        ".regions = {" + ", ".join(text(region) for region in op["regions"]) + "}",
        f".batch = BatchBehaviour::{op['batch']}",
        f".reduction = BatchReduction::{REDUCTIONS[op['reduction']]}",
        f".effect = Effect::{op['effect']}",
        f".differentiability = Differentiability::{kind}",
        f".program = {flag('program' in op['forms'])}",
        f".routine = {flag('routine' in op['forms'])}",
        f".is_public = {flag(op['public'])}",
        f".infer = &infer_{op['infer']}",
    ]
    if kind == "differentiable":
        lines.append(f".gradient = &gradient_{gradient}")
    lines.append(f".doc = {text(op['doc'])}")
    return "  table.push_back(OpDefinition{" + ",\n      ".join(lines) + "});\n"


def op_table(ops):
    infers = sorted({op["infer"] for op in ops})
    gradients = sorted({op["gradient"] for op in ops if op["gradient"] not in ("none", "unimplemented")})
    out = [HEAD, '#include "graph/ops/op_table.h"\n\nnamespace tutti::impl::graph::ops {\n\n']
    out += [f"base::Status infer_{name}(InferContext &context);\n" for name in infers]
    out += [f"base::Status gradient_{name}(GradientContext &context);\n" for name in gradients]
    groups = list(dict.fromkeys(op["group"] for op in ops))
    for group in groups:
        out.append(f"\nstatic void add_{group}(std::vector<OpDefinition> &table) {{\n")
        out += [op_definition(op) for op in ops if op["group"] == group]
        out.append("}\n")
    out.append("\nstd::vector<OpDefinition> make_op_table() {\n  std::vector<OpDefinition> table;\n")
    out.append(f"  table.reserve({len(ops)});\n")
    out += [f"  add_{group}(table);\n" for group in groups]
    out.append("  return table;\n}\n\n}  // namespace tutti::impl::graph::ops\n")
    return "".join(out)


# ---- op_attributes.h, op_attributes.cc ----


def field(one):
    kind = one["type"]
    doc = f"  /// {one['doc']}\n" if one.get("doc") else ""
    if kind == "enum":
        cpp = enum_type(one["name"])
        initial = f" = {cpp}::{enumerator(one['default'])}" if "default" in one else "{}"
    else:
        cpp = CPP_TYPES[kind]
        initial = f" = {literal(kind, one['default'])}" if "default" in one else "{}"
    return f"{doc}  {cpp} {one['name']}{initial};\n"


def attribute_header(ops):
    out = [HEAD, "//\n// Typed attributes of each op, defaults filled in. from() also checks types and bounds.\n"]
    out.append("#ifndef TUTTI_GRAPH_OPS_OP_ATTRIBUTES_H_\n#define TUTTI_GRAPH_OPS_OP_ATTRIBUTES_H_\n\n")
    out.append("#include <cstdint>\n#include <string>\n#include <string_view>\n#include <vector>\n\n")
    out.append('#include "base/status.h"\n#include "graph/attribute.h"\n#include "graph/graph.h"\n\n')
    out.append("namespace tutti::impl::graph::ops {\n")
    for op in ops:
        if not op["attributes"]:
            continue
        name = class_name(op["name"])
        out.append(f"\n/// Attributes of {op['name']}.\nstruct {name} {{\n")
        for one in op["attributes"]:
            if one["type"] == "enum":
                values = ", ".join(enumerator(value) for value in one["values"])
                out.append(f"  enum class {enum_type(one['name'])} {{ {values} }};\n")
        out += [field(one) for one in op["attributes"]]
        out.append(f"\n  static base::Result<{name}> from(const Node &node);\n")
        out.append("  /// All of them, as set on a node.\n  Attributes to_attributes() const;\n};\n")
    out.append("\n}  // namespace tutti::impl::graph::ops\n\n#endif  // TUTTI_GRAPH_OPS_OP_ATTRIBUTES_H_\n")
    return "".join(out)


def reader(op):
    name = class_name(op["name"])
    out = [f"\nbase::Result<{name}> {name}::from(const Node &node) {{\n"]
    out.append(f"  TUTTI_ASSIGN(const OpDefinition *const definition, definition_of(node, {text(op['name'])}));\n")
    out.append(f"  {name} result;\n")
    for one in op["attributes"]:
        if one["type"] == "enum":
            kind = enum_type(one["name"])
            out.append("  {\n    size_t choice = 0;\n")
            out.append(f"    TUTTI_TRY(read_choice(*definition, node, {text(one['name'])}, &choice));\n")
            out.append(f"    result.{one['name']} = static_cast<{kind}>(choice);\n  }}\n")
        else:
            out.append(f"  TUTTI_TRY(read_attribute(*definition, node, {text(one['name'])}, &result.{one['name']}));\n")
    out.append("  return result;\n}\n")
    return "".join(out)


def writer(op):
    name = class_name(op["name"])
    out = [f"\nAttributes {name}::to_attributes() const {{\n  Attributes result;\n"]
    for one in op["attributes"]:
        if one["type"] == "enum":
            choices = ", ".join(text(value) for value in one["values"])
            out.append(f"  static constexpr const char *k{enum_type(one['name'])}[] = {{{choices}}};\n")
            value = f"std::string(k{enum_type(one['name'])}[static_cast<size_t>({one['name']})])"
        else:
            value = one["name"]
        out.append(f"  result.emplace({text(one['name'])}, {value});\n")
    out.append("  return result;\n}\n")
    return "".join(out)


def attribute_source(ops):
    out = [HEAD, '#include "graph/ops/op_attributes.h"\n\n#include "graph/ops/attribute_reader.h"\n\n']
    out.append("namespace tutti::impl::graph::ops {\n")
    for op in ops:
        if op["attributes"]:
            out += [reader(op), writer(op)]
    out.append("\n}  // namespace tutti::impl::graph::ops\n")
    return "".join(out)


def main():
    ops = load(sys.argv[1])
    makers = {"op_table.cc": op_table, "op_attributes.h": attribute_header, "op_attributes.cc": attribute_source}
    for path in sys.argv[2:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(makers[os.path.basename(path)](ops))


if __name__ == "__main__":
    main()
