// SPDX-License-Identifier: Apache-2.0
#include "tensor/dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/forked.h"
#include "base/host_function.h"

namespace tutti::impl::tensor {

namespace {

struct GiveBack {
  void operator()(DLManagedTensorVersioned *managed) const {
    if (managed->deleter != nullptr) (void)base::catch_thrown("the deleter", [&] { managed->deleter(managed); });
  }
};
using Managed = std::unique_ptr<DLManagedTensorVersioned, GiveBack>;

struct TypePair {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};

constexpr TypePair kTypes[] = {
    {DType::f32, kDLFloat, 32}, {DType::f64, kDLFloat, 64},   {DType::i32, kDLInt, 32},   {DType::i64, kDLInt, 64},
    {DType::u8, kDLUInt, 8},    {DType::boolean, kDLBool, 8}, {DType::f16, kDLFloat, 16}, {DType::bf16, kDLBfloat, 16},
    {DType::i8, kDLInt, 8},     {DType::i16, kDLInt, 16},     {DType::u16, kDLUInt, 16},  {DType::u32, kDLUInt, 32},
    {DType::u64, kDLUInt, 64},
};

base::Result<DType> dtype_of_dlpack(DLDataType type) {
  for (const TypePair &pair : kTypes) {
    if (pair.code == type.code && pair.bits == type.bits && type.lanes == 1) return pair.dtype;
  }
  return base::unimplemented("DLPack type code ", int{type.code}, ", ", int{type.bits}, " bits, ", type.lanes,
                             " lanes has no matching dtype");
}

base::Status check_readable(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
    case kDLCUDAManaged:
      return base::Status();
    default:
      break;
  }
  return base::unimplemented("DLPack tensor: memory of device type ", static_cast<int32_t>(device.device_type),
                             " cannot be read by the host; copy it to the host first");
}

base::Result<Shape> shape_of_dlpack(const DLTensor &tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return base::invalid_argument("DLPack tensor: rank ", tensor.ndim, " without a shape");
  }
  base::Result<Shape> shape = Shape::make({tensor.shape, static_cast<size_t>(tensor.ndim)});
  if (!shape.ok()) return shape.status().wrap("DLPack tensor");
  return shape;
}

bool is_compact(const DLTensor &tensor, const Shape &shape) {
  if (tensor.strides == nullptr || shape.elements() == 0) return true;
  int64_t expected = 1;
  for (int32_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

// Copies elements in row-major order, the strides being those of the source.
void copy_strided(const char *source, const int64_t *strides, const Shape &shape, int32_t axis, size_t element_bytes,
                  char **out) {
  if (axis == shape.rank()) {
    std::memcpy(*out, source, element_bytes);
    *out += element_bytes;
    return;
  }
  for (int64_t i = 0; i < shape[axis]; ++i) {
    const int64_t step = i * strides[axis] * static_cast<int64_t>(element_bytes);
    copy_strided(source + step, strides, shape, axis + 1, element_bytes, out);
  }
}

base::Result<Tensor> copy_of_dlpack(const DLTensor &source, const char *data, DType dtype, const Shape &shape) {
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  if (is_compact(source, shape)) {
    std::memcpy(tensor.mutable_data(), data, static_cast<size_t>(tensor.size_bytes()));
    return tensor;
  }
  char *out = tensor.mutable_data_as<char>();
  copy_strided(data, source.strides, shape, 0, size_bytes(dtype), &out);
  return tensor;
}

struct Exported {
  DLManagedTensorVersioned managed{};
  Tensor tensor;
  int64_t shape[Shape::kMaxRank] = {};
  int64_t strides[Shape::kMaxRank] = {};
};

// A forked child leaves it alone: its memory may belong to a pool, whose lock a thread of the parent had.
void delete_exported(DLManagedTensorVersioned *managed) {
  if (!base::is_forked()) delete static_cast<Exported *>(managed->manager_ctx);
}

std::optional<DLDataType> type_to_dlpack(DType dtype) {
  for (const TypePair &pair : kTypes) {
    if (pair.dtype == dtype) return DLDataType{pair.code, pair.bits, 1};
  }
  return std::nullopt;
}

}  // namespace

base::Result<Tensor> from_dlpack(DLManagedTensorVersioned *managed) {
  if (managed == nullptr) return base::invalid_argument("expected a DLPack tensor, got NULL");
  Managed owner(managed);
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    return base::invalid_argument("expected a DLPack tensor of major version ", DLPACK_MAJOR_VERSION, ", got ",
                                  managed->version.major);
  }
  const DLTensor &source = managed->dl_tensor;
  TUTTI_TRY(check_readable(source.device));
  TUTTI_ASSIGN(const DType dtype, dtype_of_dlpack(source.dtype));
  TUTTI_ASSIGN(const Shape shape, shape_of_dlpack(source));
  const int64_t elements = shape.elements();
  if (elements == 0) return Tensor::allocate(dtype, shape);
  if (source.data == nullptr) return base::invalid_argument("DLPack tensor ", dtype, " ", shape, " without memory");
  char *data = static_cast<char *>(source.data) + source.byte_offset;
  if (!is_compact(source, shape) || reinterpret_cast<uintptr_t>(data) % size_bytes(dtype) != 0) {
    return copy_of_dlpack(source, data, dtype, shape);
  }
  const bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  Ref<Buffer> buffer = Buffer::borrow(
      data, elements * static_cast<int64_t>(size_bytes(dtype)), [managed] { GiveBack()(managed); },
      read_only ? Buffer::Access::read_only : Buffer::Access::read_write);
  owner.release();
  return Tensor::from_buffer(dtype, shape, std::move(buffer));
}

base::Result<DLManagedTensorVersioned *> to_dlpack(const Tensor &tensor) {
  const std::optional<DLDataType> type = type_to_dlpack(tensor.dtype());
  if (tensor.empty() || !type) return base::invalid_argument("DLPack cannot represent ", tensor.describe());
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor;
  const Shape &shape = tensor.shape();
  std::copy(shape.begin(), shape.end(), exported->shape);
  for (int32_t axis = 0; axis < shape.rank(); ++axis)
    exported->strides[axis] = shape.elements_from(axis + 1);
  DLManagedTensorVersioned &managed = exported->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = exported.get();
  managed.deleter = delete_exported;
  managed.flags = tensor.read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  managed.dl_tensor.data = tensor.elements() > 0 ? tensor.mutable_data() : nullptr;
  managed.dl_tensor.device = {kDLCPU, 0};
  managed.dl_tensor.ndim = shape.rank();
  managed.dl_tensor.dtype = *type;
  managed.dl_tensor.shape = exported->shape;
  managed.dl_tensor.strides = exported->strides;
  return &exported.release()->managed;
}

}  // namespace tutti::impl::tensor
