// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/region_body.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "backend/cpu/lower/lowering.h"
#include "backend/cpu/shapes/attributes.h"
#include "graph/builder.h"
#include "graph/clone.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Region;
using graph::ValueId;

namespace {

bool draws(const Graph &graph, const Region &region) {
  return std::ranges::any_of(region.nodes, [&](NodeId id) {
    const Node &node = graph.node(id);
    return node.op.starts_with("random_") || node.op.starts_with("dropout") ||
           std::ranges::any_of(node.regions, [&](const Region &inner) { return draws(graph, inner); });
  });
}

/// The region alone: parameters are inputs p0, p1, ..., results r0, r1, ...
Result<Graph> graph_of_region(const Graph &source, const Region &region) {
  graph::GraphBuilder builder;
  graph::NodeCloner cloner(source, builder);
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < region.parameters.size(); ++i) {
    const graph::ValueInfo &info = source.value(region.parameters[i]);
    arguments.push_back(builder.input(base::concat("p", i), info.dtype, info.dims));
  }
  TUTTI_ASSIGN(const std::vector<ValueId> results, cloner.inline_region(region, arguments));
  // Each result is a value of its own.
  for (size_t i = 0; i < results.size(); ++i)
    builder.set_result(base::concat("r", i), builder.op("identity", {results[i]}));
  return builder.finish_graph();
}

/// The number behind the letter.
size_t index_of(std::string_view name) {
  size_t index = 0;
  std::from_chars(name.data() + 1, name.data() + name.size(), index);
  return index;
}

}  // namespace

Result<std::optional<RegionBody>> RegionBody::lower(const LoweredGraph &graph, const Node &node, size_t index) {
  const Region &region = node.regions[index];
  if (draws(graph.graph(), region)) return std::optional<RegionBody>();
  TUTTI_ASSIGN(Graph alone, graph_of_region(graph.graph(), region));
  TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::of_part(graph, std::move(alone)));
  RegionBody body;
  body.graph_ = std::make_unique<const LoweredGraph>(std::move(lowered));
  TUTTI_ASSIGN(body.list_, Lowering(*body.graph_).run());
  for (size_t b = 0; b < body.list_.buffers.size(); ++b) {
    const Location &at = body.list_.buffers[b].location;
    const auto id = static_cast<BufferId>(b);
    const auto position = static_cast<size_t>(at.index);
    if (at.place == Place::input) body.parameters_.push_back({id, index_of(body.graph_->inputs()[position].name)});
    if (at.place == Place::output) body.result_ports_.push_back({id, index_of(body.graph_->outputs()[position].name)});
  }
  for (const ValueId result : region.results)
    body.results_.push_back(graph.value(result));
  return std::optional<RegionBody>(std::move(body));
}

bool RegionBody::reads(size_t parameter) const {
  return std::ranges::any_of(parameters_, [&](const Port &port) { return port.index == parameter; });
}

Result<std::unique_ptr<RegionState>> RegionBody::make_state() const {
  auto state = std::make_unique<RegionState>();
  state->buffers_.resize(list_.buffers.size());
  state->parameters_.resize(graph_->inputs().size());
  state->results_.resize(results_.size());
  for (size_t b = 0; b < list_.buffers.size(); ++b) {
    const Location &at = list_.buffers[b].location;
    if (at.place != Place::constant) continue;
    const auto &value = attribute<tensor::Tensor>(graph_->graph().node(at.index), "value");
    state->buffers_[b] = static_cast<char *>(value.mutable_data()) + at.offset;
  }
  for (const Call &call : list_.calls) {
    TUTTI_ASSIGN(std::unique_ptr<KernelState> of_kernel, call.kernel->make_state());
    state->calls_.emplace_back(call.kernel.get(), of_kernel.get());
    if (of_kernel != nullptr) state->states_.push_back(std::move(of_kernel));
  }
  return state;
}

int32_t RegionBody::run(const RunContext &context, RegionState &state) const {
  for (const Port &port : parameters_)
    state.buffers_[static_cast<size_t>(port.buffer)] = state.parameters_[port.index];
  for (const Port &port : result_ports_)
    state.buffers_[static_cast<size_t>(port.buffer)] = state.results_[port.index];
  RunContext inner = context;
  inner.buffers = state.buffers_.data();
  for (const auto &[kernel, of_kernel] : state.calls_) {
    const int32_t code = kernel->run(inner, of_kernel);
    if (code != 0) return code;
  }
  return 0;
}

void RegionState::begin(const RegionBody &body, void *workspace) {
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const Location &at = body.list_.buffers[b].location;
    if (at.place == Place::workspace) buffers_[b] = static_cast<char *>(workspace) + at.offset;
  }
}

}  // namespace tutti::impl::backend::cpu
