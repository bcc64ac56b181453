// SPDX-License-Identifier: Apache-2.0
//
// In steady state, where sizes repeat, the Routine allocates nothing for an element.
#include <cstdint>

#include "base/allocation_probe.h"
#include "routine_runs.h"

using namespace tutti::impl;
using namespace tutti::testing;
using data::RoutineValue;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

namespace {

struct Ready {
  std::unique_ptr<data::Routine> routine;
  size_t results;
};

Ready ready(GraphBuilder &b) {
  const auto graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  const auto plan = assert_ok_value(data::RoutinePlan::create(graph));
  return {std::make_unique<data::Routine>(plan, nullptr, std::make_shared<data::ResultPools>()), plan->results.size()};
}

// Allocations of 20 runs after a few to warm up; results into rows, or into buffers that are let go of at once.
int64_t allocations(const Ready &ready, const std::vector<RoutineValue> &elements, bool has_targets) {
  std::vector<std::vector<char>> rows(ready.results, std::vector<char>(1 << 16));
  std::vector<void *> targets(ready.results, nullptr);
  for (size_t i = 0; has_targets && i < rows.size(); ++i)
    targets[i] = rows[i].data();
  const auto run = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i)
      assert_ok(ready.routine->run({&elements[static_cast<size_t>(i) % elements.size()], 1}, {7, 0, i, 1}, targets));
  };
  run(4 * static_cast<int64_t>(elements.size()));
  const AllocationProbe probe;
  run(20);
  return probe.count();
}

void images_need_no_allocation(void **) {
  GraphBuilder b;
  auto image = b.input("image", DType::u8, {graph::Dim::symbol("height"), graph::Dim::symbol("width"), 3});
  image = b.op("random_resized_crop", {image}, {{"size", Ints{20, 30}}, {"area", std::vector<double>{1, 1}}});
  image = b.op("random_crop", {image}, {{"size", Ints{16, 16}}, {"padding", int64_t{2}}});
  image = b.op("random_color_jitter", {b.op("random_flip", {image})}, {{"contrast", 0.4}, {"hue", 0.1}});
  b.set_result("image", b.op("normalize_image", {image}));
  const Ready routine = ready(b);
  const std::vector<uint8_t> pixels(60 * 50 * 3, 9);
  std::vector<RoutineValue> elements;
  for (const int64_t height : {40, 50, 60})
    elements.push_back({DType::u8, {height, 50, 3}, pixels.data(), nullptr});
  assert_int_equal(allocations(routine, elements, true), 0);
  // A result that is an object of its own costs what its buffer costs as an object, not its memory.
  assert_true(allocations(routine, elements, false) <= 2 * 20);
}

void texts_need_no_allocation(void **) {
  GraphBuilder b;
  const auto text = b.input("text", DType::bytes, {});
  const auto words = b.op("bytes_tokenize", {text}, {{"count", int64_t{4}}});
  const auto known = b.constant(text_tensor({"", "the", "cat"}));
  b.set_result("index", b.op("lookup", {words, known}, {{"hash_buckets", int64_t{3}}}));
  b.set_result("length", b.op("bytes_length", {b.op("bytes_join", {words})}));
  const Ready routine = ready(b);
  const Tensor lines = text_tensor({"The cat sat.", "on", "the mat, of all places"});
  std::vector<RoutineValue> elements;
  for (int64_t i = 0; i < 3; ++i) {
    elements.push_back(
        {DType::bytes, {}, lines.data_as<int64_t>() + i, static_cast<const char *>(lines.buffer()->data())});
  }
  assert_int_equal(allocations(routine, elements, true), 0);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(images_need_no_allocation),
    cmocka_unit_test(texts_need_no_allocation),
};
TEST_MAIN(tests)
