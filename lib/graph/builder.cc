// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <algorithm>

#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::graph {
namespace {

// FNV-1a of the name, positive: 0 means "no key" in random ops.
int64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  const int64_t positive = static_cast<int64_t>(hash & 0x7fffffffffffffffu);
  return positive == 0 ? 1 : positive;
}

/// Lengths of the model's inputs that only the data tells, those that an input of the node has.
std::vector<std::string> lengths_of(const Graph &graph, const Model &model, const Node &node) {
  const auto has = [&](std::string_view symbol) {
    return std::ranges::any_of(node.inputs, [&](ValueId input) {
      return graph.contains(input) &&
             std::ranges::any_of(graph.value(input).dims, [&](const Dim &dim) { return dim.mentions(symbol); });
    });
  };
  std::vector<std::string> lengths;
  for (const auto *const list : {&model.features, &model.labels}) {
    for (const InputSpec &input : *list) {
      for (const Dim &dim : input.dims) {
        for (const std::string &symbol : dim.symbols()) {
          if (symbol != kBatchSymbol && std::ranges::find(lengths, symbol) == lengths.end() && has(symbol))
            lengths.push_back(symbol);
        }
      }
    }
  }
  return lengths;
}

/// Takes such lengths to be equal, in the whole model, because the node needs it; a run compares them. False where
/// there are not two.
bool join_lengths(Graph &graph, Model &model, Node &node) {
  const std::vector<std::string> lengths = lengths_of(graph, model, node);
  if (lengths.size() < 2) return false;
  std::map<std::string, Dim, std::less<>> joined;
  for (size_t i = 1; i < lengths.size(); ++i)
    joined.emplace(lengths[i], Dim::symbol(lengths[0]));
  const auto join = [&](Node &each) {
    for (auto &[name, attribute] : each.attributes) {
      if (Dims *const dims = std::get_if<Dims>(&attribute)) *dims = substitute(*dims, joined);
    }
  };
  for (size_t i = 0; i < graph.values().size(); ++i) {
    Dims &dims = graph.mutable_value(static_cast<ValueId>(i)).dims;
    dims = substitute(dims, joined);
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    join(graph.mutable_node(static_cast<NodeId>(i)));
  join(node);
  for (auto *const list : {&model.features, &model.labels}) {
    for (InputSpec &input : *list)
      input.dims = substitute(input.dims, joined);
  }
  return true;
}

}  // namespace

GraphBuilder::GraphBuilder() { frames_.emplace_back(); }

GraphBuilder::GraphBuilder(Graph graph) : graph_(std::move(graph)) {
  frames_.emplace_back();
  frames_[0].region = graph_.body();
  frame_of_value_.assign(graph_.values().size(), -1);
  for (const NodeId id : graph_.body().nodes) {
    for (const ValueId output : graph_.node(id).outputs)
      frame_of_value_[static_cast<size_t>(output)] = 0;
  }
  for (const Node &node : graph_.nodes())
    names_.insert(node.scope_name);
}

ValueId GraphBuilder::fail(base::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return kNoValue;
}

// ---- names ----

std::string GraphBuilder::push_scope(std::string_view scope_name, bool unique) {
  if (base::Status status = base::check_utf8("scope", scope_name); !status.ok()) fail(std::move(status));
  std::string full = scope().empty() ? std::string(scope_name) : base::concat(scope(), "/", scope_name);
  if (unique) {
    const int64_t ordinal = name_counts_[full + "/"]++;
    if (ordinal != 0) full = base::concat(full, "_", ordinal);
  }
  scopes_.push_back(full);
  return full;
}

void GraphBuilder::pop_scope() {
  if (scopes_.size() == 1) {
    fail(base::failed_precondition("a scope is popped that was never pushed"));
    return;
  }
  scopes_.pop_back();
}

std::string GraphBuilder::unique_name(std::string_view kind) {
  const std::string stem = scope().empty() ? std::string(kind) : base::concat(scope(), "/", kind);
  while (true) {
    const int64_t ordinal = name_counts_[stem]++;
    std::string candidate = ordinal == 0 ? stem : base::concat(stem, "_", ordinal);
    if (names_.count(candidate) == 0) return candidate;
  }
}

// Gives the node a unique scope name and, unless it has one, a stable id.
void GraphBuilder::name_node(Node &node) {
  if (node.scope_name.empty()) {
    node.scope_name = unique_name(node.op);
  } else if (names_.count(node.scope_name) != 0) {
    const std::string stem = node.scope_name;
    for (int64_t ordinal = name_counts_[stem] + 1; names_.count(node.scope_name) != 0; ++ordinal) {
      node.scope_name = base::concat(stem, "_", ordinal);
      name_counts_[stem] = ordinal;
    }
  }
  if (node.stable_id == 0) node.stable_id = hash_of(node.scope_name);
}

// ---- nodes ----

ValueId GraphBuilder::add_value(ValueInfo info, int32_t frame_id) {
  frame_of_value_.push_back(frame_id);
  return graph_.add_value(std::move(info));
}

// The value as it is called in a frame: itself, or the parameter it is captured as.
ValueId GraphBuilder::capture(ValueId value, size_t frame) {
  Frame &here = frames_[frame];
  if (frame_of_value_[static_cast<size_t>(value)] == here.id) return value;
  if (const auto known = here.captured.find(value); known != here.captured.end()) return known->second;
  if (frame == 0) return fail(base::invalid_argument("a value of a region is used outside of it"));
  if (!here.captures_allowed) {
    return fail(base::invalid_argument("a region of ", here.owner, " in scope '", scope(),
                                       "' uses a value from outside: pass it as an input"));
  }
  const ValueId outer = capture(value, frame - 1);
  if (outer == kNoValue) return kNoValue;
  ValueInfo info = graph_.value(outer);
  info.producer = kNoNode;
  info.output_index = static_cast<int32_t>(here.region.parameters.size());
  const ValueId parameter = add_value(std::move(info), here.id);
  here.region.parameters.push_back(parameter);
  here.captures.push_back(outer);
  here.captured[value] = parameter;
  return parameter;
}

// Checks ids and captures outer values. False: nothing to build, either after an earlier error or with one set here.
bool GraphBuilder::resolve_inputs(const OpDefinition &definition, Node &node, size_t frame) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId &input = node.inputs[i];
    if (input == kNoValue) continue;
    if (!graph_.contains(input)) {
      const InputDefinition *known =
          definition.inputs.empty() ? nullptr : &definition.inputs[std::min(i, definition.inputs.size() - 1)];
      fail(base::invalid_argument("node '", node.scope_name, "' (", node.op, "): input '", known ? known->name : "?",
                                  "' is value ", input, ", which does not exist"));
      return false;
    }
    input = capture(input, frame);
    if (input == kNoValue) return false;
  }
  return true;
}

GraphBuilder::Values GraphBuilder::insert(Node node, size_t outputs, size_t frame) {
  const Values nothing(outputs, kNoValue);
  if (!ok()) return nothing;
  const OpDefinition *definition = node.revision == 0 ? find_op(node.op) : find_op(node.op, node.revision);
  if (definition == nullptr) {
    fail(require_op(node.op, std::max(node.revision, 1)).status().with_detail("scope", scope()));
    return nothing;
  }
  node.revision = definition->revision;
  name_node(node);
  if (!resolve_inputs(*definition, node, frame)) return nothing;
  base::Result<std::vector<ValueInfo>> inferred = infer_outputs(graph_, node);
  if (!inferred.ok() && join_lengths(graph_, model_, node)) inferred = infer_outputs(graph_, node);
  if (!inferred.ok()) {
    fail(inferred.status().with_detail("node", node.scope_name));
    return nothing;
  }
  for (ValueInfo &info : *inferred)
    node.outputs.push_back(add_value(std::move(info), frames_[frame].id));
  names_.insert(node.scope_name);
  const Values made = node.outputs;
  frames_[frame].region.nodes.push_back(graph_.add_node(std::move(node)));
  return made;
}

ValueId GraphBuilder::op(std::string_view op_name, const Values &inputs, Attributes attributes) {
  const Values made = op_n(op_name, inputs, std::move(attributes), 1);
  if (made.size() == 1) return made[0];
  return fail(base::internal_error("op '", op_name, "' gave ", made.size(), " results where one was expected"));
}

GraphBuilder::Values GraphBuilder::op_n(std::string_view op_name, const Values &inputs, Attributes attributes,
                                        size_t outputs) {
  if (outputs == 0) {
    const OpDefinition *definition = find_op(op_name);
    outputs = definition == nullptr ? 1 : definition->outputs.size();
  }
  if (op_name == "reduce_mean" && inputs.size() == 1 && ok()) {
    const ValueId expanded = expand_batch_mean(inputs[0], attributes);
    if (expanded != kNoValue || !ok()) return {expanded};
  }
  Node node;
  node.op = std::string(op_name);
  node.revision = 0;
  node.inputs = inputs;
  node.attributes = std::move(attributes);
  return insert(std::move(node), outputs, frames_.size() - 1);
}

GraphBuilder::Values GraphBuilder::add_node(Node node) {
  const OpDefinition *definition = find_op(node.op);
  return insert(std::move(node), definition == nullptr ? 1 : definition->outputs.size(), frames_.size() - 1);
}

GraphBuilder::Values GraphBuilder::copy_node(const Graph &source, const Node &node, const Values &inputs) {
  Node copy;
  copy.op = node.op;
  copy.revision = node.revision;
  copy.scope_name = node.scope_name;
  copy.stable_id = node.stable_id;
  copy.inputs = inputs;
  copy.attributes = node.attributes;
  const size_t outputs = node.outputs.size();
  std::vector<std::string> value_names;
  for (const ValueId output : node.outputs)
    value_names.push_back(source.value(output).name);
  const std::vector<Region> regions = node.regions;  // the source may move while this graph grows
  for (const Region &region : regions)
    copy.regions.push_back(copy_region(source, region, copy.op));
  Values made = insert(std::move(copy), outputs, frames_.size() - 1);
  if (made.size() != outputs) {
    fail(base::internal_error("the copy of node '", node.scope_name, "' has ", made.size(), " results"));
    made.assign(outputs, kNoValue);
  }
  for (size_t i = 0; i < outputs; ++i)
    set_value_name(made[i], std::move(value_names[i]));
  return made;
}

const Dims &GraphBuilder::dims(ValueId value) const {
  static const Dims *const none = new Dims;
  return graph_.contains(value) ? graph_.value(value).dims : *none;
}

tensor::DType GraphBuilder::dtype(ValueId value) const {
  return graph_.contains(value) ? graph_.value(value).dtype : tensor::DType{};
}

void GraphBuilder::set_value_name(ValueId value, std::string name) {
  if (graph_.contains(value)) graph_.mutable_value(value).name = std::move(name);
}

// ---- end ----

void GraphBuilder::set_result(std::string_view name, ValueId value) {
  if (!ok() || !check_top("result", value)) return;
  if (!check_free("result", name, graph_.results().count(name) != 0)) return;
  graph_.set_result(std::string(name), value);
}

base::Result<Graph> GraphBuilder::finish_graph() {
  if (frames_.size() != 1) fail(base::failed_precondition("the graph is finished inside a region"));
  TUTTI_TRY(status_);
  graph_.mutable_body() = std::move(frames_[0].region);
  Graph graph = std::move(graph_);
  *this = GraphBuilder();
  return graph;
}

}  // namespace tutti::impl::graph
