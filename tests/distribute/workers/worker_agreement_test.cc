// SPDX-License-Identifier: Apache-2.0
//
// What workers compare of their models.
#include "distribute/workers/worker_agreement.h"

#include <utility>

#include "graph/builder.h"
#include "testing.h"

namespace tutti::testing::worker_agreement_test {

using namespace tutti::impl;
using impl::distribute::Fact;
using impl::graph::GraphBuilder;
using impl::graph::ValueId;

namespace {

graph::Model model_with(graph::Attributes attributes) {
  GraphBuilder b;
  const ValueId x = b.feature("x", tensor::DType::f32, {GraphBuilder::batch(), 3});
  const ValueId w = b.variable("w", tensor::DType::f32, {3, 2}, {"ones", {}});
  b.set_output("y", b.op("matmul", {x, w}, std::move(attributes)));
  return b.finish().take();
}

std::vector<uint64_t> hashes_of(const graph::Model &model) {
  std::vector<uint64_t> hashes;
  for (const Fact &fact : distribute::facts_of(model))
    hashes.push_back(fact.hash);
  return hashes;
}

// Bindings may set what C programs leave out: it is the same model.
void test_defaults_may_be_set(void **) {
  const std::vector<uint64_t> left_out = hashes_of(model_with({}));
  assert_true(hashes_of(model_with({{"transpose_a", false}, {"transpose_b", false}})) == left_out);
  const graph::Model other = [] {
    GraphBuilder b;
    const ValueId x = b.feature("x", tensor::DType::f32, {GraphBuilder::batch(), 3});
    const ValueId w = b.variable("w", tensor::DType::f32, {2, 3}, {"ones", {}});
    b.set_output("y", b.op("matmul", {x, w}, {{"transpose_b", true}}));
    return b.finish().take();
  }();
  assert_true(hashes_of(other) != left_out);
}

// What is told of a difference names the attributes that are not at their defaults.
void test_texts(void **) {
  const std::vector<Fact> facts = distribute::facts_of(model_with({{"transpose_a", false}}));
  bool is_there = false;
  for (const Fact &fact : facts)
    is_there |= fact.text == "node 'matmul' (matmul)";
  assert_true(is_there);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults_may_be_set),
    cmocka_unit_test(test_texts),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::worker_agreement_test
