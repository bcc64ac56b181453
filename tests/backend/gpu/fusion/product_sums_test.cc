// SPDX-License-Identifier: Apache-2.0
//
// Gradients of weights and biases as one call of a library, against the reference backend: which nodes the report says
// are one, and that their memory stays apart. The emulated GPU has a library for that (emulated_library.h).
//
// usage: product_sums_test PLUG-IN
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "graph/batch.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace product_sums_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

BackendUnderTest *tested = nullptr;

std::vector<Tensor> operands(const std::vector<Dims> &shapes) {
  return assert_ok_value(conformance::make_operands(shapes, DType::f32, 300));
}

size_t count_of(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + 1);
  return count;
}

/// How many nodes the report says are computed with another, of `all` that it names; all results are right.
size_t check(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, size_t all = 0) {
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 1e-4, 1e-4));
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, graph));
  const std::string &report = bound->description().report_json;
  if (all != 0) assert_int_equal(count_of(report, "\"kernel\":"), all);
  return count_of(report, "\"emulated(2)\"");
}

/// Both of two layers; activations lie between, and what is read last is made first.
void gradients_of_dense_layers_are_pairs(void **) {
  for (const int64_t rows : {1, 7, 40}) {
    const size_t nodes =
        check(operands({{rows, 9}, {rows, 6}, {6, 5}, {rows, 5}}), [](GraphBuilder &b, const Values &v) {
          const ValueId second_bias = b.reduce_sum(v[3], {0});
          const ValueId dx = b.op("relu_gradient", {b.matmul(v[3], v[2], false, true), v[1]});
          const ValueId second = b.matmul(v[1], v[3], true, false);
          const ValueId first = b.matmul(v[0], dx, true, false);
          const ValueId first_bias = b.reduce_sum(dx, {0});
          // More work in the same memory, before and behind what reads them.
          const ValueId norm = b.add(b.reduce_sum(b.mul(second, second), {0}), second_bias);
          return Values{first, first_bias, second, b.neg(second_bias), norm, b.unary("exp", first_bias)};
        });
    assert_int_equal(nodes, 4);
  }
}

void transposed_factors_are_pairs_too(void **) {
  const size_t nodes = check(
      operands({{8, 9}, {2, 4, 5}}),
      [](GraphBuilder &b, const Values &v) {
        const ValueId sum = b.reduce_sum(v[1], {0, 1});
        return Values{b.matmul(b.reshape(v[1], {8, 5}), v[0], true, false), sum};
      },
      2);
  assert_int_equal(nodes, 2);
}

void convolutions_of_one_pixel_are_pairs(void **) {
  const size_t nodes = check(
      operands({{2, 3, 4, 5}, {2, 3, 4, 7}}),
      [](GraphBuilder &b, const Values &v) {
        const ValueId gradient =
            b.op("conv2d_kernel_gradient", {v[0], v[1]}, {{"kernel_dims", graph::to_dims({1, 1, 5, 7})}});
        return Values{gradient, b.reduce_sum(v[1], {0, 1, 2})};
      },
      2);
  assert_int_equal(nodes, 2);
}

/// The product is made when the sum is, unless it reads what is made between.
void what_is_read_between_is_made_before(void **) {
  for (const bool is_made_between : {false, true}) {
    const size_t nodes = check(operands({{6, 4}, {6, 5}, {5, 3}, {4, 4}}), [&](GraphBuilder &b, const Values &v) {
      const ValueId sum = b.reduce_sum(v[1], {0}, true);
      const ValueId read = b.matmul(sum, v[2]);
      const ValueId x = is_made_between ? b.matmul(v[0], v[3]) : v[0];
      return Values{b.matmul(x, v[1], true, false), read};
    });
    assert_int_equal(nodes, is_made_between ? 0 : 2);
  }
}

/// In whole steps every dense layer is a pair, whether or not updates lie between its gradients; not at levels that
/// name the order of sums.
void networks_have_pairs(void **) {
  using backend::Level;
  const auto count = [](const char *name, Level level, bool keeps_gradients) {
    const auto model = assert_ok_value(tutti::testing::make_step_model(name, 8));
    const auto backend = assert_ok_value(runtime::open_backend(tested->name, "{}", {}));
    const auto trainer =
        assert_ok_value(tutti::testing::StepTrainer::create(backend, model, 4, level, 0, 1, keeps_gradients));
    size_t nodes = 0;
    for (const std::string &report : trainer.reports())
      nodes += count_of(report, "\"emulated(2)\"");
    return nodes;
  };
  for (const bool keeps_gradients : {false, true}) {
    assert_int_equal(count("mlp", Level::fast, keeps_gradients), 2 * 3);
    // Six in each of two blocks, and the last one.
    assert_int_equal(count("transformer", Level::fast, keeps_gradients), 2 * (2 * 6 + 1));
    assert_int_equal(count("mlp", Level::repeatable, keeps_gradients), 0);
    assert_int_equal(count("mlp", Level::invariant, keeps_gradients), 0);
  }
}

/// A step in mixed precision whose gradients are kept: in f32, of products of 16 bits that are widened.
struct MixedStep {
  size_t sums = 0;  ///< that the report says are made with a product and its cast
  std::map<std::string, std::vector<float>> gradients;
};

MixedStep mixed_step(const char *name, const char *library, bool keeps_gradients) {
  MixedStep made;
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", library, 1), 0);
  const auto model = assert_ok_value(tutti::testing::make_step_model(name, 8));
  const auto backend = assert_ok_value(runtime::open_backend(tested->name, "{}", {}));
  auto trainer = assert_ok_value(tutti::testing::StepTrainer::create(
      backend, model, 4, backend::Level::fast, TUTTI_COMPILE_BF16_WHERE_FASTER, 1, keeps_gradients));
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "sums", 1), 0);
  assert_ok(trainer.step());
  assert_ok(trainer.synchronize());
  for (const std::string &report : trainer.reports())
    made.sums += count_of(report, "\"op\":\"reduce_sum\",\"kernel\":\"emulated(3)\"");
  for (const auto &variable : model.variables) {
    if (keeps_gradients) made.gradients[variable.name] = assert_ok_value(trainer.values("gradient/0/", variable.name));
  }
  return made;
}

/// What the library stores is what kernels of their own do, of products that are stored in f32; where these are left
/// in 16 bits for the update, sums stay apart.
void sums_in_mixed_precision_are_f32(void **) {
  for (const char *name : {"mlp", "transformer"}) {
    const MixedStep together = mixed_step(name, "sums", true), apart = mixed_step(name, "", true);
    // Not in the last layer, whose bias adds up what is in f32, while the product reads it rounded.
    assert_int_equal(together.sums, std::string(name) == "mlp" ? 2 : 2 * 6);
    assert_int_equal(apart.sums, 0);
    assert_true(together.gradients == apart.gradients);
    assert_int_equal(mixed_step(name, "sums", false).sums, 0);
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  setenv("TUTTI_EMULATED_LIBRARY", "sums", 1);
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &opened.value();
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_of_dense_layers_are_pairs), cmocka_unit_test(transposed_factors_are_pairs_too),
      cmocka_unit_test(convolutions_of_one_pixel_are_pairs), cmocka_unit_test(what_is_read_between_is_made_before),
      cmocka_unit_test(sums_in_mixed_precision_are_f32),     cmocka_unit_test(networks_have_pairs),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace product_sums_test
