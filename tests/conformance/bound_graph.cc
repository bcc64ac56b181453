// SPDX-License-Identifier: Apache-2.0
#include "bound_graph.h"

#include <algorithm>
#include <utility>

#include "graph/serialize.h"

namespace tutti::impl::conformance {

using backend::Buffer;
using base::Result;
using base::Status;
using tensor::Tensor;

Result<Arenas> Arenas::make(const backend::DeviceRef &device, backend::StateTable table) {
  Arenas arenas;
  arenas.table_ = std::move(table);
  std::vector<int64_t> sizes(arenas.table_.arenas().size(), 0);
  for (const backend::StateEntry &entry : arenas.table_.entries()) {
    int64_t &size = sizes[static_cast<size_t>(entry.arena)];
    size = std::max(size, entry.offset + entry.storage_bytes);
  }
  for (const int64_t size : sizes) {
    TUTTI_ASSIGN(Buffer buffer, device->allocate(size));
    TUTTI_TRY(buffer.fill_zero(0, size));
    arenas.buffers_.push_back(std::move(buffer));
  }
  return arenas;
}

std::vector<void *> Arenas::pointers() const {
  std::vector<void *> pointers;
  for (const Buffer &buffer : buffers_)
    pointers.push_back(buffer.device_pointer());
  return pointers;
}

Status Arenas::write(std::string_view entry, const Tensor &value) {
  const backend::StateEntry *const found = table_.find(entry);
  if (found == nullptr) return base::not_found("no entry ", std::string(entry));
  return buffers_[static_cast<size_t>(found->arena)].write(found->offset, value.data(), value.size_bytes());
}

Result<Tensor> Arenas::read(std::string_view entry) const {
  const backend::StateEntry *const found = table_.find(entry);
  if (found == nullptr) return base::not_found("no entry ", std::string(entry));
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(found->dims));
  TUTTI_ASSIGN(Tensor value, Tensor::allocate(found->dtype, shape));
  TUTTI_TRY(buffers_[static_cast<size_t>(found->arena)].read(found->offset, value.mutable_data(), value.size_bytes()));
  return value;
}

Result<std::unique_ptr<BoundGraph>> BoundGraph::make(const backend::DeviceRef &device, const graph::Graph &graph,
                                                     graph::SymbolBindings bindings, Arenas *arenas, int32_t flags) {
  auto bound = std::make_unique<BoundGraph>();
  bound->device_ = device;
  const std::string text = graph::to_json_text(graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.bindings = std::move(bindings);
  request.flags = flags;
  request.state = arenas == nullptr ? nullptr : &arenas->table();
  TUTTI_ASSIGN(bound->executable_, backend::Executable::compile(*device, request));
  const backend::ExecutableDescription &description = bound->description();
  TUTTI_ASSIGN(bound->workspace_, device->allocate(description.workspace_bytes, description.workspace_alignment));
  TUTTI_ASSIGN(bound->stream_, device->create_stream());
  const std::vector<void *> pointers = arenas == nullptr ? std::vector<void *>() : arenas->pointers();
  TUTTI_ASSIGN(bound->program_, bound->executable_->bind(*device, pointers, bound->workspace_.device_pointer()));
  for (const backend::PortDescription &port : description.inputs) {
    TUTTI_ASSIGN(Buffer buffer, device->allocate(port.bytes));
    bound->input_pointers_.push_back(buffer.device_pointer());
    bound->inputs_.push_back(std::move(buffer));
  }
  for (const backend::PortDescription &port : description.outputs) {
    TUTTI_ASSIGN(Buffer buffer, device->allocate(port.bytes));
    bound->output_pointers_.push_back(buffer.device_pointer());
    bound->outputs_.push_back(std::move(buffer));
  }
  return bound;
}

Status BoundGraph::run_external(int32_t index, const ExternalFunction &external) {
  const backend::ExternalDescription &where = description().externals[static_cast<size_t>(index)];
  if (!external) return Status();
  if (where.arena >= 0) return base::unimplemented("an external in an arena");
  TUTTI_TRY(stream_.synchronize());
  TUTTI_ASSIGN(Tensor values, Tensor::allocate(where.dtype, {where.elements}));
  TUTTI_TRY(workspace_.read(where.offset, values.mutable_data(), values.size_bytes()));
  external(index, where, values);
  return workspace_.write(where.offset, values.data(), values.size_bytes());
}

Status BoundGraph::run_segments(const backend::RunScalars &scalars, const ExternalFunction &external) {
  const backend::RunArguments arguments{input_pointers_.data(), output_pointers_.data(), scalars.data()};
  for (int32_t segment = 0; segment < description().segment_count(); ++segment) {
    TUTTI_TRY(program_.run(segment, arguments, stream_));
    if (segment + 1 < description().segment_count()) TUTTI_TRY(run_external(segment, external));
  }
  return stream_.synchronize();
}

Result<std::vector<Tensor>> BoundGraph::run(const std::vector<Tensor> &inputs, const backend::RunScalars &scalars,
                                            const ExternalFunction &external) {
  for (size_t i = 0; i < inputs.size(); ++i)
    TUTTI_TRY(inputs_[i].write(0, inputs[i].data(), inputs[i].size_bytes()));
  TUTTI_TRY(run_segments(scalars, external));
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const backend::PortDescription &port = description().outputs[i];
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(port.dims));
    TUTTI_ASSIGN(Tensor result, Tensor::allocate(port.dtype, shape));
    TUTTI_TRY(outputs_[i].read(0, result.mutable_data(), port.bytes));
    results.push_back(std::move(result));
  }
  return results;
}

Status BoundGraph::run_again(const backend::RunScalars &scalars) { return run_segments(scalars, {}); }

}  // namespace tutti::impl::conformance
