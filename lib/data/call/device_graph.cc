// SPDX-License-Identifier: Apache-2.0
#include "data/call/device_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/lowered_graph.h"
#include "data/call/device_lowering.h"
#include "graph/op_registry.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::Dim;
using graph::Dims;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

base::RandomStream row_stream(int64_t stream, const GraphScalars &scalars, int64_t row) {
  return base::RandomStream(base::RandomKey::of(static_cast<uint64_t>(scalars.seed), static_cast<uint64_t>(stream),
                                                static_cast<uint64_t>(scalars.epoch))
                                .fold(static_cast<uint64_t>(scalars.row_offset + row), 0));
}

// Rows, and constants behind them.
bool has_static_rows(const Dims &dims) {
  return graph::begins_with_batch(dims) && graph::constant_shape({dims.begin() + 1, dims.end()}).has_value();
}

}  // namespace

int64_t DeviceGraph::rotation(const GraphScalars &scalars) const {
  if (!mixing || scalars.rows < 2) return 0;
  base::RandomStream random = row_stream(*mixing, scalars, 0);
  return 1 + random.below(scalars.rows - 1);
}

void DeviceGraph::fill(const RowDraw &draw, const GraphScalars &scalars, int64_t begin, int64_t end, int64_t rotation,
                       void *to) {
  auto *at = static_cast<std::byte *>(to);
  for (int64_t row = begin; row < end; ++row, at += draw.row_bytes()) {
    const int64_t drawing = (row + rotation) % scalars.rows;
    draw.fill(row_stream(draw.stream, scalars, drawing), {drawing, scalars.rows, row - begin}, at);
  }
}

DeviceLowering::DeviceLowering(const GraphPlan &plan, const ElementSpec &from)
    : plan_(plan),
      from_(from),
      cloners_{graph::NodeCloner(*plan.graph, builder_), graph::NodeCloner(*plan.graph, builder_)} {}

Result<DeviceGraph> DeviceLowering::make(const std::vector<int32_t> &wanted) {
  for (const int32_t component : wanted) {
    const GraphPlan::Source &source = plan_.sources[static_cast<size_t>(component)];
    if (source.result < 0) continue;
    const std::string &name = plan_.results[static_cast<size_t>(source.result)];
    const ValueId value = plan_.graph->result(name);
    TUTTI_TRY(lower(value, Side::own));
    const ValueId lowered = cloner(Side::own).mapped(value);
    const graph::ValueInfo &info = builder_.info(lowered);
    if (!has_static_rows(info.dims) || info.dtype == tensor::DType::bytes) {
      return base::unimplemented("result '", name, "' is ", info.dtype, graph::to_string(info.dims),
                                 "; expected rows of constant dims");
    }
    builder_.set_result(name, lowered);
    made_.results.push_back({name, component});
  }
  TUTTI_TRY(builder_.status());
  if (made_.results.empty()) return base::unimplemented("none of its results is used");
  TUTTI_ASSIGN(graph::Graph graph, builder_.finish_graph());
  made_.graph = std::make_shared<const graph::Graph>(std::move(graph));
  return std::move(made_);
}

Status DeviceLowering::lower(ValueId value, Side side) {
  if (value == kNoValue || cloner(side).is_mapped(value)) return Status();
  const graph::NodeId producer = plan_.graph->value(value).producer;
  if (producer == kNoNode) return base::unimplemented("the graph has a region with values of its own");
  return lower_node(plan_.graph->node(producer), side);
}

Status DeviceLowering::lower_node(const Node &node, Side side) {
  if (node.op == "input") {
    TUTTI_ASSIGN(const ValueId value, make_input(node, side));
    cloner(side).map(node.outputs[0], value);
    return Status();
  }
  const graph::OpDefinition *const definition = graph::find_op(node.op, node.revision);
  if (definition == nullptr || definition->program) {
    for (const ValueId input : node.inputs)
      TUTTI_TRY(lower(input, side));
    TUTTI_TRY(check_program_node(node, side));
    TUTTI_TRY(cloner(side).clone_node(node));
    return Status();
  }
  const DeviceOp op = find_device_op(node.op);
  if (op == nullptr)
    return base::unimplemented(backend::describe(node), ": op '", node.op, "' is not supported on devices");
  Result<Values> outputs = op(*this, node, side);
  if (!outputs.ok()) return outputs.status().wrap(backend::describe(node));
  TUTTI_TRY(builder_.status());
  for (size_t i = 0; i < outputs->size(); ++i)
    cloner(side).map(node.outputs[i], (*outputs)[i]);
  return Status();
}

// Rows must not know each other, nor their number.
Status DeviceLowering::check_program_node(const Node &node, Side side) const {
  TUTTI_ASSIGN(const graph::OpDefinition *const definition, graph::require_op(node.op, node.revision));
  const bool is_random = definition->effect == graph::Effect::random;
  const bool has_rows = graph::begins_with_batch(plan_.graph->value(node.outputs[0]).dims);
  if (depends_on_rows(*plan_.graph, node, *definition) || (is_random && !has_rows))
    return base::unimplemented(backend::describe(node), ": its rows are not independent of each other");
  if (is_random && side == Side::partner)
    return base::unimplemented(backend::describe(node), ": before an op that mixes rows only image ops may be random");
  return Status();
}

Result<ValueId> DeviceLowering::make_input(const Node &node, Side side) {
  const ValueId value = node.outputs[0];
  for (const GraphPlan::Input &input : plan_.inputs) {
    if (plan_.graph->input(input.name) != value) continue;
    std::map<std::string, Dim, std::less<>> known;
    for (const auto &[symbol, extent] : plan_.bindings)
      known.emplace(symbol, Dim(extent));
    const Dims dims = graph::substitute(input.dims, known);
    const graph::ValueInfo &info = plan_.graph->value(value);
    const ComponentSpec &component = from_.components[static_cast<size_t>(input.component)];
    if (!has_static_rows(dims) || !has_static_rows(component.dims) || info.dtype == tensor::DType::bytes)
      return base::unimplemented("input '", component.to_string(), "' has no rows of a constant number of bytes");
    const bool of_partner = side == Side::partner;
    const std::string name = of_partner ? "partner/" + input.name : input.name;
    made_.inputs.push_back({name, input.component, -1, of_partner});
    return builder_.input(name, info.dtype, dims);
  }
  return base::internal_error("the plan lacks an input of the graph");
}

Result<ValueId> DeviceLowering::input(const Node &node, size_t index, Side side) {
  TUTTI_TRY(lower(node.inputs[index], side));
  return cloner(side).mapped(node.inputs[index]);
}

Result<ImageDims> DeviceLowering::image(const Node &node, ValueId value) const {
  const graph::ValueInfo &info = builder_.info(value);
  if (info.dims.size() != 4 || !has_static_rows(info.dims)) {
    return base::unimplemented("op '", node.op, "' on devices takes images [batch, height, width, channels] of one ",
                               "size, not ", info.dtype, graph::to_string(info.dims));
  }
  const ImageDims image{info.dims[1].constant(), info.dims[2].constant(), info.dims[3].constant()};
  if (image.height == 0 || image.width == 0 || image.channels == 0)
    return base::unimplemented("op '", node.op, "' on images without pixels");
  return image;
}

ValueId DeviceLowering::draw(const Node &node, int64_t key, RowDraw draw, Side side) {
  draw.stream = key != 0 ? key : node.stable_id;
  const std::string name = base::concat("draw/", made_.draws.size());
  Dims dims{graph::GraphBuilder::batch()};
  if (draw.values > 1) dims.emplace_back(draw.values);
  const ValueId value = builder_.input(name, draw.dtype, dims);
  made_.inputs.push_back({name, -1, static_cast<int32_t>(made_.draws.size()), side == Side::partner});
  made_.draws.push_back(std::move(draw));
  return value;
}

Status DeviceLowering::mix(const Node &node, int64_t key) {
  const int64_t stream = key != 0 ? key : node.stable_id;
  if (made_.mixing.value_or(stream) != stream) return base::unimplemented("another op mixes rows with other partners");
  made_.mixing = stream;
  return Status();
}

const Dataset *trailing_device_map(const Dataset &dataset) {
  const Dataset *last = &dataset;
  while (last->kind() == "prefetch" || last->kind() == "options")
    last = last->inputs()[0].get();
  return last->device_plan() != nullptr ? last : nullptr;
}

Result<DeviceGraph> make_device_graph(const Dataset &map, const std::vector<int32_t> &wanted) {
  const GraphPlan *const plan = map.device_plan();
  if (plan == nullptr) return base::internal_error("the dataset is not a map for devices");
  if (!plan->is_batched) return base::unimplemented("its elements are single examples; put the map after batch");
  return DeviceLowering(*plan, map.inputs()[0]->spec()).make(wanted);
}

std::string refusal_of_device_map(const Status &status) {
  return base::concat("map with on_device: it runs on the host: ", status.to_string());
}

namespace {

void collect_refused(const Dataset &dataset, const Dataset *trailing, std::vector<std::string> &reasons) {
  if (dataset.device_plan() != nullptr) {
    if (&dataset != trailing) {
      reasons.emplace_back(
          "map with on_device: another transform computes after it, so it runs on the host; put it last, with "
          "only prefetch and options after it");
    } else {
      std::vector<int32_t> all(dataset.spec().components.size());
      for (size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<int32_t>(i);
      const Result<DeviceGraph> made = make_device_graph(dataset, all);
      if (!made.ok()) reasons.push_back(refusal_of_device_map(made.status()));
    }
  }
  for (const DatasetRef &input : dataset.inputs())
    collect_refused(*input, trailing, reasons);
}

}  // namespace

std::vector<std::string> refused_device_maps(const Dataset &dataset) {
  std::vector<std::string> reasons;
  collect_refused(dataset, trailing_device_map(dataset), reasons);
  return reasons;
}

}  // namespace tutti::impl::data
