// SPDX-License-Identifier: Apache-2.0
//
// Attention whose queries, keys and values are parts of one product, and gradients whose factor is columns of a matrix:
// the same bits whether a backend reads them where they lie or copies them first, which it must where they are results,
// too.
//
// usage: backend_views_test BACKEND
#include <cstring>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "graph/builder.h"
#include "testing.h"

namespace backend_views_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::BoundGraph;
using conformance::Operand;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;
bool copies_always = false;  // the reference backend, which shows what is right
bool reads_columns = false;  // factors of gradients are not copied

struct Sizes {
  int64_t rows, length, heads, key_heads, channels;
  int64_t key_length = 0;  ///< 0: keys are of the same product as queries

  int64_t of_queries() const { return heads * channels; }
  int64_t of_keys() const { return key_heads * channels; }
};

ValueId heads_of(GraphBuilder &b, ValueId wide, int64_t first, int64_t heads, int64_t channels) {
  const graph::Dims dims = b.dims(wide);
  const ValueId part = b.slice(wide, {0, 0, first}, {dims[0], dims[1], heads * channels});
  return b.reshape(part, {dims[0], dims[1], heads, channels});
}

/// Results: y, statistics, dq, dk, dv; where they are to be `copied`, q, k and v as well.
graph::Graph attention_graph(DType dtype, const Sizes &s, const std::string &op, const Attributes &attributes,
                             bool copied) {
  GraphBuilder b;
  const bool is_self = s.key_length == 0;
  const int64_t wide = s.of_queries() + (is_self ? 2 * s.of_keys() : 0), first_key = is_self ? s.of_queries() : 0;
  const ValueId x = b.neg(b.input("a_x", dtype, {s.rows, s.length, wide}));
  const ValueId dy = b.input("b_dy", dtype, {s.rows, s.length, s.heads, s.channels});
  const ValueId lengths = b.input("c_lengths", DType::i32, {s.rows});
  const ValueId memory = is_self ? x : b.neg(b.input("d_memory", dtype, {s.rows, s.key_length, 2 * s.of_keys()}));
  const ValueId q = heads_of(b, x, 0, s.heads, s.channels);
  const ValueId k = heads_of(b, memory, first_key, s.key_heads, s.channels);
  const ValueId v = heads_of(b, memory, first_key + s.of_keys(), s.key_heads, s.channels);
  const Values made = b.op_n(op, {q, k, v, lengths}, attributes, 2);
  const Values slopes = b.op_n(op + "_gradient", {dy, q, k, v, made[0], made[1], lengths}, attributes, 3);
  const Values results{made[0], made[1], slopes[0], slopes[1], slopes[2], q, k, v};
  for (size_t i = 0; i < (copied ? results.size() : 5); ++i)
    b.set_result(std::string(1, static_cast<char>('a' + i)), results[i]);
  return assert_ok_value(b.finish_graph());
}

Tensor operand(DType dtype, std::vector<int64_t> dims, uint64_t seed) {
  return assert_ok_value(conformance::make_operand({dtype, std::move(dims), -1, 1}, seed));
}

std::vector<Tensor> inputs_of(DType dtype, const Sizes &s) {
  const bool is_self = s.key_length == 0;
  const int64_t keys = is_self ? s.length : s.key_length;
  std::vector<Tensor> inputs{
      operand(dtype, {s.rows, s.length, s.of_queries() + (is_self ? 2 * s.of_keys() : 0)}, 1),
      operand(dtype, {s.rows, s.length, s.heads, s.channels}, 2),
      assert_ok_value(conformance::make_operand(
          conformance::whole(DType::i32, {s.rows}, static_cast<double>(keys) / 2, static_cast<double>(keys) + 1), 3))};
  if (!is_self) inputs.push_back(operand(dtype, {s.rows, keys, 2 * s.of_keys()}, 4));
  return inputs;
}

bool tells_of(const BoundGraph &bound, std::string_view op) {
  return bound.description().report_json.find(op) != std::string::npos;
}
bool has_slices(const BoundGraph &bound) { return tells_of(bound, "slice"); }

void check(DType dtype, const Sizes &s, const std::string &op, const Attributes &attributes) {
  const std::vector<Tensor> inputs = inputs_of(dtype, s);
  auto in_place = assert_ok_value(BoundGraph::make(tested->device, attention_graph(dtype, s, op, attributes, false)));
  auto copied = assert_ok_value(BoundGraph::make(tested->device, attention_graph(dtype, s, op, attributes, true)));
  const std::vector<Tensor> got = assert_ok_value(in_place->run(inputs));
  const std::vector<Tensor> expected = assert_ok_value(copied->run(inputs));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(got[i].data(), expected[i].data(), static_cast<size_t>(expected[i].size_bytes())) != 0)
      fail_msg("%s %s, %lld channels: result %zu differs", op.c_str(), std::string(name(dtype)).c_str(),
               static_cast<long long>(s.channels), i);
  }
  // Aligned parts are not copied, where it is known which kernels run.
  if (!tells_of(*copied, op)) return;
  if (copies_always || dtype != DType::f32 || s.channels % 4 != 0 || s.rows == 0) return;
  assert_true(has_slices(*copied));
  assert_false(has_slices(*in_place));
}

void parts_are_read_where_they_lie(void **) {
  const Sizes kSizes[] = {{2, 5, 4, 2, 8},         {3, 7, 3, 3, 3}, {2, 6, 2, 1, 4, 9}, {1, 130, 2, 2, 64},
                          {1, 140, 1, 1, 32, 270}, {2, 1, 1, 1, 1}, {0, 3, 2, 2, 4},    {1, 33, 4, 1, 12}};
  for (const Sizes &sizes : kSizes) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      if (dtype != DType::f32 && sizes.length > 50) continue;
      for (const bool causal : {false, true})
        check(dtype, sizes, "attention", {{"causal", causal}});
      check(dtype, sizes, "dropout_attention", {{"rate", 0.3}, {"key", int64_t{7}}});
    }
  }
}

/// A value that others read, too, or that is state, is left alone.
void what_others_read_is_copied(void **) {
  GraphBuilder b;
  const ValueId x = b.neg(b.input("x", DType::f32, {2, 3, 12}));
  const ValueId q = heads_of(b, x, 0, 1, 4), k = heads_of(b, x, 4, 1, 4);
  const ValueId part = b.slice(x, {0, 0, 8}, {2, 3, 4});
  const Values made = b.op_n("attention", {q, k, b.reshape(part, {2, 3, 1, 4})}, {}, 2);
  b.set_result("a", made[0]);
  b.set_result("b", b.neg(part));
  b.set_result("c", b.neg(x));
  auto bound = assert_ok_value(BoundGraph::make(tested->device, assert_ok_value(b.finish_graph())));
  const Tensor input = operand(DType::f32, {2, 3, 12}, 5);
  const std::vector<Tensor> got = assert_ok_value(bound->run({input}));
  const auto *const from = input.data_as<float>();
  for (int64_t position = 0; position < 6; ++position) {
    assert_memory_equal(got[1].data_as<float>() + 4 * position, from + 12 * position + 8, 4 * sizeof(float));
    assert_memory_equal(got[2].data_as<float>() + 12 * position, from + 12 * position, 12 * sizeof(float));
  }
  const std::vector<Tensor> expected =
      assert_ok_value(conformance::run_graph(tested->oracle, {input}, [](GraphBuilder &builder, const Values &v) {
        const ValueId y = builder.neg(v[0]);
        return Values{builder.op_n(
            "attention", {heads_of(builder, y, 0, 1, 4), heads_of(builder, y, 4, 1, 4), heads_of(builder, y, 8, 1, 4)},
            {}, 2)[0]};
      }));
  assert_ok(tensor::compare_close(got[0], expected[0], 1e-5, 1e-5));
}

/// A gradient whose first factor is a slice of a matrix of 96 columns.
struct SlicedFactor {
  int64_t rows, row_begin, row_end, first, columns;
  bool turned;
  std::vector<int64_t> strides = {};
  bool in_place = true;  ///< may it be read where it lies?
};

/// Results: the weight and its velocity behind an update; where it is to be `copied`, the slice as well.
graph::Graph update_graph(const SlicedFactor &s, bool copied) {
  constexpr int64_t kWide = 96, kOut = 80;
  const int64_t rows = s.row_end - s.row_begin, in = s.turned ? s.columns : rows, depth = s.turned ? rows : s.columns;
  GraphBuilder b;
  const ValueId x = b.input("a_x", DType::f32, {s.rows, kWide});
  const ValueId dy = b.input("b_dy", DType::f32, {depth, kOut});
  const ValueId weight = b.input("c_weight", DType::f32, {in, kOut});
  const ValueId velocity = b.input("d_velocity", DType::f32, {in, kOut});
  Attributes attributes{{"begin", graph::Dims{s.row_begin, s.first}}, {"size", graph::Dims{rows, s.columns}}};
  if (!s.strides.empty()) attributes["strides"] = s.strides;
  const ValueId factor = b.op("slice", {x}, attributes);
  const ValueId gradient = b.matmul(factor, dy, s.turned, false);
  const Values moved = b.op_n("momentum_update",
                              {weight, gradient, velocity, b.constant(0.1, DType::f32), b.constant(1, DType::boolean)},
                              {{"momentum", 0.9}}, 2);
  b.set_result("a", moved[0]);
  b.set_result("b", moved[1]);
  if (copied) b.set_result("c", factor);
  return assert_ok_value(b.finish_graph());
}

void check_columns(const SlicedFactor &s) {
  const graph::Graph graph = update_graph(s, false);
  auto in_place = assert_ok_value(BoundGraph::make(tested->device, graph));
  auto copied = assert_ok_value(BoundGraph::make(tested->device, update_graph(s, true)));
  std::vector<Tensor> inputs;
  const int64_t rows = s.row_end - s.row_begin, in = s.turned ? s.columns : rows, depth = s.turned ? rows : s.columns;
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{s.rows, 96}, {depth, 80}, {in, 80}, {in, 80}})
    inputs.push_back(operand(DType::f32, dims, inputs.size() + 1));
  const std::vector<Tensor> got = assert_ok_value(in_place->run(inputs));
  const std::vector<Tensor> expected = assert_ok_value(copied->run(inputs));
  auto of_oracle = assert_ok_value(BoundGraph::make(tested->oracle, graph));
  const std::vector<Tensor> right = assert_ok_value(of_oracle->run(inputs));
  for (size_t i = 0; i < got.size(); ++i) {
    assert_memory_equal(got[i].data(), expected[i].data(), expected[i].size_bytes());
    assert_ok(tensor::compare_close(got[i], right[i], 1e-5, 1e-5));
  }
  if (!reads_columns) return;
  assert_true(has_slices(*copied));
  assert_int_equal(has_slices(*in_place), !s.in_place);
}

void columns_are_read_where_they_lie(void **) {
  for (const bool turned : {true, false}) {
    check_columns({70, 0, 70, 16, 48, turned});
    check_columns({5, 0, 5, 95, 1, turned});
    check_columns({33, 0, 33, 0, 31, turned});
    check_columns({64, 0, 64, 7, 64, turned});
    check_columns({64, 0, 64, -40, 32, turned});
  }
}

void other_slices_are_copied(void **) {
  for (const bool turned : {true, false}) {
    check_columns({70, 3, 66, 16, 48, turned, {}, false});
    check_columns({70, 0, 70, 16, 40, turned, {1, 2}, false});
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  copies_always = std::string(argv[1]).find("reference") != std::string::npos;
  reads_columns = std::string(argv[1]) == "cpu";
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_read_where_they_lie),
      cmocka_unit_test(what_others_read_is_copied),
      cmocka_unit_test(columns_are_read_where_they_lie),
      cmocka_unit_test(other_slices_are_copied),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_views_test
