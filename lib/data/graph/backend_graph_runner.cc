// SPDX-License-Identifier: Apache-2.0
#include "data/graph/backend_graph_runner.h"

#include <algorithm>
#include <utility>

#include "graph/serialize.h"

namespace tutti::impl::data {

using backend::ExecutableDescription;
using backend::RunScalar;
using base::Result;
using base::Status;

namespace {

class BackendFunction : public GraphFunction {
 public:
  static Result<std::unique_ptr<GraphFunction>> create(const backend::DeviceRef &device,
                                                       const backend::ExecutableRef &executable,
                                                       const graph::Graph &graph) {
    auto function = std::unique_ptr<BackendFunction>(new BackendFunction());
    const ExecutableDescription &description = executable->description();
    for (const auto &[name, value] : graph.inputs()) {
      TUTTI_TRY(add_port(name, description.input_index(name), description.inputs, function->inputs_));
    }
    for (const auto &[name, value] : graph.results()) {
      TUTTI_TRY(add_port(name, description.output_index(name), description.outputs, function->outputs_));
    }
    function->is_host_ = device->backend().has_host_memory();
    TUTTI_ASSIGN(function->workspace_, device->allocate(description.workspace_bytes, description.workspace_alignment));
    TUTTI_ASSIGN(function->stream_, device->create_stream());
    TUTTI_ASSIGN(function->program_, executable->bind(*device, {}, function->workspace_.device_pointer()));
    TUTTI_TRY(function->prepare_copies(*device, description));
    return std::unique_ptr<GraphFunction>(std::move(function));
  }

  const std::vector<GraphPort> &inputs() const override { return inputs_.ports; }
  const std::vector<GraphPort> &outputs() const override { return outputs_.ports; }

  Status run(std::span<const void *const> inputs, std::span<void *const> outputs,
             const GraphScalars &scalars) override {
    return stream_.finish(issue(inputs, outputs, scalars));
  }

 private:
  Status issue(std::span<const void *const> inputs, std::span<void *const> outputs, const GraphScalars &scalars) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto slot = static_cast<size_t>(inputs_.slots[i]);
      if (!is_host_) TUTTI_TRY(input_copies_[slot].write(0, inputs[i], inputs_.ports[i].bytes, &stream_));
      input_pointers_[slot] = is_host_ ? inputs[i] : input_copies_[slot].device_pointer();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto slot = static_cast<size_t>(outputs_.slots[i]);
      output_pointers_[slot] = is_host_ ? outputs[i] : output_copies_[slot].device_pointer();
    }
    backend::RunScalars values;
    values.set(RunScalar::seed, scalars.seed).set(RunScalar::batch_counter, scalars.epoch);
    values.set(RunScalar::row_offset, scalars.row_offset);
    values.set(RunScalar::local_rows, scalars.rows).set(RunScalar::step_rows, scalars.rows);
    const backend::RunArguments arguments{input_pointers_.data(), output_pointers_.data(), values.data()};
    for (int32_t segment = 0; segment < segments_; ++segment) {
      TUTTI_TRY(program_.run(segment, arguments, stream_));
    }
    for (size_t i = 0; i < outputs.size() && !is_host_; ++i) {
      const auto slot = static_cast<size_t>(outputs_.slots[i]);
      TUTTI_TRY(output_copies_[slot].read(0, outputs[i], outputs_.ports[i].bytes, &stream_));
    }
    return Status();
  }

  // Ports in the graph's order, and where each stands in the executable's.
  struct Ports {
    std::vector<GraphPort> ports;
    std::vector<int32_t> slots;
  };

  static Status add_port(const std::string &name, int32_t slot, const std::vector<backend::PortDescription> &all,
                         Ports &ports) {
    if (slot < 0) return base::internal_error("the compiled graph lacks '", name, "'");
    const backend::PortDescription &port = all[static_cast<size_t>(slot)];
    ports.ports.push_back({name, port.dtype, port.dims, port.bytes});
    ports.slots.push_back(slot);
    return Status();
  }

  Status prepare_copies(backend::Device &device, const ExecutableDescription &description) {
    segments_ = description.segment_count();
    input_pointers_.resize(description.inputs.size());
    output_pointers_.resize(description.outputs.size());
    if (is_host_) return Status();
    for (const backend::PortDescription &port : description.inputs) {
      TUTTI_ASSIGN(backend::Buffer copy, device.allocate(port.bytes));
      input_copies_.push_back(std::move(copy));
    }
    for (const backend::PortDescription &port : description.outputs) {
      TUTTI_ASSIGN(backend::Buffer copy, device.allocate(port.bytes));
      output_copies_.push_back(std::move(copy));
    }
    return Status();
  }

  Ports inputs_;
  Ports outputs_;
  bool is_host_ = true;
  int32_t segments_ = 1;
  backend::Buffer workspace_;
  backend::Stream stream_;
  backend::Program program_;
  std::vector<backend::Buffer> input_copies_, output_copies_;  // on devices with memory of their own
  std::vector<const void *> input_pointers_;
  std::vector<void *> output_pointers_;
};

}  // namespace

std::shared_ptr<BackendGraphRunner> BackendGraphRunner::create(backend::DeviceRef device, backend::Level level,
                                                               size_t kept_forms) {
  return std::shared_ptr<BackendGraphRunner>(new BackendGraphRunner(std::move(device), level, kept_forms));
}

Result<backend::ExecutableRef> BackendGraphRunner::compile(const graph::SealedGraph &graph,
                                                           const graph::SymbolBindings &bindings) {
  // Compiling under the lock makes each form once.
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(forms_.begin(), forms_.end(),
                                  [&](const Form &form) { return form.graph == graph && form.bindings == bindings; });
  if (found != forms_.end()) {
    forms_.splice(forms_.begin(), forms_, found);
    return forms_.front().executable;
  }
  const std::string text = graph::to_json_text(*graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.bindings = bindings;
  request.level = level_;
  TUTTI_ASSIGN(backend::ExecutableRef executable, backend::Executable::compile(*device_, request));
  forms_.push_front({graph, bindings, executable});
  if (forms_.size() > kept_forms_) forms_.pop_back();
  return executable;
}

Result<std::unique_ptr<GraphFunction>> BackendGraphRunner::prepare(const graph::SealedGraph &graph,
                                                                   const graph::SymbolBindings &bindings) {
  TUTTI_ASSIGN(const backend::ExecutableRef executable, compile(graph, bindings));
  return BackendFunction::create(device_, executable, *graph);
}

}  // namespace tutti::impl::data
