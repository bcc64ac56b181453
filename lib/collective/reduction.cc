// SPDX-License-Identifier: Apache-2.0
#include "collective/reduction.h"

#include <algorithm>

#include "tensor/half.h"

namespace tutti::impl::collective {
namespace {

using tensor::DType;

constexpr int64_t block_elements = 1024;

/// T: what is stored; C: what is computed with.
template <typename T, typename C, typename Combine>
void reduce_blocks(void *const *sources, int32_t source_count, int64_t begin, int64_t end, T *destination,
                   Combine combine) {
  C total[block_elements];
  for (int64_t first = begin; first < end; first += block_elements) {
    const int64_t count = std::min(block_elements, end - first);
    const T *const start = static_cast<const T *>(sources[0]) + first;
    for (int64_t i = 0; i < count; ++i)
      total[i] = static_cast<C>(start[i]);
    for (int32_t s = 1; s < source_count; ++s) {
      const T *const source = static_cast<const T *>(sources[s]) + first;
      for (int64_t i = 0; i < count; ++i)
        total[i] = combine(total[i], static_cast<C>(source[i]));
    }
    for (int64_t i = 0; i < count; ++i)
      destination[first + i] = static_cast<T>(total[i]);
  }
}

template <typename T, typename C = T>
void reduce_typed(Reduction reduction, void *const *sources, int32_t source_count, int64_t begin, int64_t end,
                  void *destination) {
  T *out = static_cast<T *>(destination);
  switch (reduction) {
    case Reduction::sum:
      return reduce_blocks<T, C>(sources, source_count, begin, end, out,
                                 [](C a, C b) { return static_cast<C>(a + b); });
    case Reduction::max:
      // Written so that a NaN on either side stays.
      return reduce_blocks<T, C>(sources, source_count, begin, end, out,
                                 [](C a, C b) { return a > b || a != a ? a : b; });
    case Reduction::min:
      return reduce_blocks<T, C>(sources, source_count, begin, end, out,
                                 [](C a, C b) { return a < b || a != a ? a : b; });
  }
}

base::Status check_slices(const Operation &operation, int32_t contributors) {
  int64_t position = 0;
  for (int32_t i = 0; i < operation.slice_count; ++i) {
    const Slice &slice = operation.slices[i];
    if (slice.begin < position || slice.end < slice.begin || slice.end > operation.count || slice.owner < 0 ||
        slice.owner >= contributors) {
      return base::invalid_argument(name(operation.kind), " '", operation.label, "': slice ", i, " [", slice.begin,
                                    ", ", slice.end, ") of contributor ", slice.owner,
                                    " does not fit ascending slices of ", operation.count, " elements and ",
                                    contributors, " contributors");
    }
    position = slice.end;
  }
  return base::Status();
}

}  // namespace

base::Status check_reducible(DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::bf16:
    case DType::i32:
    case DType::i64:
      return base::Status();
    case DType::u8:
    case DType::boolean:
      if (reduction != Reduction::sum) return base::Status();
      [[fallthrough]];
    default:
      return base::invalid_argument("values of dtype ", tensor::name(dtype), " cannot be reduced");
  }
}

void reduce_range(DType dtype, Reduction reduction, void *const *sources, int32_t source_count, int64_t begin,
                  int64_t end, void *destination) {
  switch (dtype) {
    case DType::f32:
      return reduce_typed<float>(reduction, sources, source_count, begin, end, destination);
    case DType::f64:
      return reduce_typed<double>(reduction, sources, source_count, begin, end, destination);
    case DType::bf16:
      return reduce_typed<tensor::BFloat16, float>(reduction, sources, source_count, begin, end, destination);
    case DType::i32:
      return reduce_typed<int32_t>(reduction, sources, source_count, begin, end, destination);
    case DType::i64:
      return reduce_typed<int64_t>(reduction, sources, source_count, begin, end, destination);
    default:
      return reduce_typed<uint8_t>(reduction, sources, source_count, begin, end, destination);
  }
}

base::Status check_operation(const Operation &operation, int32_t contributors) {
  const bool has_data = operation.kind != Kind::barrier;
  if (has_data && (operation.count < 0 || operation.buffers == nullptr)) {
    return base::invalid_argument(name(operation.kind), " '", operation.label, "' of ", operation.count,
                                  " elements without buffers");
  }
  if (operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter) {
    TUTTI_TRY(check_reducible(operation.dtype, operation.reduction));
  }
  if ((operation.kind == Kind::broadcast || operation.kind == Kind::gather) &&
      (operation.root < 0 || operation.root >= contributors)) {
    return base::invalid_argument(name(operation.kind), " '", operation.label, "': root ", operation.root,
                                  " is not one of ", contributors, " contributors");
  }
  if (operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_gather) {
    return check_slices(operation, contributors);
  }
  return base::Status();
}

base::Status check_on_host(const Operation &operation) {
  if (operation.stream == nullptr) return base::Status();
  return base::failed_precondition(name(operation.kind), " '", operation.label,
                                   "': its buffers lie on a device, and this group takes memory of the host");
}

}  // namespace tutti::impl::collective
