// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradients become plans of cuDNN, for a GPU that is described. Skipped where cuDNN is missing or
// older than 9.11.
#include "backend/cuda/cudnn_attention.h"

#include <set>
#include <string>
#include <vector>

#include "described_device.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::backend::cuda;
using tensor::DType;

namespace {

AttentionShape shape_of(DType dtype, int64_t length, int64_t key_length, int64_t heads, int64_t key_heads,
                        int64_t channels, bool is_causal) {
  return {dtype, 4, length, key_length, heads, key_heads, channels, is_causal, 0.125f};
}

/// q, k and v as parts of one product.
AttentionShape in_one_product(AttentionShape shape) {
  shape.q_pitch = shape.k_pitch = shape.v_pitch = (shape.heads + 2 * shape.key_heads) * shape.channels;
  return shape;
}

std::vector<CudnnAttention> plans(const AttentionShape &shape, AttentionPass pass, bool is_repeatable = false) {
  CudnnLimits limits;
  limits.most_scratch = int64_t{1} << 30;
  limits.must_repeat = is_repeatable;
  return assert_ok_value(CudnnAttention::find(described_cudnn(), described_device(), shape, pass, limits));
}

/// cuDNN takes the graphs as attention: the scores lie nowhere but where sums have to be in one order.
void usual_shapes_have_plans(void **) {
  if (!has_described_device() || !has_driver()) test_skip();
  const AttentionShape shapes[] = {
      shape_of(DType::bf16, 1024, 1024, 12, 12, 64, true),
      shape_of(DType::f16, 1024, 1024, 12, 12, 64, true),
      shape_of(DType::bf16, 512, 512, 8, 8, 128, false),
      shape_of(DType::bf16, 197, 197, 12, 12, 64, false),
      shape_of(DType::bf16, 1024, 1024, 16, 4, 64, true),
      shape_of(DType::bf16, 128, 640, 8, 8, 64, true),
      in_one_product(shape_of(DType::bf16, 1024, 1024, 12, 12, 64, true)),
      in_one_product(shape_of(DType::f16, 197, 197, 12, 12, 64, false)),
      in_one_product(shape_of(DType::bf16, 1024, 1024, 16, 4, 64, true)),
  };
  for (const AttentionShape &shape : shapes) {
    const int64_t queries = shape.score_rows() * shape.channels * 4;
    const int64_t scores = shape.score_rows() * shape.key_length * 2;
    for (const bool is_repeatable : {false, true}) {
      const std::vector<CudnnAttention> forward = plans(shape, AttentionPass::forward, is_repeatable);
      const std::vector<CudnnAttention> gradient = plans(shape, AttentionPass::gradient, is_repeatable);
      assert_int_equal(forward.size(), 1);
      // Up to 9.15 other key lengths are not taken.
      const bool has_gradient = described_cudnn().cudnnGetVersion() > 91500 || shape.key_length % 128 == 0;
      assert_int_equal(gradient.size(), has_gradient ? 1 : 0);
      assert_true(forward[0].scratch_bytes() < queries);
      if (!has_gradient) continue;
      assert_true(gradient[0].scratch_bytes() < 4 * queries + (is_repeatable ? scores : 0));
    }
  }
}

/// What engines have no kernels for is refused, not an error.
void other_shapes_have_none(void **) {
  if (!has_described_device()) test_skip();
  for (const AttentionPass pass : {AttentionPass::forward, AttentionPass::gradient}) {
    assert_true(plans(shape_of(DType::bf16, 64, 64, 4, 4, 7, true), pass).empty());
  }
}

void shapes_have_names(void **) {
  const CudnnLimits limits;
  std::set<std::string> names;
  for (const AttentionPass pass : {AttentionPass::forward, AttentionPass::gradient}) {
    for (const bool is_causal : {false, true}) {
      for (const int64_t key_heads : {4, 2}) {
        for (const int64_t key_length : {64, 65})
          for (const AttentionShape &shape :
               {shape_of(DType::bf16, 64, key_length, 4, key_heads, 64, is_causal),
                in_one_product(shape_of(DType::bf16, 64, key_length, 4, key_heads, 64, is_causal))})
            names.insert(describe(shape, pass, limits));
      }
    }
  }
  assert_int_equal(names.size(), 32);
}

}  // namespace

int main() {
  (void)open_described_device();
  const CMUnitTest tests[] = {
      cmocka_unit_test(usual_shapes_have_plans),
      cmocka_unit_test(other_shapes_have_none),
      cmocka_unit_test(shapes_have_names),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
