// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements, pick by index, draw numbers and update, at sizes that the conformance suite leaves out:
// several blocks and tiles, odd shapes, indices that occur again and again, bad indices, updates that are not made.
// Results are those of the reference backend bit for bit wherever no rounding is involved.
//
// usage: shape_ops_test BACKEND
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "../../conformance/backend_under_test.h"
#include "../../conformance/bound_graph.h"
#include "backend/graph_executor.h"
#include "base/random/philox.h"
#include "base/text.h"
#include "testing.h"

namespace shape_ops_test {

using namespace tutti::impl;
using backend::RunScalar;
using backend::RunScalars;
using conformance::Arenas;
using conformance::BackendUnderTest;
using conformance::BoundGraph;
using conformance::BuildFunction;
using graph::Attributes;
using graph::Dims;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;

template <typename T>
std::span<T> elements_of(const Tensor &tensor) {
  return {static_cast<T *>(tensor.mutable_data()), static_cast<size_t>(tensor.elements())};
}

/// Whole numbers in [low, high): their sums are exact.
Tensor whole(DType dtype, const Ints &dims, base::RandomStream &draws, int64_t low, int64_t high) {
  Tensor made = Tensor::allocate(dtype, *tensor::Shape::make(dims)).take();
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    for (T &element : elements_of<T>(made))
      element = static_cast<T>(static_cast<float>(low + draws.below(high - low)));
  });
  return made;
}

Tensor indices_of(const Ints &dims, const std::vector<int64_t> &values) {
  return Tensor::from_values<int64_t>(*tensor::Shape::make(dims), std::span<const int64_t>(values)).take();
}

BuildFunction op(std::string name, Attributes attributes) {
  return [=](GraphBuilder &builder, const Values &values) { return builder.op_n(name, values, attributes); };
}

/// Ok where both backends give the same bits.
base::Status compare(const std::vector<Tensor> &inputs, const BuildFunction &build, const RunScalars &scalars = {}) {
  TUTTI_ASSIGN(const std::vector<Tensor> expected, conformance::run_graph(tested->oracle, inputs, build, scalars));
  TUTTI_ASSIGN(const std::vector<Tensor> results, conformance::run_graph(tested->device, inputs, build, scalars));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (tensor::identical(results[i], expected[i])) continue;
    TUTTI_TRY(tensor::compare_close(results[i], expected[i], 0, 0));
    return base::internal_error("result ", i, " differs in bits that are no numbers");
  }
  return base::Status();
}

// ---- moves ----

Ints random_dims(base::RandomStream &draws) {
  const int64_t sizes[] = {1, 2, 3, 4, 8, 9, 16, 31, 33, 40, 64, 70};
  Ints dims(static_cast<size_t>(1 + draws.below(5)));
  do {
    for (int64_t &dim : dims)
      dim = sizes[draws.below(static_cast<int64_t>(std::size(sizes)))];
  } while (std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()) > 20000);
  return dims;
}

DType random_dtype(base::RandomStream &draws) {
  const DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i32, DType::boolean};
  return dtypes[draws.below(static_cast<int64_t>(std::size(dtypes)))];
}

/// Where a block of x lies: begins, sizes and steps that fit `dims`.
struct Block {
  Ints begin, size, step;
};

Block random_block(const Ints &dims, base::RandomStream &draws) {
  Block block;
  for (const int64_t dim : dims) {
    const bool is_whole = draws.below(2) == 0;
    block.step.push_back(is_whole || draws.below(3) != 0 ? 1 : 1 + draws.below(3));
    block.begin.push_back(is_whole ? 0 : draws.below(dim));
    block.size.push_back(is_whole ? dim : 1 + (dim - 1 - block.begin.back()) / block.step.back());
  }
  return block;
}

void transposes_at_any_shape(void **) {
  base::RandomStream draws(base::RandomKey::of(1, 0, 0));
  for (int i = 0; i < 200; ++i) {
    const Ints dims = random_dims(draws);
    Ints permutation(dims.size());
    std::iota(permutation.begin(), permutation.end(), int64_t{0});
    for (size_t k = permutation.size(); k > 1; --k)
      std::swap(permutation[k - 1], permutation[static_cast<size_t>(draws.below(static_cast<int64_t>(k)))]);
    const DType dtype = random_dtype(draws);
    const Tensor x = whole(dtype, dims, draws, 0, 2 + draws.below(200));
    const base::Status status = compare({x}, op("transpose", {{"permutation", permutation}}));
    if (!status.ok()) print_error("%s\n", base::concat(dtype, dims, " permuted ", permutation).c_str());
    assert_ok(status);
  }
}

void slices_and_paddings_at_any_shape(void **) {
  base::RandomStream draws(base::RandomKey::of(2, 0, 0));
  for (int i = 0; i < 150; ++i) {
    const Ints dims = random_dims(draws);
    const DType dtype = random_dtype(draws);
    const Block block = random_block(dims, draws);
    const Tensor x = whole(dtype, dims, draws, 0, 200);
    assert_ok(compare({x}, op("slice", {{"begin", graph::to_dims(block.begin)},
                                        {"size", graph::to_dims(block.size)},
                                        {"strides", block.step}})));
    Ints low, high;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      low.push_back(draws.below(3) == 0 ? draws.below(9) : 0);
      high.push_back(draws.below(3) == 0 ? draws.below(9) : 0);
    }
    assert_ok(compare({x}, op("pad", {{"low", low}, {"high", high}, {"value", 1.0 + static_cast<double>(i)}})));
    if (dtype == DType::boolean) continue;
    const Tensor dy = whole(dtype, block.size, draws, 0, 200);
    assert_ok(compare(
        {dy}, op("slice_gradient",
                 {{"begin", graph::to_dims(block.begin)}, {"strides", block.step}, {"dims", graph::to_dims(dims)}})));
  }
}

void broadcasts_at_any_shape(void **) {
  base::RandomStream draws(base::RandomKey::of(3, 0, 0));
  for (int i = 0; i < 100; ++i) {
    const Ints dims = random_dims(draws);
    Ints from(dims.begin() + draws.below(static_cast<int64_t>(dims.size())), dims.end());
    for (int64_t &dim : from)
      dim = draws.below(2) == 0 ? 1 : dim;
    const Tensor x = whole(random_dtype(draws), from, draws, 0, 200);
    assert_ok(compare({x}, op("broadcast_to", {{"dims", graph::to_dims(dims)}})));
  }
}

void many_pieces_are_joined(void **) {
  base::RandomStream draws(base::RandomKey::of(4, 0, 0));
  for (int i = 0; i < 30; ++i) {
    Ints dims = random_dims(draws);
    const int64_t axis = draws.below(static_cast<int64_t>(dims.size()));
    const DType dtype = random_dtype(draws);
    std::vector<Tensor> pieces;
    for (int64_t piece = draws.below(4) == 0 ? 70 : 1 + draws.below(5); piece > 0; --piece) {
      dims[static_cast<size_t>(axis)] = draws.below(9);
      pieces.push_back(whole(dtype, dims, draws, 0, 200));
    }
    assert_ok(compare(pieces, op("concat", {{"axis", axis}})));
  }
}

// ---- picking by index ----

/// `same` of ten indices are one of a few that differ in their upper bits alone, the rest are anywhere.
std::vector<int64_t> random_indices(int64_t picks, int64_t rows, int64_t same, base::RandomStream &draws) {
  int64_t step = 1;
  while (4 * step < rows)
    step *= 2;
  std::vector<int64_t> indices(static_cast<size_t>(picks));
  for (int64_t &index : indices) {
    const int64_t any = draws.below(rows);
    index = draws.below(10) >= same ? any : any / step * step;
  }
  return indices;
}

void gather_gradients_add_up_duplicates(void **) {
  base::RandomStream draws(base::RandomKey::of(5, 0, 0));
  for (const int64_t picks : {1, 2, 15, 16, 17, 33, 257, 1023, 1025, 3001}) {
    for (const int64_t rows : {1, 2, 31, 32, 33, 1024, 40000}) {
      const int64_t same = draws.below(3) * 5, inner = 1 + draws.below(4);
      const Tensor indices = indices_of({picks}, random_indices(picks, rows, same, draws));
      const Tensor dy = whole(DType::f32, {picks, inner}, draws, -9, 10);
      const base::Status status = compare({dy, indices}, op("gather_gradient", {{"dims", Dims{rows, inner}}}));
      if (!status.ok()) print_error("%s\n", base::concat(picks, " indices into ", rows, " rows, same ", same).c_str());
      assert_ok(status);
    }
  }
}

void gather_gradients_along_inner_axes(void **) {
  base::RandomStream draws(base::RandomKey::of(6, 0, 0));
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor indices = indices_of({13, 51}, random_indices(13 * 51, 9, 5, draws));
    const Tensor dy = whole(dtype, {3, 13, 51, 4}, draws, -9, 10);
    assert_ok(compare({dy, indices}, op("gather_gradient", {{"axis", int64_t{1}}, {"dims", Dims{3, 9, 4}}})));
  }
  // 16-bit floats are added in float and rounded once, as in the reference.
  const Tensor indices = indices_of({500}, random_indices(500, 3, 0, draws));
  const Tensor dy = whole(DType::bf16, {500, 7}, draws, -3, 4);
  assert_ok(compare({dy, indices}, op("gather_gradient", {{"dims", Dims{3, 7}}})));
}

void sums_of_duplicates_repeat(void **) {
  base::RandomStream draws(base::RandomKey::of(7, 0, 0));
  const Tensor indices = indices_of({2500}, random_indices(2500, 50, 5, draws));
  Tensor dy = whole(DType::f32, {2500, 3}, draws, -1000, 1000);
  for (float &value : elements_of<float>(dy))
    value /= 7;
  const BuildFunction build = op("gather_gradient", {{"dims", Dims{50, 3}}});
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, {dy, indices}, build));
  const auto first = assert_ok_value(conformance::run_graph(tested->device, {dy, indices}, build));
  const auto second = assert_ok_value(conformance::run_graph(tested->device, {dy, indices}, build));
  assert_ok(tensor::compare_close(first[0], expected[0], 1e-5, 1e-2));
  assert_true(tensor::identical(first[0], second[0]));
}

void slices_of_any_width_are_gathered(void **) {
  base::RandomStream draws(base::RandomKey::of(8, 0, 0));
  for (int i = 0; i < 60; ++i) {
    const Ints dims = random_dims(draws);
    const int64_t axis = draws.below(static_cast<int64_t>(dims.size())), picks = 1 + draws.below(40);
    const Tensor indices =
        indices_of({picks}, random_indices(picks, dims[static_cast<size_t>(axis)], draws.below(2) * 5, draws));
    const Tensor params = whole(random_dtype(draws), dims, draws, 0, 200);
    assert_ok(compare({params, indices}, op("gather", {{"axis", axis}})));
  }
}

void bad_indices_are_named(void **) {
  base::RandomStream draws(base::RandomKey::of(9, 0, 0));
  for (const int64_t bad : {int64_t{-1}, int64_t{7}, int64_t{1} << 40}) {
    std::vector<int64_t> values = random_indices(2000, 7, 0, draws);
    values[1234] = bad;
    const Tensor indices = indices_of({2000}, values);
    const std::string text = base::concat("index ", bad, " at position 1234 is outside [0, 7)");
    for (const int64_t inner : {0, 1, 5}) {
      const Tensor params = whole(DType::f32, {7, inner}, draws, 0, 9),
                   dy = whole(DType::f32, {2000, inner}, draws, 0, 9);
      for (const backend::DeviceRef &device : {tested->oracle, tested->device}) {
        const auto gathered = conformance::run_graph(device, {params, indices}, op("gather", {}));
        assert_int_equal(static_cast<int>(gathered.code()), static_cast<int>(base::Code::invalid_argument));
        assert_error_contains(gathered, "node 'gather'");
        assert_error_contains(gathered, text.c_str());
        const BuildFunction gradient = op("gather_gradient", {{"dims", Dims{7, inner}}});
        assert_error_contains(conformance::run_graph(device, {dy, indices}, gradient), text.c_str());
      }
    }
  }
}

void counting_and_marking(void **) {
  base::RandomStream draws(base::RandomKey::of(10, 0, 0));
  for (const DType dtype : {DType::f32, DType::i32, DType::u8, DType::i64}) {
    assert_ok(compare({}, op("iota", {{"dims", Dims{7, 33, 5}}, {"axis", int64_t{1}}, {"dtype", dtype}})));
    const Tensor indices = whole(DType::i32, {100}, draws, -3, 40);
    assert_ok(compare({indices}, op("one_hot", {{"depth", int64_t{37}}, {"on", 3.0}, {"off", 1.0}, {"dtype", dtype}})));
  }
}

// ---- random numbers ----

/// Rows of a batch in the middle of the global one.
base::Status compare_random(const graph::Graph &graph, const std::vector<Tensor> &inputs, int64_t rows) {
  RunScalars scalars;
  scalars.set(RunScalar::seed, 11).set(RunScalar::batch_counter, 5).set(RunScalar::row_offset, 1000);
  std::vector<std::vector<Tensor>> results;
  for (const backend::DeviceRef &device : {tested->oracle, tested->device}) {
    TUTTI_ASSIGN(const auto executor, backend::GraphExecutor::create(device, graph));
    TUTTI_ASSIGN(std::vector<Tensor> values, executor->run(inputs, scalars, {{"batch", rows}}));
    results.push_back(std::move(values));
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    if (!tensor::identical(results[1][i], results[0][i]))
      return base::internal_error("result ", i, ": ",
                                  tensor::compare_close(results[1][i], results[0][i], 0, 0).message());
  }
  return base::Status();
}

void draws_are_the_reference_backend_s(void **) {
  base::RandomStream draws(base::RandomKey::of(11, 0, 0));
  for (const auto &[before, after] :
       {std::pair<Ints, Ints>{{}, {5}}, {{}, {8, 3}}, {{3}, {5}}, {{2, 2}, {4}}, {{}, {}}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const int64_t rows = 37;
      Dims dims = graph::to_dims(before);
      dims.push_back(GraphBuilder::batch());
      for (const int64_t dim : after)
        dims.push_back(dim);
      Ints sizes = before;
      sizes.push_back(rows);
      sizes.insert(sizes.end(), after.begin(), after.end());
      GraphBuilder builder;
      // A rate of one half scales without rounding.
      builder.set_result("d", builder.op("dropout", {builder.input("x", dtype, dims)}, {{"rate", 0.5}}));
      builder.set_result("u", builder.op("random_uniform", Values{},
                                         {{"dims", dims}, {"low", -0.3}, {"high", 0.9}, {"dtype", dtype}}));
      builder.set_result("fixed", builder.op("random_uniform", Values{}, {{"dims", Dims{1001}}, {"dtype", dtype}}));
      const Tensor x = whole(dtype, sizes, draws, 1, 100);
      assert_ok(compare_random(assert_ok_value(builder.finish_graph()), {x}, rows));
    }
  }
}

// ---- updates ----

struct Rule {
  const char *op;
  size_t slots;
  bool has_iteration;
};
const Rule kRules[] = {{"sgd_update", 0, false}, {"momentum_update", 1, false}, {"adam_update", 2, true}};

/// Arrays of w, g and slots, then the scalars.
std::vector<Tensor> update_inputs(const Rule &rule, DType weight, DType gradient, DType rate, int64_t count, bool ok) {
  base::RandomStream draws(base::RandomKey::of(12, static_cast<uint64_t>(count), 0));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 2 + rule.slots; ++i)
    inputs.push_back(whole(i == 1 ? gradient : weight, {count}, draws, 1, 100));
  inputs.push_back(whole(rate, {}, draws, 1, 2));
  if (rule.has_iteration) inputs.push_back(whole(DType::i64, {}, draws, 3, 4));
  inputs.push_back(Tensor::scalar<bool>(ok).take());
  return inputs;
}

/// Bits that a conversion would change: signalling NaNs, -0, denormals.
void fill_with_odd_bits(Tensor &tensor, uint64_t seed) {
  base::RandomStream draws(base::RandomKey::of(seed, 0, 0));
  const uint32_t odd[] = {0x7f800001, 0xffbfffff, 0x80000000, 0x00000001, 0x7fc12345, 0xff800000};
  for (uint32_t &word : elements_of<uint32_t>(tensor))
    word = draws.below(2) == 0 ? draws.next() : odd[draws.below(std::size(odd))];
}

bool same_bytes(const Tensor &a, const Tensor &b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

void updates_that_are_not_made_keep_every_byte(void **) {
  for (const Rule &rule : kRules) {
    for (const int64_t count : {1, 3, 4, 1000, 5003}) {
      std::vector<Tensor> inputs = update_inputs(rule, DType::f32, DType::f32, DType::f32, count, false);
      for (size_t i = 0; i < 2 + rule.slots; ++i)
        fill_with_odd_bits(inputs[i], i);
      const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, op(rule.op, {})));
      assert_int_equal(results.size(), 1 + rule.slots);
      for (size_t i = 0; i < results.size(); ++i)
        assert_true(same_bytes(results[i], inputs[i == 0 ? 0 : i + 1]));
    }
  }
}

/// The entries of `names`, one behind the other in one arena.
backend::StateTable entries_of(const std::vector<std::string> &names, int64_t count) {
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  int64_t offset = 0;
  for (const std::string &name : names) {
    assert_ok(table.add({.name = name, .arena = arena, .offset = offset, .dims = {count}, .storage_bytes = 4 * count}));
    offset += (4 * count + 63) / 64 * 64;
  }
  return table;
}

void updates_in_place(void **) {
  constexpr int64_t kCount = 1003;
  const std::vector<std::string> names = {"w", "m", "v"};
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, entries_of(names, kCount)));
  GraphBuilder b;
  const auto read = [&](const std::string &name) { return b.state_read(name, DType::f32, {kCount}); };
  const Values updated = b.op_n(
      "adam_update", {read("w"), b.input("g", DType::f32, {kCount}), read("m"), read("v"), b.constant(0.1, DType::f32),
                      b.constant(3, DType::i64), b.input("ok", DType::boolean, {})});
  for (size_t i = 0; i < names.size(); ++i)
    b.state_write(updated[i], names[i]);
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  auto bound = assert_ok_value(BoundGraph::make(tested->device, graph, {}, &arenas));

  std::vector<Tensor> inputs = update_inputs(kRules[2], DType::f32, DType::f32, DType::f32, kCount, true);
  const std::vector<size_t> state = {0, 2, 3};
  const auto write = [&](const std::vector<Tensor> &values) {
    for (size_t i = 0; i < names.size(); ++i)
      if (!arenas.write(names[i], values[state[i]]).ok()) return false;
    return true;
  };
  inputs[4] = Tensor::scalar<float>(0.1f).take();
  assert_true(write(inputs));
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, op("adam_update", {})));
  assert_ok(bound->run({inputs[1], Tensor::scalar<bool>(true).take()}));
  for (size_t i = 0; i < names.size(); ++i)
    assert_ok(tensor::compare_close(assert_ok_value(arenas.read(names[i])), expected[i], 1e-5, 1e-5));

  std::vector<Tensor> odd = inputs;
  for (const size_t i : state)
    fill_with_odd_bits(odd[i], 40 + i);
  assert_true(write(odd));
  assert_ok(bound->run({inputs[1], Tensor::scalar<bool>(false).take()}));
  for (size_t i = 0; i < names.size(); ++i)
    assert_true(same_bytes(assert_ok_value(arenas.read(names[i])), odd[state[i]]));
}

void updates_of_any_dtypes(void **) {
  const DType floats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  for (const Rule &rule : kRules) {
    for (const DType weight : floats) {
      for (const DType gradient : floats) {
        for (const int64_t count : {7, 260}) {
          const auto inputs = update_inputs(rule, weight, gradient, DType::f64, count, true);
          const Attributes attributes{{"weight_decay", 0.01}};
          const auto expected =
              assert_ok_value(conformance::run_graph(tested->oracle, inputs, op(rule.op, attributes)));
          const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, op(rule.op, attributes)));
          const double tolerance = weight == DType::f64   ? 1e-12
                                   : weight == DType::f32 ? 1e-5
                                   : weight == DType::f16 ? 2e-3
                                                          : 1.6e-2;
          for (size_t i = 0; i < expected.size(); ++i)
            assert_ok(tensor::compare_close(results[i], expected[i], tolerance, tolerance));
        }
      }
    }
  }
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(transposes_at_any_shape),
    cmocka_unit_test(slices_and_paddings_at_any_shape),
    cmocka_unit_test(broadcasts_at_any_shape),
    cmocka_unit_test(many_pieces_are_joined),
    cmocka_unit_test(gather_gradients_add_up_duplicates),
    cmocka_unit_test(gather_gradients_along_inner_axes),
    cmocka_unit_test(sums_of_duplicates_repeat),
    cmocka_unit_test(slices_of_any_width_are_gathered),
    cmocka_unit_test(bad_indices_are_named),
    cmocka_unit_test(counting_and_marking),
    cmocka_unit_test(draws_are_the_reference_backend_s),
    cmocka_unit_test(updates_that_are_not_made_keep_every_byte),
    cmocka_unit_test(updates_in_place),
    cmocka_unit_test(updates_of_any_dtypes),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  return cmocka_run_group_tests_name("shape_ops", kTests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace shape_ops_test
