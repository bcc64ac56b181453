// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_gather.h"

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/divider.h"
#include "backend/gpu/device/element_words-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

struct GatherPlan {
  GatherShape shape;  ///< inner in words
  GatherIndices indices;
  const void *params;
  void *to;
  Bytes16 missing;
  Divider words, picks;
};

/// I: uint32_t or uint64_t, what positions are computed in.
template <typename W, typename I>
__global__ void gather(const GatherPlan plan) {
  const W *const params = static_cast<const W *>(plan.params);
  const int64_t inner = plan.shape.inner, total = plan.shape.outer * plan.shape.picks * inner;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const I slice = divide(static_cast<I>(i), plan.words);
    const I outer = divide(slice, plan.picks);
    const int64_t word = static_cast<int64_t>(static_cast<I>(i) - slice * static_cast<I>(inner));
    const int64_t pick = static_cast<int64_t>(slice - outer * static_cast<I>(plan.shape.picks));
    const int64_t index = load_element<int64_t>(plan.indices.dtype, plan.indices.data, pick);
    const bool is_there = index >= 0 && index < plan.shape.length;
    if (!is_there && word == 0 && outer == 0) report_fault(plan.indices.sink, plan.indices.fault, pick, index);
    static_cast<W *>(plan.to)[i] =
        is_there ? params[(static_cast<int64_t>(outer) * plan.shape.length + index) * inner + word]
                 : first_word<W>(plan.missing);
  }
}

__global__ void check_indices(const GatherShape shape, const GatherIndices indices) {
  for (int64_t pick = grid_thread(); pick < shape.picks; pick += grid_threads()) {
    const int64_t index = load_element<int64_t>(indices.dtype, indices.data, pick);
    if (index < 0 || index >= shape.length) report_fault(indices.sink, indices.fault, pick, index);
  }
}

struct OneHotPlan {
  OneHot shape;
  Divider depth;
};

template <typename W, typename I>
__global__ void one_hot(const OneHotPlan plan) {
  const int64_t depth = plan.shape.depth, total = plan.shape.rows * depth;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const I row = divide(static_cast<I>(i), plan.depth);
    const int64_t column = static_cast<int64_t>(static_cast<I>(i) - row * static_cast<I>(depth));
    const int64_t index = load_element<int64_t>(plan.shape.index_dtype, plan.shape.indices, static_cast<int64_t>(row));
    static_cast<W *>(plan.shape.to)[i] = static_cast<W>(column == index ? plan.shape.on : plan.shape.off);
  }
}

template <typename I>
__global__ void iota(int64_t elements, const Divider stride, const Divider length, DType dtype, void *to) {
  for (int64_t i = grid_thread(); i < elements; i += grid_threads()) {
    const I step = divide(static_cast<I>(i), stride);
    const I index = step - divide(step, length) * static_cast<I>(length.divisor);
    store_element<int64_t>(dtype, to, i, static_cast<int64_t>(index));
  }
}

}  // namespace

gpuError_t launch_gather(const GatherShape &shape, const GatherIndices &indices, const void *params, void *to,
                         int64_t element_bytes, uint64_t missing, gpuStream_t stream) {
  if (shape.outer * shape.picks * shape.inner == 0) return launch_check_indices(shape, indices, stream);
  const int64_t slice_bytes = shape.inner * element_bytes;
  const int64_t width = widest_word(
      reinterpret_cast<uintptr_t>(params) | reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(slice_bytes),
      element_bytes);
  GatherPlan plan{shape, indices, params, to, repeated(missing, element_bytes), {}, Divider::of(shape.picks)};
  plan.shape.inner = slice_bytes / width;
  plan.words = Divider::of(plan.shape.inner);
  const int64_t total = shape.outer * shape.picks * plan.shape.inner;
  return with_word(width, [&]<typename W>(W) {
    const auto kernel = total <= Divider::kMost ? gather<W, uint32_t> : gather<W, uint64_t>;
    return gpu_launch(kernel, blocks_for(total), kBlockThreads, 0, stream, plan);
  });
}

gpuError_t launch_check_indices(const GatherShape &shape, const GatherIndices &indices, gpuStream_t stream) {
  if (shape.picks == 0) return gpuSuccess;
  return gpu_launch(check_indices, blocks_for(shape.picks), kBlockThreads, 0, stream, shape, indices);
}

gpuError_t launch_one_hot(const OneHot &shape, gpuStream_t stream) {
  const int64_t total = shape.rows * shape.depth;
  if (total == 0) return gpuSuccess;
  const OneHotPlan plan{shape, Divider::of(shape.depth)};
  return with_word(shape.element_bytes, [&]<typename W>(W) {
    if constexpr (sizeof(W) > sizeof(uint64_t)) {
      return gpuErrorInvalidValue;
    } else {
      const auto kernel = total <= Divider::kMost ? one_hot<W, uint32_t> : one_hot<W, uint64_t>;
      return gpu_launch(kernel, blocks_for(total), kBlockThreads, 0, stream, plan);
    }
  });
}

gpuError_t launch_iota(int64_t elements, int64_t stride, int64_t length, DType dtype, void *to, gpuStream_t stream) {
  if (elements == 0) return gpuSuccess;
  const auto kernel = elements <= Divider::kMost ? iota<uint32_t> : iota<uint64_t>;
  return gpu_launch(kernel, blocks_for(elements), kBlockThreads, 0, stream, elements, Divider::of(stride),
                    Divider::of(length), dtype, to);
}

}  // namespace tutti::impl::backend::gpu
