// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/device_map.h"

#include <algorithm>

#include "base/memory.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {

using backend::RunScalar;
using base::Result;
using base::Status;
using data::DeviceGraph;
using tensor::Shape;
using tensor::Tensor;

namespace {

const Tensor &component_of(const data::Element &element, int32_t component) {
  return element.components[static_cast<size_t>(component)];
}

int64_t bytes_of_row(const Tensor &tensor) { return tensor.rows() == 0 ? 0 : tensor.size_bytes() / tensor.rows(); }

Status grow(backend::Device &device, std::vector<backend::Buffer> &buffers, int32_t component, int64_t bytes) {
  if (buffers.size() <= static_cast<size_t>(component)) buffers.resize(static_cast<size_t>(component) + 1);
  backend::Buffer &buffer = buffers[static_cast<size_t>(component)];
  if (!buffer.empty() && buffer.size_bytes() >= bytes) return Status();
  buffer = backend::Buffer();  // before the larger one, so that both need not fit
  TUTTI_ASSIGN(buffer, device.allocate(std::max<int64_t>(bytes, 1)));
  return Status();
}

}  // namespace

// ---- the map ----

Result<std::shared_ptr<const DeviceMap>> DeviceMap::create(const data::DatasetRef &map, const InputBinding &binding,
                                                           int64_t capacity, backend::Device &device,
                                                           backend::Level level) {
  if (device.backend().rounds_freely())
    return base::unimplemented("device ", device.name(), " does not promise the host's rounding, and a map has the ",
                               "same results wherever it runs");
  auto made = std::make_shared<DeviceMap>();
  made->dataset_ = map;
  made->capacity_ = capacity;
  made->nothing_ = tensor::Buffer::borrow(nullptr, INT64_MAX, nullptr, tensor::Buffer::Access::read_only);
  TUTTI_ASSIGN(made->graph_, data::make_device_graph(*map, binding.components()));
  const std::string text = graph::to_json_text(*made->graph_.graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.bindings = {{std::string(graph::kBatchSymbol), capacity}};
  request.level = level;
  if (level == backend::Level::invariant) request.flags = TUTTI_COMPILE_ROW_INVARIANT;
  TUTTI_ASSIGN(made->executable_, backend::Executable::compile(device, request));
  const std::vector<data::GraphPlan::Source> &sources = map->device_plan()->sources;
  made->passed_.assign(sources.size(), -1);
  for (const int32_t component : binding.components())
    made->passed_[static_cast<size_t>(component)] = sources[static_cast<size_t>(component)].component;
  return std::shared_ptr<const DeviceMap>(std::move(made));
}

Status DeviceMap::describe(const data::Element &raw, data::Element &mapped) const {
  const data::ElementSpec &from = dataset_->inputs()[0]->spec();
  TUTTI_TRY(data::check_element(raw, from, "the input of the map"));
  const data::GraphPlan &plan = *dataset_->device_plan();
  const int64_t rows = raw.rows();
  if (rows > from.batch_size)
    return base::invalid_argument("a batch of ", rows, " rows, the dataset's have ", from.batch_size, " at most");
  for (const DeviceGraph::Input &input : graph_.inputs) {
    if (input.component < 0 || component_of(raw, input.component).rows() == rows) continue;
    return base::invalid_argument("a batch of ", rows, " rows has ", component_of(raw, input.component).rows(), " of '",
                                  from.components[static_cast<size_t>(input.component)].name, "'");
  }
  mapped.lineage = raw.lineage;
  mapped.components.resize(plan.sources.size());
  for (size_t i = 0; i < plan.sources.size(); ++i) {
    if (plan.sources[i].component >= 0) mapped.components[i] = component_of(raw, plan.sources[i].component);
  }
  for (const DeviceGraph::Result &result : graph_.results) {
    const graph::ValueInfo &info = graph_.graph->value(graph_.graph->result(result.name));
    std::vector<int64_t> extents{rows};
    for (size_t axis = 1; axis < info.dims.size(); ++axis)
      extents.push_back(info.dims[axis].constant());
    TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
    TUTTI_ASSIGN(mapped.components[static_cast<size_t>(result.component)],
                 Tensor::from_buffer(info.dtype, shape, nothing_));
  }
  return Status();
}

// ---- on one device ----

Result<std::unique_ptr<MappedRows>> MappedRows::create(std::shared_ptr<const DeviceMap> map,
                                                       const backend::DeviceRef &device) {
  std::unique_ptr<MappedRows> rows(new MappedRows(std::move(map), device));
  const Status status = rows->allocate();
  if (!status.ok()) return status.wrap(base::concat("preparing the map on device ", device->name(), " failed"));
  return rows;
}

Status MappedRows::allocate() {
  const backend::ExecutableDescription &description = map_->executable()->description();
  const DeviceGraph &graph = map_->graph();
  inputs_.resize(graph.inputs.size());
  for (const backend::PortDescription &port : description.inputs) {
    const auto found = std::ranges::find(graph.inputs, port.name, &DeviceGraph::Input::name);
    if (found == graph.inputs.end()) return base::internal_error("the map on devices has an input '", port.name, "'");
    backend::Buffer &buffer = inputs_[static_cast<size_t>(found - graph.inputs.begin())];
    TUTTI_ASSIGN(buffer, device_->allocate(std::max<int64_t>(port.bytes, 1)));
    // Rows that are not there are computed too: of zeros, so that no index among them is out of range.
    const std::vector<std::byte> zeros(static_cast<size_t>(port.bytes));
    TUTTI_TRY(buffer.write(0, zeros.data(), port.bytes));
    input_pointers_.push_back(buffer.device_pointer());
  }
  for (const backend::PortDescription &port : description.outputs) {
    const auto found = std::ranges::find(graph.results, port.name, &DeviceGraph::Result::name);
    if (found == graph.results.end()) return base::internal_error("the map on devices gives '", port.name, "'");
    output_components_.push_back(found->component);
  }
  TUTTI_ASSIGN(workspace_, device_->allocate(description.workspace_bytes, description.workspace_alignment));
  TUTTI_ASSIGN(program_, map_->executable()->bind(*device_, {}, workspace_.device_pointer()));
  return Status();
}

int64_t MappedRows::copied_bytes(const data::Element &raw, int64_t rows) const {
  const DeviceGraph &graph = map_->graph();
  int64_t bytes = 0;
  for (const DeviceGraph::Input &input : graph.inputs) {
    const int64_t one = input.draw >= 0 ? graph.draws[static_cast<size_t>(input.draw)].row_bytes()
                                        : bytes_of_row(component_of(raw, input.component));
    // Partners may lie in two places.
    bytes += base::round_up_aligned(rows * one) + (input.of_partner ? base::round_up_aligned(one) : 0);
  }
  for (const int32_t component : map_->passed())
    bytes += component < 0 ? 0 : base::round_up_aligned(rows * bytes_of_row(component_of(raw, component)));
  return bytes;
}

Status MappedRows::reserve(const data::Element &raw, int64_t rows, std::vector<backend::Buffer> &results) const {
  const std::vector<backend::PortDescription> &outputs = map_->executable()->description().outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    TUTTI_TRY(grow(*device_, results, output_components_[i], outputs[i].bytes));
  const std::vector<int32_t> &passed = map_->passed();
  for (size_t i = 0; i < passed.size(); ++i) {
    if (passed[i] < 0) continue;
    TUTTI_TRY(grow(*device_, results, static_cast<int32_t>(i), rows * bytes_of_row(component_of(raw, passed[i]))));
  }
  return Status();
}

Status MappedRows::copy_rows(const data::Element &raw, int32_t component, RowRange range, int64_t rotation,
                             backend::Buffer &to, Copy copy) const {
  const int64_t one = bytes_of_row(component_of(raw, component)), rows = raw.rows();
  const int64_t first = (range.begin + rotation) % rows;
  const int64_t until_end = std::min(range.rows(), rows - first);
  TUTTI_TRY(copy(to, 0, InputBinding::row_pointer(raw, component, first), until_end * one));
  if (until_end == range.rows()) return Status();
  return copy(to, until_end * one, InputBinding::row_pointer(raw, component, 0), (range.rows() - until_end) * one);
}

Status MappedRows::copy_inputs(const data::GraphScalars &scalars, const data::Element &raw, RowRange range,
                               std::vector<std::byte> &draws, Copy copy) {
  const DeviceGraph &graph = map_->graph();
  const int64_t rotation = graph.rotation(scalars);
  int64_t drawn = 0;
  for (const DeviceGraph::Input &input : graph.inputs)
    drawn += input.draw < 0
                 ? 0
                 : base::round_up_aligned(graph.draws[static_cast<size_t>(input.draw)].row_bytes() * range.rows());
  if (static_cast<int64_t>(draws.size()) < drawn) draws.resize(static_cast<size_t>(drawn));
  std::byte *next_draw = draws.data();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const DeviceGraph::Input &input = graph.inputs[i];
    if (inputs_[i].empty()) continue;  // the program has no use for it
    const int64_t away = input.of_partner ? rotation : 0;
    if (input.draw < 0) {
      TUTTI_TRY(copy_rows(raw, input.component, range, away, inputs_[i], copy));
      continue;
    }
    const data::RowDraw &draw = graph.draws[static_cast<size_t>(input.draw)];
    const int64_t bytes = draw.row_bytes() * range.rows();
    DeviceGraph::fill(draw, scalars, range.begin, range.end, away, next_draw);
    TUTTI_TRY(copy(inputs_[i], 0, next_draw, bytes));
    next_draw += base::round_up_aligned(bytes);
  }
  return Status();
}

Status MappedRows::run(int64_t seed, const data::Element &raw, RowRange range, std::vector<backend::Buffer> &results,
                       MapRun &kept, Copy copy, backend::Stream &stream) {
  if (range.rows() == 0) return Status();
  const data::GraphScalars scalars{seed, raw.lineage.epoch, raw.lineage.index, raw.rows()};
  TUTTI_TRY(copy_inputs(scalars, raw, range, kept.draws, copy));
  const std::vector<int32_t> &passed = map_->passed();
  for (size_t i = 0; i < passed.size(); ++i) {
    if (passed[i] >= 0) TUTTI_TRY(copy_rows(raw, passed[i], range, 0, results[i], copy));
  }
  kept.outputs.clear();
  for (const int32_t component : output_components_)
    kept.outputs.push_back(results[static_cast<size_t>(component)].device_pointer());
  kept.scalars.set(RunScalar::seed, seed).set(RunScalar::batch_counter, scalars.epoch);
  kept.scalars.set(RunScalar::row_offset, scalars.row_offset + range.begin);
  kept.scalars.set(RunScalar::local_rows, range.rows()).set(RunScalar::step_rows, scalars.rows);
  const backend::RunArguments arguments{input_pointers_.data(), kept.outputs.data(), kept.scalars.data()};
  for (int32_t segment = 0; segment < map_->executable()->description().segment_count(); ++segment)
    TUTTI_TRY(program_.run(segment, arguments, stream));
  return Status();
}

Status MappedLane::run(const std::shared_ptr<const DeviceMap> &map, int64_t seed, const data::Element &raw,
                       RowRange range, const backend::DeviceRef &device, backend::Stream &stream) {
  if (mapped_ == nullptr || &mapped_->map() != map.get()) {
    mapped_ = nullptr;
    results_.clear();
    TUTTI_ASSIGN(mapped_, MappedRows::create(map, device));
  }
  TUTTI_TRY(mapped_->reserve(raw, range.rows(), results_));
  staging_.reserve(*device, mapped_->copied_bytes(raw, range.rows()));
  const auto copy = [&](backend::Buffer &buffer, int64_t offset, const void *from, int64_t bytes) {
    return buffer.write(offset, staging_.stage(from, bytes), bytes, &stream);
  };
  const Status status = mapped_->run(seed, raw, range, results_, kept_, copy, stream);
  if (!status.ok()) (void)stream.synchronize();  // what was issued reads what is kept
  return status;
}

// ---- which walks leave their map ----

std::string keep_map(const data::Dataset &dataset) {
  if (data::trailing_device_map(dataset) == nullptr) return std::string();
  return data::refusal_of_device_map(base::unimplemented("the strategy has devices of several kinds"));
}

std::string DeviceMaps::leave(const data::Dataset &dataset, const std::vector<graph::InputSpec> &inputs,
                              int32_t contributors, backend::Device &device, backend::Level level,
                              data::IteratorContext &context) {
  const data::Dataset *const map = data::trailing_device_map(dataset);
  if (map == nullptr) {
    const std::vector<std::string> refused = data::refused_device_maps(dataset);
    return refused.empty() ? std::string() : refused.front();
  }
  const auto make = [&]() -> Result<std::shared_ptr<const DeviceMap>> {
    TUTTI_ASSIGN(const InputBinding binding, InputBinding::make(inputs, dataset.spec()));
    const int64_t capacity = share_of_rows(std::max<int64_t>(dataset.spec().batch_size, 1), 0, contributors).rows();
    return DeviceMap::create(data::DatasetRef::share(const_cast<data::Dataset *>(map)), binding, capacity, device,
                             level);
  };
  std::lock_guard lock(mutex_);
  if (last_ == nullptr || &last_->dataset() != map) {
    Result<std::shared_ptr<const DeviceMap>> made = make();
    if (!made.ok()) return data::refusal_of_device_map(made.status());
    last_ = std::move(*made);
  }
  context.left_map = map;
  return std::string();
}

Result<std::shared_ptr<const DeviceMap>> DeviceMaps::find(const data::Iterator &iterator) {
  if (iterator.left_map() == nullptr) return std::shared_ptr<const DeviceMap>();
  std::lock_guard lock(mutex_);
  if (last_ != nullptr && &last_->dataset() == iterator.left_map()) return last_;
  return base::failed_precondition("the iterator has left its map to other devices");
}

}  // namespace tutti::impl::distribute
