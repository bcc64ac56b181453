// SPDX-License-Identifier: Apache-2.0
//
// Networks whose normalised values are made again for their gradients: the same bits as without, the reference
// backend's results, and less memory; and that nothing is made again where it would save nothing or be something else.
//
// usage: recomputed_norms_test PLUG-IN
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/gpu/norm_cases.h"
#include "base/temporary_directory.h"
#include "bound_graph.h"
#include "graph/autodiff.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace recomputed_norms_test {

using namespace tutti::impl;
using conformance::Arenas;
using conformance::BackendUnderTest;
using conformance::BoundGraph;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::norm;
using tutti::testing::tested;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

std::string plugin;
backend::DeviceRef recomputing, keeping;

const Attributes kPool = {{"window", Dims{2, 2}}};

backend::DeviceRef open_device(const std::string &options) {
  const backend::BackendRef opened = assert_ok_value(runtime::open_backend(plugin, options, backend::HostOptions()));
  return assert_ok_value(opened->open_device(0));
}

size_t count_of(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + 1);
  return count;
}

struct Seen {
  size_t made_again = 0;
  int64_t bytes = 0, bytes_without = 0;
};

/// That both devices give the same bits, which are right within the limit.
Seen check(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, double limit = 1e-4,
           int32_t flags = 0) {
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto again = assert_ok_value(BoundGraph::make(recomputing, graph, {}, nullptr, flags));
  const auto kept = assert_ok_value(BoundGraph::make(keeping, graph, {}, nullptr, flags));
  const auto oracle = assert_ok_value(BoundGraph::make(tested->oracle, graph));
  const auto expected = assert_ok_value(oracle->run(inputs)), results = assert_ok_value(again->run(inputs)),
             without = assert_ok_value(kept->run(inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t bytes = static_cast<size_t>(results[i].elements()) * tensor::size_bytes(results[i].dtype());
    if (bytes != 0) assert_memory_equal(results[i].data(), without[i].data(), bytes);
    assert_ok(tensor::compare_close(results[i], expected[i], limit, limit));
  }
  return {count_of(again->description().report_json, "/again\""), again->description().workspace_bytes,
          kept->description().workspace_bytes};
}

std::vector<Tensor> operands(const std::vector<Dims> &shapes) {
  return assert_ok_value(conformance::make_operands(shapes, DType::f32, 300));
}

Values with_gradients(GraphBuilder &b, ValueId target, const Values &wrt) {
  const Values targets = {target};
  Values results = assert_ok_value(graph::gradients(b, targets, {}, wrt));
  results.push_back(target);
  return results;
}

/// An image, then for each block a kernel, a scale and an offset.
std::vector<Tensor> images_and_blocks(const Dims &image, int64_t channels, int blocks) {
  std::vector<Dims> shapes = {image};
  for (int i = 0; i < blocks; ++i) {
    shapes.push_back({3, 3, i == 0 ? image.back() : channels, channels});
    shapes.insert(shapes.end(), 2, Dims{channels});
  }
  return operands(shapes);
}

ValueId blocks(GraphBuilder &b, const Values &v, const std::string &activation = "relu") {
  ValueId x = v[0];
  for (size_t i = 1; i + 2 < v.size(); i += 3)
    x = b.unary(activation, norm(b, {b.op("conv2d", {x, v[i]}), v[i + 1], v[i + 2]})[0]);
  return x;
}

Values weights(const Values &v) { return {v.begin() + 1, v.end()}; }

// ---- what is made again ----

void convolutional_blocks_are_made_again(void **) {
  for (const Dims &image : {Dims{2, 8, 8, 3}, Dims{3, 7, 5, 8}, Dims{1, 1, 1, 2}}) {
    const Seen seen = check(images_and_blocks(image, 8, 4), [](GraphBuilder &b, const Values &v) {
      const ValueId y = blocks(b, v);
      return with_gradients(b, b.op("reduce_sum", {b.mul(y, y)}), weights(v));
    });
    // Of all blocks but the last, which no kernel's gradient reads: normalisation and relu.
    assert_int_equal(seen.made_again, 6);
  }
}

void half_of_a_deep_network_is_kept(void **) {
  const Seen seen = check(images_and_blocks({8, 16, 16, 8}, 8, 8), [](GraphBuilder &b, const Values &v) {
    return with_gradients(b, b.op("reduce_mean", {blocks(b, v)}), weights(v));
  });
  assert_int_equal(seen.made_again, 14);
  // Of 16 values of 64 KiB 7 are not kept, of which one is there at a time.
  const int64_t value = int64_t{8} * 16 * 16 * 8 * 4;
  assert_true(seen.bytes_without - seen.bytes >= 4 * value);
}

void pools_read_what_is_made_again(void **) {
  const Seen seen = check(images_and_blocks({2, 8, 6, 3}, 4, 1), [](GraphBuilder &b, const Values &v) {
    const ValueId pooled = b.op("max_pool2d", {blocks(b, v)}, kPool);
    return with_gradients(b, b.op("reduce_sum", {b.mul(pooled, pooled)}), weights(v));
  });
  assert_int_equal(seen.made_again, 2);
}

void a_normalisation_alone_is_made_again(void **) {
  const Seen seen = check(images_and_blocks({2, 8, 6, 3}, 4, 2), [](GraphBuilder &b, const Values &v) {
    const ValueId y = norm(b, {b.op("conv2d", {v[0], v[1]}), v[2], v[3]})[0];
    const ValueId z = norm(b, {b.op("conv2d", {y, v[4]}), v[5], v[6]})[0];
    return with_gradients(b, b.op("reduce_sum", {b.mul(z, z)}), weights(v));
  });
  assert_true(seen.made_again >= 1);
}

void so_it_is_in_mixed_precision(void **) {
  const Seen seen = check(
      images_and_blocks({4, 8, 8, 8}, 16, 3),
      [](GraphBuilder &b, const Values &v) {
        const ValueId y = blocks(b, v);
        return with_gradients(b, b.op("reduce_mean", {b.mul(y, y)}), weights(v));
      },
      0.05, TUTTI_COMPILE_BF16_WHERE_FASTER);
  // Casts, too.
  assert_true(seen.made_again >= 4);
}

// ---- what is kept ----

void other_activations_are_kept(void **) {
  const Seen seen = check(images_and_blocks({2, 8, 8, 3}, 4, 3), [](GraphBuilder &b, const Values &v) {
    return with_gradients(b, b.op("reduce_sum", {blocks(b, v, "tanh")}), weights(v));
  });
  assert_int_equal(seen.made_again, 0);
}

void results_are_kept(void **) {
  const Seen seen = check(images_and_blocks({2, 8, 8, 3}, 4, 2), [](GraphBuilder &b, const Values &v) {
    const Values first = {v[0], v[1], v[2], v[3]};
    const ValueId z = blocks(b, first);
    const ValueId y = blocks(b, {z, v[4], v[5], v[6]});
    Values results = with_gradients(b, b.op("reduce_sum", {b.mul(y, y)}), weights(v));
    results.push_back(z);
    return results;
  });
  assert_int_equal(seen.made_again, 0);
}

/// A scale that changes before the gradient: what is normalised with the new one is something else.
void what_has_changed_is_kept(void **) {
  const auto build = [](bool changes) {
    GraphBuilder b;
    const ValueId image = b.input("image", DType::f32, {2, 6, 6, 3});
    const ValueId kernel = b.input("kernel", DType::f32, {3, 3, 3, 4});
    const ValueId next = b.input("next", DType::f32, {3, 3, 4, 4});
    const ValueId scale = b.state_read("scale", DType::f32, {4});
    const ValueId offset = b.state_read("offset", DType::f32, {4});
    const ValueId z = b.unary("relu", norm(b, {b.op("conv2d", {image, kernel}), scale, offset})[0]);
    const ValueId y = b.op("conv2d", {z, next});
    if (changes) b.state_write(b.add(scale, scale), "scale");
    const Values targets = {b.op("reduce_sum", {b.mul(y, y)})}, wrt = {next, kernel};
    const auto gradients = assert_ok_value(graph::gradients(b, targets, {}, wrt));
    b.set_result("next", gradients[0]);
    b.set_result("kernel", gradients[1]);
    return assert_ok_value(b.finish_graph());
  };
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  assert_ok(table.add({.name = "scale", .arena = arena, .dims = {4}, .storage_bytes = 16}));
  assert_ok(table.add({.name = "offset", .arena = arena, .offset = 64, .dims = {4}, .storage_bytes = 16}));
  for (const bool changes : {false, true}) {
    Arenas arenas = assert_ok_value(Arenas::make(recomputing, table));
    const auto bound = assert_ok_value(BoundGraph::make(recomputing, build(changes), {}, &arenas));
    assert_int_equal(count_of(bound->description().report_json, "/again\""), changes ? 0 : 2);
  }
}

void small_values_are_kept(void **) {
  const backend::DeviceRef usual = open_device("{}");
  const std::vector<Tensor> inputs = images_and_blocks({2, 8, 8, 3}, 4, 3);
  const auto graph = assert_ok_value(conformance::build_graph(inputs, [](GraphBuilder &b, const Values &v) {
    return with_gradients(b, b.op("reduce_sum", {blocks(b, v)}), weights(v));
  }));
  const auto bound = assert_ok_value(BoundGraph::make(usual, graph));
  assert_int_equal(count_of(bound->description().report_json, "/again\""), 0);
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  plugin = argv[1];
  // Both are to take the same algorithms of a library, which have bits of their own.
  const tutti::testing::TemporaryDirectory plans;
  const std::string options = R"({"plan_cache": ")" + plans.path() + R"(", "recompute_from_bytes": )";
  recomputing = open_device(options + "0}");
  keeping = open_device(options + "1000000000000}");
  const CMUnitTest tests[] = {
      cmocka_unit_test(convolutional_blocks_are_made_again),
      cmocka_unit_test(half_of_a_deep_network_is_kept),
      cmocka_unit_test(pools_read_what_is_made_again),
      cmocka_unit_test(a_normalisation_alone_is_made_again),
      cmocka_unit_test(so_it_is_in_mixed_precision),
      cmocka_unit_test(other_activations_are_kept),
      cmocka_unit_test(results_are_kept),
      cmocka_unit_test(what_has_changed_is_kept),
      cmocka_unit_test(small_values_are_kept),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  recomputing = keeping = nullptr;
  return failed;
}
TEST_SOURCE(run_all)

}  // namespace recomputed_norms_test
