// SPDX-License-Identifier: Apache-2.0
//
// Nodes without a fast kernel run on the reference backend, which is a backend like any other: the node becomes a graph
// of its own that is compiled through the C table and bound to memory of the program.
#include <tutti/plugin/backend.h>

#include <map>

#include "backend/cpu/lower/lower.h"
#include "backend/executable.h"
#include "backend/plugin_side.h"
#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/serialize.h"

// Declared here: floors of equal rank do not include each other, the C table is all that is shared.
namespace tutti::impl::backend::reference {
const tutti_backend_api *entry(uint32_t host_abi_version);
}

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// The reference backend, opened once for the process and never closed.
struct Fallback {
  HostOptions options;
  BackendRef backend;
  DeviceRef device;
};

Result<const Fallback *> fallback() {
  static const Result<const Fallback *> made = []() -> Result<const Fallback *> {
    auto made_once = std::make_unique<Fallback>();
    TUTTI_ASSIGN(made_once->backend, Backend::create(reference::entry, "{}", made_once->options));
    TUTTI_ASSIGN(made_once->device, made_once->backend->open_device(0));
    return made_once.release();
  }();
  return made;
}

class FallbackState final : public KernelState {
 public:
  Buffer workspace;
  Program program;
  Stream stream;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
};

class FallbackKernel final : public Kernel {
 public:
  FallbackKernel(ExecutableRef executable, std::vector<BufferId> inputs, std::vector<BufferId> outputs)
      : executable_(std::move(executable)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  Result<std::unique_ptr<KernelState>> make_state() const override {
    TUTTI_ASSIGN(const Fallback *with, fallback());
    auto state = std::make_unique<FallbackState>();
    TUTTI_ASSIGN(state->workspace, with->device->allocate(executable_->description().workspace_bytes));
    TUTTI_ASSIGN(state->stream, with->device->create_stream());
    TUTTI_ASSIGN(state->program, executable_->bind(*with->device, {}, state->workspace.device_pointer()));
    state->inputs.resize(inputs_.size());
    state->outputs.resize(outputs_.size());
    return std::unique_ptr<KernelState>(std::move(state));
  }

  int32_t run(const RunContext &context, KernelState *kernel_state) const override {
    auto &state = static_cast<FallbackState &>(*kernel_state);
    for (size_t i = 0; i < inputs_.size(); ++i)
      state.inputs[i] = context.buffers[inputs_[i]];
    for (size_t i = 0; i < outputs_.size(); ++i)
      state.outputs[i] = context.buffers[outputs_[i]];
    const Status status =
        state.program.run(0, {state.inputs.data(), state.outputs.data(), context.scalars}, state.stream);
    return status.ok() ? 0 : context.fail(status);
  }

 private:
  ExecutableRef executable_;
  std::vector<BufferId> inputs_, outputs_;
};

/// The node alone; inputs are named in0, in1, ... and results out0, out1, ...
Result<graph::Graph> graph_of_node(const graph::Graph &source, const Node &node) {
  graph::GraphBuilder builder;
  graph::NodeCloner cloner(source, builder);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue || cloner.is_mapped(id)) continue;
    cloner.map(id, builder.input(base::concat("in", i), source.value(id).dtype, source.value(id).dims));
  }
  TUTTI_ASSIGN(const std::vector<ValueId> outputs, cloner.clone_node(node));
  for (size_t i = 0; i < outputs.size(); ++i)
    builder.set_result(base::concat("out", i), outputs[i]);
  return builder.finish_graph();
}

}  // namespace

Status lower_fallback(Lowering &l, const Node &node) {
  TUTTI_ASSIGN(const Fallback *with, fallback());
  TUTTI_ASSIGN(const graph::Graph graph, graph_of_node(l.graph().graph(), node));
  const std::string text = graph::to_json_text(graph);
  CompileRequest request;
  request.graph_text = &text;
  request.bindings = l.graph().bindings();
  auto compiled = Executable::compile(*with->device, request);
  if (!compiled.ok()) return compiled.status();
  const ExecutableDescription &description = (*compiled)->description();
  std::vector<BufferId> inputs(description.inputs.size(), -1), outputs(description.outputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const int32_t index = description.input_index(base::concat("in", i));
    if (index >= 0) inputs[static_cast<size_t>(index)] = l.read(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int32_t index = description.output_index(base::concat("out", i));
    if (index >= 0) outputs[static_cast<size_t>(index)] = l.write(node.outputs[i]);
  }
  l.count_fallback();
  l.emit_kernel("fallback:" + node.op,
                std::make_unique<FallbackKernel>(std::move(compiled).value(), std::move(inputs), std::move(outputs)));
  return Status();
}

}  // namespace tutti::impl::backend::cpu
