// SPDX-License-Identifier: Apache-2.0
#include "backend/lowered_graph.h"

#include <utility>

#include "base/json.h"
#include "graph/serialize.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;
using graph::Node;

std::string describe(const Node &node) { return base::concat("node '", node.scope_name, "' (", node.op, ")"); }

namespace {

Result<graph::SymbolBindings> read_bindings(std::string_view text) {
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  TUTTI_ASSIGN(const auto members, JsonReader(json, "bindings").members());
  graph::SymbolBindings bindings;
  for (const auto &[symbol, reader] : members) {
    TUTTI_ASSIGN(const int64_t value, reader.as_integer());
    if (value < 0) return base::invalid_argument("symbol '", symbol, "' is bound to ", value);
    bindings[symbol] = value;
  }
  return bindings;
}

std::string node_of(const graph::Graph &graph, const graph::ValueInfo &info) {
  return info.producer == graph::kNoNode ? "a region's parameter" : describe(graph.node(info.producer));
}

Result<std::string> text_attribute(const Node &node, std::string_view name) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end() || !std::holds_alternative<std::string>(found->second))
    return base::invalid_argument(describe(node), ": attribute '", name, "' is missing");
  return std::get<std::string>(found->second);
}

/// A 1-D value whose length is a symbol "slice.…" stands for flat elements of the storage, as does one of more dims
/// whose first has a symbol "rows.…".
bool is_flat(const graph::ValueInfo &info) {
  if (info.dims.empty()) return false;
  const std::string_view prefix = info.dims.size() == 1 ? "slice." : "rows.";
  for (const std::string &symbol : info.dims[0].symbols()) {
    if (symbol.starts_with(prefix)) return true;
  }
  return false;
}

/// Level fast alone has any.
int32_t permissions(const tutti_compile_request &request) {
  return request.level == TUTTI_LEVEL_FAST ? request.flags : 0;
}

}  // namespace

std::optional<tensor::DType> permitted_half(const tutti_compile_request &request) {
  const int32_t flags = permissions(request);
  if ((flags & TUTTI_COMPILE_BF16_WHERE_FASTER) != 0) return tensor::DType::bf16;
  if ((flags & TUTTI_COMPILE_F16_WHERE_FASTER) != 0) return tensor::DType::f16;
  return std::nullopt;
}

Result<LoweredGraph> LoweredGraph::decode(const tutti_compile_request &request, GraphChange narrow) {
  LoweredGraph lowered;
  lowered.level_ = request.level;
  lowered.threads_ = request.threads < 1 ? 1 : request.threads;
  const std::optional<tensor::DType> half = permitted_half(request);
  lowered.allows_bf16_ = half == tensor::DType::bf16;
  lowered.allows_tf32_ = half.has_value() || (permissions(request) & TUTTI_COMPILE_TF32_WHERE_FASTER) != 0;
  lowered.is_row_invariant_ = (request.flags & TUTTI_COMPILE_ROW_INVARIANT) != 0;
  TUTTI_ASSIGN(lowered.bindings_, read_bindings(request.bindings_json));
  TUTTI_ASSIGN(lowered.state_, StateTable::from_text(request.state_json));

  TUTTI_ASSIGN(graph::Graph graph, graph::graph_from_text(request.graph_text));
  if (narrow != nullptr && half.has_value()) {
    TUTTI_ASSIGN(graph, narrow(std::move(graph), *half));
  }
  TUTTI_TRY(lowered.replace_graph(std::move(graph)));
  return lowered;
}

Result<LoweredGraph> LoweredGraph::of_part(const LoweredGraph &whole, graph::Graph part) {
  LoweredGraph lowered;
  lowered.bindings_ = whole.bindings_;
  lowered.level_ = whole.level_;
  lowered.threads_ = whole.threads_;
  lowered.allows_bf16_ = whole.allows_bf16_;
  lowered.allows_tf32_ = whole.allows_tf32_;
  lowered.is_row_invariant_ = whole.is_row_invariant_;
  TUTTI_TRY(lowered.replace_graph(std::move(part)));
  return lowered;
}

Status LoweredGraph::replace_graph(graph::Graph graph) {
  graph_ = std::move(graph);
  inputs_.clear();
  outputs_.clear();
  TUTTI_TRY(lower_values());
  for (const auto &[name, value] : graph_.inputs())
    inputs_.push_back({name, value});
  for (const auto &[name, value] : graph_.results())
    outputs_.push_back({name, value});
  return resolve_accesses();
}

Status LoweredGraph::lower_values() {
  values_.clear();
  values_.reserve(graph_.values().size());
  for (const graph::ValueInfo &info : graph_.values()) {
    LoweredValue value;
    value.dtype = info.dtype;
    Result<std::vector<int64_t>> dims = graph::evaluate(info.dims, bindings_);
    if (!dims.ok())
      return dims.status().wrap(base::concat("shape of output ", info.output_index, " of ", node_of(graph_, info)));
    value.dims = std::move(dims).value();
    value.elements = 1;
    for (int64_t dim : value.dims)
      value.elements *= dim;
    value.bytes = value.elements * static_cast<int64_t>(tensor::size_bytes(info.dtype));
    values_.push_back(std::move(value));
  }
  return check_bound_dims();
}

// Kernels copy or alias without looking; with symbols bound by others the counts are checked once more.
Status LoweredGraph::check_bound_dims() const {
  for (const Node &node : graph_.nodes()) {
    if (node.op == "reshape" && value(node.inputs[0]).elements != value(node.outputs[0]).elements)
      return base::invalid_argument(describe(node), ": ", value(node.inputs[0]).dims, " does not fit into ",
                                    value(node.outputs[0]).dims);
    if (node.op == "top_k" && value(node.inputs[0]).dims.back() < value(node.outputs[0]).dims.back())
      return base::invalid_argument(describe(node), ": attribute 'k' is ", value(node.outputs[0]).dims.back(),
                                    ", the last axis of 'x' has ", value(node.inputs[0]).dims.back(), " elements");
  }
  return Status();
}

Status LoweredGraph::resolve_accesses() {
  accesses_.assign(steps().size(), StateAccess());
  for (int32_t index = 0; index < step_count(); ++index) {
    const Node &node = step(index);
    if (node.op != "state_read" && node.op != "state_write") continue;
    const graph::ValueId id = node.op == "state_read" ? node.outputs[0] : node.inputs[0];
    TUTTI_ASSIGN(const std::string name, text_attribute(node, "entry"));
    StateAccess &access = accesses_[static_cast<size_t>(index)];
    access.entry = state_.index_of(name);
    if (access.entry < 0) return base::not_found(describe(node), ": there is no state entry '", name, "'");
    const StateEntry &entry = state_.entries()[static_cast<size_t>(access.entry)];
    const LoweredValue &seen = value(id);
    access.arena = entry.arena;
    access.flat = is_flat(graph_.value(id));
    access.bytes = access.flat ? seen.bytes : entry.storage_bytes;
    access.offset = entry.offset;
    if (access.flat) access.offset += entry.slice_offset * static_cast<int64_t>(tensor::size_bytes(entry.dtype));
    const bool fits = access.flat ? seen.elements == entry.flat_length() : seen.dims == entry.dims;
    if (seen.dtype != entry.dtype || !fits)
      return base::invalid_argument(describe(node), ": state entry '", name, "' is ", entry.dtype, entry.dims, " with ",
                                    entry.flat_length(), " flat elements, the value is ", seen.dtype, seen.dims);
    if (!access.flat && entry.layout.empty() && entry.storage_bytes < seen.bytes)
      return base::invalid_argument(describe(node), ": state entry '", name, "' has ", entry.storage_bytes,
                                    " bytes, the value ", seen.bytes);
  }
  return Status();
}

int32_t LoweredGraph::batch_axis(graph::ValueId id) const {
  const graph::Dims &dims = graph_.value(id).dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].mentions(graph::kBatchSymbol)) return static_cast<int32_t>(axis);
  }
  return -1;
}

}  // namespace tutti::impl::backend
