// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds that single ops take on one thread of the CPU backend: the least of many runs. With op_peer.py, which
// puts PyTorch beside them, one sees which ops have no kernel worth the name.
//
//   op_bench SECONDS [NAME ...]      prints "NAME MILLISECONDS" for each case; without names all of them
//
// Times are of a program with this one op, from its inputs to its results: about a microsecond is the program's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/backend_cases.h"
#include "conformance/bound_graph.h"
#include "graph/autodiff.h"
#include "meters.h"
#include "nn/registry.h"
#include "runtime/backend_list.h"

namespace {

using namespace tutti::impl;
using conformance::BoundGraph;
using conformance::OpCase;
using conformance::Operand;
using conformance::ShapeDims;
using graph::Attributes;
using graph::Dims;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

struct NamedCase {
  std::string name;
  OpCase op;
  bool with_gradient = false;  // of the first input
};

const ShapeDims kRows = {128, 1024};        // half a megabyte
const ShapeDims kImages = {8, 32, 32, 64};  // two

Operand f32(ShapeDims dims, double low = -2, double high = 2) { return {DType::f32, std::move(dims), low, high}; }
Operand positive(ShapeDims dims) { return conformance::positive(DType::f32, std::move(dims)); }
Operand indices(ShapeDims dims, double end) { return conformance::whole(DType::i64, std::move(dims), 0, end); }
Operand truth(ShapeDims dims) { return conformance::whole(DType::boolean, std::move(dims), 0, 2); }

void add(std::vector<NamedCase> &cases, const std::string &op, std::vector<Operand> inputs, Attributes attributes = {},
         const std::string &suffix = "") {
  cases.push_back({op + suffix, {op, std::move(inputs), std::move(attributes)}});
}

void add_elementwise(std::vector<NamedCase> &cases) {
  for (const char *op :
       {"neg",  "abs",  "sign", "exp",      "expm1", "sin",        "cos",    "tanh",  "sigmoid", "erf",
        "relu", "gelu", "silu", "softplus", "elu",   "leaky_relu", "square", "floor", "round",   "reciprocal"})
    add(cases, op, {f32(kRows)});
  for (const char *op : {"log", "log1p", "sqrt", "rsqrt"})
    add(cases, op, {positive(kRows)});
  for (const char *op : {"add", "mul", "div", "maximum", "less", "mod", "relu_gradient", "sigmoid_gradient",
                         "tanh_gradient", "gelu_gradient", "sigmoid_cross_entropy"})
    add(cases, op, {f32(kRows), f32(kRows)});
  add(cases, "pow", {positive(kRows), f32(kRows)});
  add(cases, "add", {f32(kRows), f32({1024})}, {}, "_row");
  add(cases, "add", {f32(kRows), f32({128, 1})}, {}, "_column");
  add(cases, "select", {truth(kRows), f32(kRows), f32(kRows)});
  add(cases, "cast", {f32(kRows, 0, 200)}, {{"dtype", DType::i64}}, "_to_i64");
  add(cases, "cast", {indices(kRows, 200)}, {{"dtype", DType::f32}}, "_from_i64");
  add(cases, "cast", {conformance::whole(DType::u8, kRows, 0, 200)}, {{"dtype", DType::f32}}, "_from_u8");
  add(cases, "cast", {f32(kRows)}, {{"dtype", DType::bf16}}, "_to_bf16");
}

void add_reductions(std::vector<NamedCase> &cases) {
  for (const char *op : {"reduce_sum", "reduce_max", "reduce_prod"}) {
    add(cases, op, {f32(kRows)}, {{"axes", Ints{1}}}, "_rows");
    add(cases, op, {f32(kRows)}, {{"axes", Ints{0}}}, "_columns");
    add(cases, op, {f32(kRows)}, {}, "_all");
    add(cases, op, {f32(kImages)}, {{"axes", Ints{1, 2}}}, "_image");
  }
  add(cases, "argmax", {f32(kRows)}, {}, "_rows");
  add(cases, "argmax", {f32(kRows)}, {{"axis", int64_t{0}}}, "_columns");
  add(cases, "all_finite", {f32(kRows)});
  add(cases, "top_k", {f32(kRows)}, {{"k", int64_t{8}}});
}

void add_shapes(std::vector<NamedCase> &cases) {
  add(cases, "transpose", {f32({512, 512})}, {}, "_matrix");
  add(cases, "transpose", {f32(kImages)}, {{"permutation", Ints{0, 3, 1, 2}}}, "_image");
  add(cases, "transpose", {f32({8, 128, 8, 64})}, {{"permutation", Ints{0, 2, 1, 3}}}, "_heads");
  add(cases, "broadcast_to", {f32({1024})}, {{"dims", Dims{128, 1024}}});
  add(cases, "concat", {f32(kRows), f32(kRows)}, {{"axis", int64_t{1}}});
  add(cases, "slice", {f32(kRows)}, {{"begin", Dims{0, 100}}, {"size", Dims{128, 500}}});
  add(cases, "pad", {f32(kImages)}, {{"low", Ints{0, 1, 1, 0}}, {"high", Ints{0, 1, 1, 0}}});
  add(cases, "gather", {f32({10000, 64}), indices({4096}, 10000)});
  add(cases, "gather", {f32(kRows), indices({512}, 1024)}, {{"axis", int64_t{1}}}, "_columns");
  add(cases, "gather_gradient", {f32({4096, 64}), indices({4096}, 10000)}, {{"dims", Dims{10000, 64}}});
  add(cases, "one_hot", {indices({1024}, 128)}, {{"depth", int64_t{128}}, {"dtype", DType::f32}});
}

void add_losses(std::vector<NamedCase> &cases) {
  for (const char *op : {"softmax", "log_softmax"}) {
    add(cases, op, {f32(kRows)});
    add(cases, op, {f32({16384, 10})}, {}, "_narrow");
  }
  for (const char *op : {"softmax_gradient", "log_softmax_gradient"})
    add(cases, op, {f32(kRows), f32(kRows, -2, -1)});
  add(cases, "sparse_softmax_cross_entropy", {f32(kRows), indices({128}, 1024)});
  add(cases, "softmax_cross_entropy", {f32(kRows), f32(kRows, 0, 1)});
  add(cases, "in_top_k", {f32(kRows), indices({128}, 1024)}, {{"k", int64_t{5}}});
}

/// Rows of 100 frames and 20 labels.
void add_ctc(std::vector<NamedCase> &cases) {
  const Operand labels = conformance::whole(DType::i64, {16, 20}, 1, 30);
  add(cases, "loss_ctc", {f32({16, 100, 30}), labels});
  add(cases, "loss_ctc", {f32({16, 100, 30}), labels}, {}, "_with_gradient");
  cases.back().with_gradient = true;
}

void add_layers(std::vector<NamedCase> &cases) {
  const ShapeDims c = {64};
  add(cases, "layer_norm", {f32(kRows), f32({1024}), f32({1024})}, {});
  add(cases, "rms_norm", {f32(kRows), f32({1024})}, {});
  add(cases, "group_norm", {f32(kImages), f32(c), f32(c)}, {{"groups", int64_t{8}}});
  add(cases, "batch_norm_inference", {f32(kImages), f32(c), f32(c), f32(c), positive(c)});
  const Attributes window = {{"window", Ints{2, 2}}};
  add(cases, "max_pool2d", {f32(kImages)}, window);
  add(cases, "avg_pool2d", {f32(kImages)}, window);
  add(cases, "matmul", {f32({64, 784}), f32({784, 512})}, {}, "_dense");
  add(cases, "matmul", {f32({64, 64, 64}), f32({64, 64, 64})}, {}, "_batches");
  add(cases, "matmul", {f32({1, 1024}), f32({1024, 1024})}, {}, "_one_row");
  add(cases, "matmul", {f32({1024, 1024}), f32({1024, 1})}, {}, "_one_column");
}

/// Functions of ops, each a program of several.
void add_functions(std::vector<NamedCase> &cases) {
  for (const char *function : {"relu6", "selu", "mish", "hard_sigmoid", "hard_swish", "softsign", "log_sigmoid",
                               "is_nan", "is_inf", "tan", "sinh", "cosh", "atan"})
    add(cases, function, {f32(kRows)});
  for (const char *function : {"asin", "acos"})
    add(cases, function, {f32(kRows, -0.9, 0.9)});
  for (const char *function : {"log2", "log10"})
    add(cases, function, {positive(kRows)});
  add(cases, "clip", {f32(kRows)}, {{"low", -1.0}, {"high", 1.0}});
  add(cases, "prelu", {f32(kRows), f32({1024})});
  add(cases, "atan2", {f32(kRows), f32(kRows)});
  add(cases, "logsumexp", {f32(kRows)}, {{"axes", Ints{1}}});
  add(cases, "norm", {f32(kRows)}, {{"axes", Ints{1}}});
  add(cases, "l2_normalize", {f32(kRows)});
  add(cases, "reduce_any", {truth(kRows)}, {{"axes", Ints{1}}});
  add(cases, "bincount", {indices({16384}, 128)}, {{"bins", int64_t{128}}});
  add(cases, "split", {f32(kRows)}, {{"parts", int64_t{4}}, {"axis", int64_t{1}}});
  add(cases, "stack", {f32(kRows), f32(kRows)}, {{"axis", int64_t{1}}});
  add(cases, "tile", {f32({128, 256})}, {{"multiples", Ints{1, 4}}});
  add(cases, "roll", {f32(kRows)}, {{"shifts", Ints{100}}, {"axes", Ints{1}}});
  add(cases, "reverse", {f32(kRows)}, {{"axes", Ints{1}}});
  add(cases, "lower_triangle", {f32({8, 256, 256})});
  add(cases, "cumsum", {f32(kRows)}, {{"axis", int64_t{1}}});
  add(cases, "cumprod", {f32(kRows)}, {{"axis", int64_t{1}}});
  add(cases, "sort", {f32(kRows)});
  add(cases, "argsort", {f32(kRows)});
  add(cases, "gather_nd", {f32({100, 100, 64}), indices({4096, 2}, 100)});
  for (const char *function : {"scatter_add", "scatter_max", "scatter_replace"})
    add(cases, function, {f32({10000, 64}), indices({4096}, 10000), f32({4096, 64})});
  add(cases, "einsum", {f32({8, 128, 4, 32}), f32({8, 128, 4, 32})}, {{"equation", std::string("bqhd,bkhd->bhqk")}});
  add(cases, "conv1d", {f32({8, 1024, 32}), f32({3, 32, 32})});
  add(cases, "conv2d_transpose", {f32({8, 16, 16, 32}), f32({4, 4, 32, 32})}, {{"stride", Ints{2, 2}}});
  add(cases, "conv3d", {f32({2, 16, 16, 16, 16}), f32({3, 3, 3, 16, 16})});
  add(cases, "max_pool3d", {f32({2, 16, 16, 16, 16})}, {{"window", Ints{2, 2, 2}}});
  add(cases, "resize2d", {f32(kImages)}, {{"size", Ints{64, 64}}});
}

void add_random(std::vector<NamedCase> &cases) {
  const Dims dims = {128, 1024};
  for (const char *op : {"random_uniform", "random_normal", "random_truncated_normal"})
    add(cases, op, {}, {{"dims", dims}});
  add(cases, "dropout", {f32(kRows)}, {{"rate", 0.3}});
}

std::vector<NamedCase> all_cases() {
  std::vector<NamedCase> cases;
  add_elementwise(cases);
  add_reductions(cases);
  add_shapes(cases);
  add_losses(cases);
  add_ctc(cases);
  add_layers(cases);
  add_functions(cases);
  add_random(cases);
  return cases;
}

/// The results of the case's op or entry, and the gradient if it is asked for.
graph::GraphBuilder::Values build_case(graph::GraphBuilder &b, const NamedCase &one,
                                       const graph::GraphBuilder::Values &values) {
  const OpCase &op = one.op;
  if (nn::find_definition(op.op, 1) == nullptr) return b.op_n(op.op, values, op.attributes);
  graph::GraphBuilder::Values further;
  const nn::ExpansionMode mode = {.training = one.with_gradient};
  graph::GraphBuilder::Values results = {nn::expand(b, op.op, 1, values, op.attributes, mode, &further)};
  results.insert(results.end(), further.begin(), further.end());
  if (!one.with_gradient || !b.ok()) return results;
  const auto gradients = graph::gradients_or_zeros(b, {results.data(), 1}, {}, {values.data(), 1});
  if (!gradients.ok()) b.fail(gradients.status());
  if (gradients.ok()) results.push_back(gradients->front());
  return results;
}

base::Result<double> milliseconds(const backend::DeviceRef &device, const NamedCase &one, double seconds) {
  const OpCase &op = one.op;
  std::vector<Tensor> inputs;
  for (const Operand &operand : op.inputs) {
    TUTTI_ASSIGN(Tensor tensor, conformance::make_operand(operand, inputs.size()));
    inputs.push_back(std::move(tensor));
  }
  const auto build = [&](graph::GraphBuilder &b, const graph::GraphBuilder::Values &values) {
    return build_case(b, one, values);
  };
  TUTTI_ASSIGN(const graph::Graph graph, conformance::build_graph(inputs, build));
  TUTTI_ASSIGN(const auto program, BoundGraph::make(device, graph));
  TUTTI_TRY(program->run(inputs));
  double least = 1e30;
  const double end = tutti::testing::wall_seconds() + seconds;
  do {
    const double start = tutti::testing::wall_seconds();
    TUTTI_TRY(program->run_again({}));
    least = std::min(least, 1e3 * (tutti::testing::wall_seconds() - start));
  } while (tutti::testing::wall_seconds() < end);
  return least;
}

/// Of all cases, or of those named; one that cannot be measured ends it.
base::Status measure(double seconds, const std::vector<std::string> &names) {
  TUTTI_ASSIGN(const backend::BackendRef cpu, runtime::open_backend("cpu", "{}", {}));
  TUTTI_ASSIGN(const backend::DeviceRef device, cpu->open_device(0));
  const std::vector<NamedCase> cases = all_cases();
  for (const std::string &name : names) {
    if (std::ranges::find(cases, name, &NamedCase::name) == cases.end())
      return base::not_found("there is no '", name, "'");
  }
  for (const NamedCase &one : cases) {
    if (!names.empty() && std::ranges::find(names, one.name) == names.end()) continue;
    TUTTI_ASSIGN(const double least, milliseconds(device, one, seconds));
    std::printf("%s %.5f\n", one.name.c_str(), least);
  }
  return base::Status();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s SECONDS [NAME ...]\n", argv[0]);
    return 2;
  }
  const base::Status status = measure(std::atof(argv[1]), {argv + 2, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
