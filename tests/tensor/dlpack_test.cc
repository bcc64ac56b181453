// SPDX-License-Identifier: Apache-2.0
#include "tensor/dlpack.h"

#include <cstddef>
#include <vector>

#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace dlpack_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

// The layout of version 1, which other libraries were compiled against.
static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8 && sizeof(DLTensor) == 48);
static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20);
static_assert(offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
              offsetof(DLManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24 && offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

int deleted = 0;

// A producer of a 2 x 3 float tensor {0, ..., 5}.
struct Producer {
  std::vector<float> memory = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  DLManagedTensorVersioned managed{};

  Producer() {
    deleted = 0;
    managed.version = {1, 3};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned *self) { deleted += self->manager_ctx != nullptr; };
    managed.dl_tensor = {memory.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
  }
};

void compact_memory_is_shared(void **) {
  for (const bool with_strides : {true, false}) {
    Producer producer;
    producer.managed.dl_tensor.byte_offset = 4;
    if (!with_strides) producer.managed.dl_tensor.strides = nullptr;
    {
      const Tensor tensor = assert_ok_value(from_dlpack(&producer.managed));
      assert_ptr_equal(tensor.data(), &producer.memory[1]);
      assert_string_equal(tensor.to_string().c_str(), "f32 [2, 3] {1, 2, 3, 4, 5, 6}");
      assert_false(tensor.read_only());
      const Tensor row = assert_ok_value(tensor.row(1));
      assert_int_equal(deleted, 0);
    }
    assert_int_equal(deleted, 1);
  }
}

void flags_and_extents_of_one(void **) {
  Producer producer;
  producer.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  producer.shape = {1, 3};
  producer.strides = {12345, 1};  // the stride of one row says nothing
  {
    const Tensor tensor = assert_ok_value(from_dlpack(&producer.managed));
    assert_true(tensor.read_only());
    assert_ptr_equal(tensor.data(), producer.memory.data());
  }
  assert_int_equal(deleted, 1);
}

void strided_memory_is_copied(void **) {
  const struct {
    std::vector<int64_t> strides;
    uint64_t byte_offset;
    const char *text;
  } cases[] = {
      {{1, 2}, 0, "f32 [2, 3] {0, 2, 4, 1, 3, 5}"},
      {{5, 1}, 0, "f32 [2, 3] {0, 1, 2, 5, 6, 7}"},
      {{-3, -1}, 20, "f32 [2, 3] {5, 4, 3, 2, 1, 0}"},
      {{0, 1}, 0, "f32 [2, 3] {0, 1, 2, 0, 1, 2}"},
  };
  for (const auto &one : cases) {
    Producer producer;
    producer.strides = one.strides;
    producer.managed.dl_tensor.strides = producer.strides.data();
    producer.managed.dl_tensor.byte_offset = one.byte_offset;
    const Tensor tensor = assert_ok_value(from_dlpack(&producer.managed));
    assert_int_equal(deleted, 1);
    assert_string_equal(tensor.to_string().c_str(), one.text);
  }
}

void misaligned_memory_is_copied(void **) {
  Producer producer;
  producer.managed.dl_tensor.byte_offset = 1;
  const Tensor tensor = assert_ok_value(from_dlpack(&producer.managed));
  assert_int_equal(deleted, 1);
  assert_int_equal(reinterpret_cast<uintptr_t>(tensor.data()) % 4, 0);
  assert_memory_equal(tensor.data(), reinterpret_cast<const char *>(producer.memory.data()) + 1, 24);
}

void every_refusal_gives_back_once(void **) {
  const struct {
    void (*spoil)(Producer &);
    const char *text;
  } cases[] = {
      {[](Producer &p) { p.managed.version.major = 2; }, "expected a DLPack tensor of major version 1, got 2"},
      {[](Producer &p) { p.managed.dl_tensor.device.device_type = kDLCUDA; }, "device type 2"},
      {[](Producer &p) { p.managed.dl_tensor.dtype.lanes = 4; }, "32 bits, 4 lanes"},
      {[](Producer &p) {
         p.managed.dl_tensor.dtype = {kDLComplex, 64, 1};
       },
       "type code 5"},
      {[](Producer &p) { p.shape[0] = -2; }, "extent -2 is negative"},
      {[](Producer &p) {
         p.managed.dl_tensor.ndim = 9;
         p.shape.assign(9, 1);
         p.managed.dl_tensor.shape = p.shape.data();
       },
       "rank 9"},
      {[](Producer &p) { p.managed.dl_tensor.ndim = -1; }, "rank -1"},
      {[](Producer &p) { p.managed.dl_tensor.shape = nullptr; }, "without a shape"},
      {[](Producer &p) { p.managed.dl_tensor.data = nullptr; }, "without memory"},
  };
  for (const auto &one : cases) {
    Producer producer;
    one.spoil(producer);
    assert_error_contains(from_dlpack(&producer.managed), one.text);
    assert_int_equal(deleted, 1);
  }
  assert_error_contains(from_dlpack(nullptr), "got NULL");
}

void nothing_to_delete_is_legal(void **) {
  Producer producer;
  producer.managed.deleter = nullptr;
  assert_int_equal(assert_ok_value(from_dlpack(&producer.managed)).elements(), 6);
  producer.managed.version.major = 0;
  assert_false(from_dlpack(&producer.managed).ok());
}

void empty_tensors(void **) {
  Producer producer;
  producer.shape = {0, 3};
  producer.managed.dl_tensor.data = nullptr;
  assert_true(assert_ok_value(from_dlpack(&producer.managed)).shape() == Shape({0, 3}));
  assert_int_equal(deleted, 1);
}

void all_dtypes_go_out_and_in(void **) {
  for (int32_t number = 1; number < 14; ++number) {
    const auto dtype = static_cast<DType>(number);
    Tensor tensor = assert_ok_value(Tensor::zeros(dtype, {2, 3, 4}));
    DLManagedTensorVersioned *managed = assert_ok_value(to_dlpack(tensor));
    assert_int_equal(managed->version.major, 1);
    assert_int_equal(managed->flags, 0);
    assert_int_equal(managed->dl_tensor.ndim, 3);
    assert_int_equal(managed->dl_tensor.strides[0], 12);
    assert_int_equal(managed->dl_tensor.strides[2], 1);
    const void *data = tensor.data();
    tensor = Tensor();
    const Tensor back = assert_ok_value(from_dlpack(managed));
    assert_ptr_equal(back.data(), data);
    assert_true(back.dtype() == dtype);
    assert_true(back.shape() == Shape({2, 3, 4}));
  }
}

void what_cannot_go_out(void **) {
  assert_error_contains(to_dlpack(Tensor()), "cannot represent no tensor");
  assert_error_contains(to_dlpack(assert_ok_value(make_bytes_tensor({1}, {"a"}))), "cannot represent bytes [1]");
  float memory[2] = {};
  const Tensor locked = assert_ok_value(
      Tensor::from_buffer(DType::f32, {2}, Buffer::borrow(memory, 8, nullptr, Buffer::Access::read_only)));
  DLManagedTensorVersioned *managed = assert_ok_value(to_dlpack(locked));
  assert_int_equal(managed->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  managed->deleter(managed);
  managed = assert_ok_value(to_dlpack(assert_ok_value(Tensor::zeros(DType::f32, {0}))));
  assert_null(managed->dl_tensor.data);
  managed->deleter(managed);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(compact_memory_is_shared),
    cmocka_unit_test(flags_and_extents_of_one),
    cmocka_unit_test(strided_memory_is_copied),
    cmocka_unit_test(misaligned_memory_is_copied),
    cmocka_unit_test(every_refusal_gives_back_once),
    cmocka_unit_test(nothing_to_delete_is_legal),
    cmocka_unit_test(empty_tensors),
    cmocka_unit_test(all_dtypes_go_out_and_in),
    cmocka_unit_test(what_cannot_go_out),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace dlpack_test
