// SPDX-License-Identifier: Apache-2.0
#include "backend/graph_executor.h"

#include <algorithm>
#include <utility>

#include "graph/serialize.h"

namespace tutti::impl::backend {

using base::Result;
using base::Status;
using graph::SymbolBindings;
using tensor::Tensor;

/// A program with the memory it runs in; used by one run at a time.
struct GraphExecutor::Slot {
  Program program;
  Buffer workspace;
  Stream stream;
  std::vector<Buffer> inputs, outputs;  // on the device: for inputs that cannot be used in place
  std::vector<const void *> input_pointers;
  std::vector<void *> output_pointers;
};

/// The graph compiled for one set of bindings.
struct GraphExecutor::Form {
  SymbolBindings bindings;
  ExecutableRef executable;
  std::mutex mutex;
  std::vector<std::unique_ptr<Slot>> idle;  // guarded by mutex
};

GraphExecutor::GraphExecutor(DeviceRef device, const graph::Graph &graph, GraphExecutorOptions options)
    : device_(std::move(device)), options_(options), graph_text_(graph::to_json_text(graph)) {
  for (const auto &[name, value] : graph.inputs()) {
    input_names_.push_back(name);
    input_infos_.push_back(graph.value(value));
  }
  for (const auto &[name, value] : graph.results())
    output_names_.push_back(name);
}

GraphExecutor::~GraphExecutor() = default;

Result<GraphExecutorRef> GraphExecutor::create(DeviceRef device, const graph::Graph &graph,
                                               GraphExecutorOptions options) {
  if (options.cache_limit == 0) options.cache_limit = 1;
  return GraphExecutorRef(new GraphExecutor(std::move(device), graph, options));
}

Result<SymbolBindings> GraphExecutor::bind_symbols(std::span<const Tensor> inputs, SymbolBindings bindings) const {
  if (inputs.size() != input_names_.size())
    return base::invalid_argument("the graph has ", input_names_.size(), " inputs, got ", inputs.size());
  const auto misfit = [&](size_t i) {
    return base::invalid_argument("input '", input_names_[i], "': expected ", input_infos_[i].dtype, " ",
                                  graph::to_string(input_infos_[i].dims), ", got ", inputs[i].describe());
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Dims &dims = input_infos_[i].dims;
    if (inputs[i].dtype() != input_infos_[i].dtype || static_cast<size_t>(inputs[i].rank()) != dims.size())
      return misfit(i);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::vector<std::string> symbols = dims[axis].symbols();
      if (symbols.size() != 1 || bindings.count(symbols[0]) != 0) continue;
      const std::optional<int64_t> factor = dims[axis].factor_of(symbols[0]);
      if (factor) bindings[symbols[0]] = inputs[i].shape()[static_cast<int32_t>(axis)] / *factor;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    TUTTI_ASSIGN(const std::vector<int64_t> dims, graph::evaluate(input_infos_[i].dims, bindings));
    if (!std::equal(dims.begin(), dims.end(), inputs[i].shape().begin(), inputs[i].shape().end())) return misfit(i);
  }
  return bindings;
}

Result<std::shared_ptr<GraphExecutor::Form>> GraphExecutor::find_form(const SymbolBindings &bindings) {
  const auto find_known = [&]() -> std::shared_ptr<Form> {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(forms_.begin(), forms_.end(),
                                    [&](const std::shared_ptr<Form> &form) { return form->bindings == bindings; });
    if (found == forms_.end()) return nullptr;
    forms_.splice(forms_.begin(), forms_, found);
    return *found;
  };
  if (std::shared_ptr<Form> form = find_known()) return form;
  std::lock_guard compile_lock(compile_mutex_);
  if (std::shared_ptr<Form> form = find_known()) return form;

  auto form = std::make_shared<Form>();
  form->bindings = bindings;
  CompileRequest request;
  request.graph_text = &graph_text_;
  request.bindings = bindings;
  request.level = options_.level;
  request.threads = options_.threads;
  request.precision = options_.precision;
  TUTTI_ASSIGN(form->executable, Executable::compile(*device_, request));
  std::shared_ptr<Form> evicted;  // released after the lock: its programs may take their time
  std::lock_guard lock(mutex_);
  forms_.push_front(form);
  ++counters_.compiled;
  if (forms_.size() > options_.cache_limit) {
    evicted = std::move(forms_.back());
    forms_.pop_back();
    ++counters_.evicted;
  }
  return form;
}

Result<std::unique_ptr<GraphExecutor::Slot>> GraphExecutor::take_slot(Form &form) {
  {
    std::lock_guard lock(form.mutex);
    if (!form.idle.empty()) {
      std::unique_ptr<Slot> slot = std::move(form.idle.back());
      form.idle.pop_back();
      return slot;
    }
  }
  const ExecutableDescription &description = form.executable->description();
  auto slot = std::make_unique<Slot>();
  TUTTI_ASSIGN(slot->workspace, device_->allocate(description.workspace_bytes, description.workspace_alignment));
  TUTTI_ASSIGN(slot->stream, device_->create_stream());
  TUTTI_ASSIGN(slot->program, form.executable->bind(*device_, {}, slot->workspace.device_pointer()));
  slot->inputs.resize(description.inputs.size());
  slot->outputs.resize(description.outputs.size());
  slot->input_pointers.resize(description.inputs.size());
  slot->output_pointers.resize(description.outputs.size());
  return slot;
}

Result<std::vector<Tensor>> GraphExecutor::run_in_slot(Slot &slot, std::span<const Tensor> inputs,
                                                       const RunScalars &scalars) {
  const ExecutableDescription &description = slot.program.executable()->description();
  const bool is_host = device_->backend().has_host_memory();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_aligned = reinterpret_cast<uintptr_t>(inputs[i].data()) % 64 == 0;
    slot.input_pointers[i] = inputs[i].data();
    if (is_host && is_aligned) continue;
    if (slot.inputs[i].empty()) {
      TUTTI_ASSIGN(slot.inputs[i], device_->allocate(description.inputs[i].bytes));
    }
    TUTTI_TRY(slot.inputs[i].write(0, inputs[i].data(), description.inputs[i].bytes, &slot.stream));
    slot.input_pointers[i] = slot.inputs[i].device_pointer();
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < description.outputs.size(); ++i) {
    const PortDescription &port = description.outputs[i];
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(port.dims));
    TUTTI_ASSIGN(Tensor result, Tensor::allocate(port.dtype, shape));
    if (!is_host && slot.outputs[i].empty()) {
      TUTTI_ASSIGN(slot.outputs[i], device_->allocate(port.bytes));
    }
    slot.output_pointers[i] = is_host ? result.mutable_data() : slot.outputs[i].device_pointer();
    results.push_back(std::move(result));
  }
  const RunArguments arguments{slot.input_pointers.data(), slot.output_pointers.data(), scalars.data()};
  for (int32_t segment = 0; segment < description.segment_count(); ++segment)
    TUTTI_TRY(slot.program.run(segment, arguments, slot.stream));
  for (size_t i = 0; i < results.size() && !is_host; ++i)
    TUTTI_TRY(slot.outputs[i].read(0, results[i].mutable_data(), description.outputs[i].bytes, &slot.stream));
  TUTTI_TRY(slot.stream.synchronize());
  return results;
}

Result<std::vector<Tensor>> GraphExecutor::run(std::span<const Tensor> inputs, const RunScalars &scalars,
                                               const SymbolBindings &bindings) {
  TUTTI_ASSIGN(const SymbolBindings all_bindings, bind_symbols(inputs, bindings));
  TUTTI_ASSIGN(const std::shared_ptr<Form> form, find_form(all_bindings));
  TUTTI_ASSIGN(std::unique_ptr<Slot> slot, take_slot(*form));
  Result<std::vector<Tensor>> results = run_in_slot(*slot, inputs, scalars);
  {
    std::lock_guard lock(form->mutex);
    form->idle.push_back(std::move(slot));
  }
  std::lock_guard lock(mutex_);
  ++counters_.runs;
  return results;
}

GraphExecutorCounters GraphExecutor::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace tutti::impl::backend
