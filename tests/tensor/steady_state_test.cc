// SPDX-License-Identifier: Apache-2.0
//
// Copying and viewing tensors and recycling buffers allocate nothing.
#include "base/allocation_probe.h"
#include "tensor/bytes_tensor.h"
#include "tensor/tensor.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::tensor;
using tutti::testing::AllocationProbe;

namespace {

void copies_and_views(void **) {
  const Tensor tensor = assert_ok_value(Tensor::zeros(DType::f32, {8, 4}));
  const Tensor texts = assert_ok_value(make_bytes_tensor({2}, {"a", "b"}));
  const AllocationProbe probe;
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor copy = tensor;
    const base::Result<Tensor> row = copy.row(i), rows = copy.slice_rows(i, 8), flat = copy.reshape({32});
    assert_true(row.ok() && rows.ok() && flat.ok() && row->values<float>().ok() && bytes_at(texts, 1) == "b");
  }
  assert_int_equal(probe.count(), 0);
}

void pooled_buffers(void **) {
  const Ref<BufferPool> pool = assert_ok_value(BufferPool::create(256));
  assert_ok(pool->acquire());
  const AllocationProbe probe;
  for (int i = 0; i < 100; ++i) {
    base::Result<Ref<Buffer>> block = pool->acquire();
    assert_true(block.ok() && Tensor::from_buffer(DType::f32, {64}, block.take()).ok());
  }
  assert_int_equal(probe.count(), 0);
}

void a_small_tensor_is_one_allocation(void **) {
  const AllocationProbe probe;
  assert_true(Tensor::zeros(DType::f32, {16}).ok());
  assert_int_equal(probe.count(), 1);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(copies_and_views),
    cmocka_unit_test(pooled_buffers),
    cmocka_unit_test(a_small_tensor_is_one_allocation),
};

}  // namespace

TEST_MAIN(tests)
