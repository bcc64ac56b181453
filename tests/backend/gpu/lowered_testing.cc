// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/lowered_testing.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "backend/gpu/fusion/mixed_graph.h"
#include "graph/serialize.h"
#include "testing.h"

namespace tutti::testing {

using namespace impl;
using backend::LoweredGraph;
using tensor::Tensor;

namespace {

LoweredGraph decode(const graph::Graph &graph, int32_t level, int32_t flags, backend::GraphChange change) {
  const std::string text = graph::to_json_text(graph);
  tutti_compile_request request{};
  request.struct_size = sizeof(request);
  request.graph_text = text.c_str();
  request.bindings_json = "{}";
  request.state_json = "{\"arenas\": [], \"entries\": []}";
  request.level = level;
  request.flags = flags;
  return assert_ok_value(LoweredGraph::decode(request, change));
}

base::Result<graph::Graph> with_halves(graph::Graph graph, tensor::DType) {
  return backend::gpu::read_halves(std::move(graph));
}

}  // namespace

LoweredGraph lower(const graph::Graph &graph, int32_t level) { return decode(graph, level, 0, nullptr); }

LoweredGraph lower(graph::GraphBuilder &builder, int32_t level, int32_t flags) {
  return decode(assert_ok_value(builder.finish_graph()), level, flags, nullptr);
}

LoweredGraph lower_halves(graph::GraphBuilder &builder) {
  return decode(assert_ok_value(builder.finish_graph()), TUTTI_LEVEL_FAST, TUTTI_COMPILE_BF16_WHERE_FASTER,
                with_halves);
}

LoweredGraph lower_mixed(graph::GraphBuilder &builder) {
  return decode(assert_ok_value(builder.finish_graph()), TUTTI_LEVEL_FAST, TUTTI_COMPILE_BF16_WHERE_FASTER,
                backend::gpu::mixed_graph);
}

namespace {

backend::PlanCache no_cache() { return backend::PlanCache("", {"gpu", "a GPU", "1"}); }

backend::gpu::TrialMemory host_memory() {
  return {[](int64_t bytes) -> base::Result<void *> {
            return std::aligned_alloc(256, static_cast<size_t>((bytes + 255) / 256 * 256));
          },
          [](void *memory, int64_t) { std::free(memory); }};
}

void fail_for(const std::string &line) { fail_msg("%s", line.c_str()); }

}  // namespace

std::vector<float> numbers(int64_t count, int seed) {
  std::vector<float> made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 11) - 5;
  return made;
}

HostTrials::HostTrials() : trials(no_cache(), host_memory(), fail_for) {}

HostProbes::HostProbes() : probes(no_cache(), host_memory(), fail_for) {}

std::vector<Tensor> run_call(const LoweredGraph &lowered, const backend::gpu::Kernel &kernel,
                             const CallOperands &operands, const std::vector<Tensor> &graph_inputs) {
  std::vector<void *> table(lowered.values().size());
  for (size_t i = 0; i < graph_inputs.size(); ++i)
    table[static_cast<size_t>(lowered.inputs()[i].value)] = const_cast<void *>(graph_inputs[i].data());
  // Aliases lie where they are of.
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    const graph::Node &node = lowered.step(step);
    if (node.op == "reshape") table[static_cast<size_t>(node.outputs[0])] = table[static_cast<size_t>(node.inputs[0])];
  }
  std::vector<Tensor> results;
  for (const graph::ValueId output : operands.outputs) {
    const auto &value = lowered.value(output);
    results.push_back(assert_ok_value(Tensor::allocate(value.dtype, assert_ok_value(tensor::Shape::make(value.dims)))));
    table[static_cast<size_t>(output)] = results.back().mutable_data();
  }
  std::vector<char> scratch(static_cast<size_t>(operands.scratch_bytes) + 64, 7);
  const backend::gpu::IssueContext context;
  assert_ok(kernel(
      backend::gpu::Frame(table.data(), operands.inputs.data(), operands.outputs.data(), scratch.data(), context)));
  assert_true(std::all_of(scratch.end() - 64, scratch.end(), [](char byte) { return byte == 7; }));
  return results;
}

}  // namespace tutti::testing
