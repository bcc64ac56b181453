// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of processor time that attention and its gradients take on one thread: as the op, and composed of
// products, softmax and transpositions as one had to write it without the op. In turns; the least of each.
//
//   attention_bench ROWS LENGTH HEADS CHANNELS CAUSAL SECONDS      prints "OP_MS COMPOSED_MS"
//
// attention_peer.py puts PyTorch beside it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "conformance/bound_graph.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "meters.h"
#include "runtime/backend_list.h"

namespace {

using namespace tutti::impl;
using conformance::Arenas;
using conformance::BoundGraph;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;

struct Sizes {
  int64_t rows, length, heads, channels;
  bool causal;
};

ValueId composed(GraphBuilder &b, ValueId q, ValueId k, ValueId v, const Sizes &sizes) {
  const ValueId scores = b.scale(b.matmul(b.transpose(q, {0, 2, 1, 3}), b.transpose(k, {0, 2, 3, 1})),
                                 1 / std::sqrt(static_cast<double>(sizes.channels)));
  ValueId seen = scores;
  if (sizes.causal) {
    const graph::Dims square{sizes.length, sizes.length};
    const ValueId query = b.op("iota", {}, {{"dims", square}, {"axis", int64_t{0}}}),
                  key = b.op("iota", {}, {{"dims", square}, {"axis", int64_t{1}}});
    seen = b.select(b.op("less_equal", {key, query}), scores, b.constant(-1e30, DType::f32));
  }
  return b.transpose(b.matmul(b.op("softmax", {seen}), b.transpose(v, {0, 2, 1, 3})), {0, 2, 1, 3});
}

/// Forward and backward, from state to state.
base::Result<graph::Graph> training_graph(const Sizes &sizes, bool as_op) {
  GraphBuilder b;
  const graph::Dims dims{sizes.rows, sizes.length, sizes.heads, sizes.channels};
  const auto read = [&](const char *name) { return b.state_read(name, DType::f32, dims); };
  const ValueId q = read("q"), k = read("k"), v = read("v"), dy = read("dy");
  const ValueId y =
      as_op ? b.op_n("attention", {q, k, v}, {{"causal", sizes.causal}}, 2)[0] : composed(b, q, k, v, sizes);
  const ValueId targets[] = {y}, seeds[] = {dy}, wrt[] = {q, k, v};
  TUTTI_TRY(b.status());
  TUTTI_ASSIGN(const auto gradients, graph::gradients(b, targets, seeds, wrt));
  b.state_write(y, "y");
  b.state_write(gradients[0], "dq");
  b.state_write(gradients[1], "dk");
  b.state_write(gradients[2], "dv");
  return b.finish_graph();
}

base::Result<Arenas> make_arenas(const backend::DeviceRef &device, const Sizes &sizes) {
  backend::StateTable table;
  const int32_t arena = table.add_arena("arrays");
  const std::vector<int64_t> dims{sizes.rows, sizes.length, sizes.heads, sizes.channels};
  const int64_t elements = sizes.rows * sizes.length * sizes.heads * sizes.channels;
  int64_t offset = 0;
  const char *const names[] = {"q", "k", "v", "dy", "y", "dq", "dk", "dv"};
  for (const char *name : names) {
    TUTTI_TRY(table.add({.name = name, .arena = arena, .offset = offset, .dims = dims, .storage_bytes = 4 * elements}));
    offset += (4 * elements + 63) / 64 * 64;
  }
  TUTTI_ASSIGN(Arenas arenas, Arenas::make(device, std::move(table)));
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
  for (const char *name : {"q", "k", "v", "dy"}) {
    TUTTI_ASSIGN(tensor::Tensor value, tensor::Tensor::allocate(DType::f32, shape));
    for (int64_t i = 0; i < elements; ++i)
      value.mutable_data_as<float>()[i] = std::sin(static_cast<float>(i % 7919) + static_cast<float>(name[0]));
    TUTTI_TRY(arenas.write(name, value));
  }
  return arenas;
}

base::Status measure(const Sizes &sizes, double seconds) {
  TUTTI_ASSIGN(const backend::BackendRef cpu, runtime::open_backend("cpu", "{}", {}));
  TUTTI_ASSIGN(const backend::DeviceRef device, cpu->open_device(0));
  TUTTI_ASSIGN(Arenas arenas, make_arenas(device, sizes));
  std::unique_ptr<BoundGraph> programs[2];
  double least[2] = {1e30, 1e30};
  for (int i = 0; i < 2; ++i) {
    TUTTI_ASSIGN(const graph::Graph graph, training_graph(sizes, i == 0));
    TUTTI_ASSIGN(programs[i], BoundGraph::make(device, graph, {}, &arenas));
    TUTTI_TRY(programs[i]->run_again({}));
  }
  const double end = tutti::testing::wall_seconds() + seconds;
  do {
    for (int i = 0; i < 2; ++i) {
      const double start = tutti::testing::cpu_seconds();
      TUTTI_TRY(programs[i]->run_again({}));
      least[i] = std::min(least[i], 1e3 * (tutti::testing::cpu_seconds() - start));
    }
  } while (tutti::testing::wall_seconds() < end);
  std::printf("%.4f %.4f\n", least[0], least[1]);
  return base::Status();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s ROWS LENGTH HEADS CHANNELS CAUSAL SECONDS\n", argv[0]);
    return 2;
  }
  const Sizes sizes{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]),
                    std::atoi(argv[5]) != 0};
  const base::Status status = measure(sizes, std::atof(argv[6]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
