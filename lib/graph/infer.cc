// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph {
namespace {

constexpr size_t kMaximumRank = tensor::Shape::kMaxRank;
constexpr int64_t kMaximumElements = int64_t{1} << 48;

// A shape any value may have: bounded rank, dimensions that exist, no overflow of what is constant.
base::Status check_dims(const InferContext &context, const ValueInfo &info) {
  if (info.dims.size() > kMaximumRank) {
    return context.error(base::concat("result ", to_string(info.dims), " has rank ", info.dims.size(),
                                      ", expected at most ", kMaximumRank));
  }
  int64_t count = 1;
  for (const Dim &dim : info.dims) {
    if (!dim.is_representable() || (dim.is_constant() && dim.constant() < 0)) {
      return context.error(base::concat("result has an impossible shape ", to_string(info.dims)));
    }
    if (dim.is_constant() && dim.constant() > 0 &&
        (__builtin_mul_overflow(count, dim.constant(), &count) || count > kMaximumElements)) {
      return context.error(base::concat("result ", to_string(info.dims), " has more than 2^48 elements"));
    }
  }
  if (!tensor::is_valid(info.dtype)) return context.error("result has no valid dtype");
  return {};
}

}  // namespace

void InferContext::add_output(tensor::DType dtype, Dims dims) {
  ValueInfo info;
  info.dtype = dtype;
  info.dims = std::move(dims);
  info.output_index = static_cast<int32_t>(outputs_.size());
  outputs_.push_back(std::move(info));
}

std::string InferContext::name_of_input(size_t index) const {
  const InputDefinition &input = definition_.inputs[std::min(index, definition_.inputs.size() - 1)];
  std::string text = base::concat("input '", input.name, "'");
  if (input.variadic) text += base::concat(" #", index + 1 - (definition_.inputs.size() - 1));
  return has_input(index) ? base::concat(text, " ", to_string(dims(index))) : text;
}

base::Status InferContext::error(std::string_view text) const {
  if (node_.scope_name.empty()) return base::invalid_argument("op '", node_.op, "': ", text);
  return base::invalid_argument("node '", node_.scope_name, "' (", node_.op, "): ", text);
}

base::Status InferContext::input_error(size_t index, std::string_view text) const {
  return error(base::concat(name_of_input(index), " ", text));
}

base::Status InferContext::inputs_error(size_t first, size_t second, std::string_view text) const {
  return error(base::concat(name_of_input(first), " and ", name_of_input(second), " ", text));
}

base::Status InferContext::attribute_error(std::string_view attribute, std::string_view text) const {
  return error(base::concat("attribute '", attribute, "' ", text));
}

base::Status InferContext::require_rank(size_t index, size_t rank) const {
  if (this->rank(index) == rank) return {};
  return input_error(index, base::concat("has rank ", this->rank(index), ", expected ", rank));
}

base::Result<int64_t> InferContext::normalize_axis(std::string_view attribute, int64_t axis, size_t rank) const {
  const int64_t limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) {
    return attribute_error(attribute, base::concat("is ", axis, ", expected an axis of a shape of rank ", rank));
  }
  return axis < 0 ? axis + limit : axis;
}

base::Result<std::vector<ValueInfo>> infer_outputs(const Graph &graph, Node &node) {
  TUTTI_ASSIGN(const OpDefinition *const definition, require_op(node.op, node.revision));
  TUTTI_TRY(check_node(*definition, graph, node));
  InferContext context(*definition, graph, node);
  TUTTI_TRY(definition->infer(context));
  for (const ValueInfo &info : context.outputs())
    TUTTI_TRY(check_dims(context, info));
  return context.outputs();
}

}  // namespace tutti::impl::graph
