// SPDX-License-Identifier: Apache-2.0
//
// What kernels that are written by program_text.h and compiled at run time are made of. A tree is a type of its own:
//
//   struct Tree {
//     using C = float;                        // what is computed with
//     static constexpr int kWidth = 4;        // neighbours that are computed together
//     static constexpr bool kIsWhole = true;  // their number divides that of the elements
//     __device__ void begin(const ElementPlaces &places);
//     __device__ void load(int64_t first, int64_t end, C (&out)[kWidth]) const;   // elements first, ... up to end
//   };
#ifndef TUTTI_BACKEND_GPU_DEVICE_GENERATED_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_GENERATED_INL_H_

#include "backend/gpu/device/arithmetic-inl.h"
#include "backend/gpu/device/fused_product-inl.h"
#include "backend/gpu/device/generated_operands.h"
#include "backend/gpu/device/reduce_work-inl.h"
#include "backend/gpu/device/reduction_body-inl.h"
#include "backend/gpu/device/rows-inl.h"

namespace tutti::impl::backend::gpu {

/// Elements first .. first + V - 1 of an array of words T that hold `dtype`; first is a multiple of V. Where not
/// `is_whole` those from `end` on are taken for the first.
template <typename T, DType dtype, bool is_whole, int V, typename C>
__device__ __forceinline__ void load_dense(const void *source, int64_t first, int64_t end, C (&out)[V]) {
  T items[V];
  if (is_whole || first + V <= end) {
    constexpr int kPart = V * sizeof(T) > 16 ? static_cast<int>(16 / sizeof(T)) : V;
    TUTTI_UNROLL
    for (int part = 0; part < V; part += kPart) {
      const auto pack = *reinterpret_cast<const Pack<T, kPart> *>(static_cast<const T *>(source) + first + part);
      TUTTI_UNROLL
      for (int lane = 0; lane < kPart; ++lane)
        items[part + lane] = pack.items[lane];
    }
  } else {
    TUTTI_UNROLL
    for (int lane = 0; lane < V; ++lane)
      items[lane] = static_cast<const T *>(source)[first + lane < end ? first + lane : first];
  }
  TUTTI_UNROLL
  for (int lane = 0; lane < V; ++lane)
    out[lane] = load_element<C>(dtype, items, lane);
}

template <typename T, DType dtype, bool is_whole, int V, typename C>
__device__ __forceinline__ void store_dense(void *target, int64_t first, int64_t end, const C (&in)[V]) {
  Pack<T, V> pack;
  TUTTI_UNROLL
  for (int lane = 0; lane < V; ++lane)
    store_element<C>(dtype, pack.items, lane, in[lane]);
  if (is_whole || first + V <= end) {
    *reinterpret_cast<Pack<T, V> *>(static_cast<T *>(target) + first) = pack;
  } else {
    for (int lane = 0; lane < V && first + lane < end; ++lane)
      static_cast<T *>(target)[first + lane] = pack.items[lane];
  }
}

/// The same value for all.
template <int V, typename C>
__device__ __forceinline__ void fill(C value, C (&out)[V]) {
  TUTTI_UNROLL
  for (int lane = 0; lane < V; ++lane)
    out[lane] = value;
}

/// Elementwise work: every element of the tree is stored as words T that hold `dtype`.
template <typename Tree, typename T, DType dtype>
__device__ __forceinline__ void run_tree(const GeneratedOperands &operands) {
  constexpr int kWidth = Tree::kWidth;
  Tree tree;
  tree.begin(operands.places);
  const int64_t end = operands.places.elements;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kWidth;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth; first < end;
       first += step) {
    typename Tree::C out[kWidth];
    tree.load(first, end, out);
    store_dense<T, dtype, Tree::kIsWhole>(operands.places.output, first, end, out);
  }
}

/// The same for several calls, in chunks of one pack for each thread.
template <typename Tree, typename T, DType dtype>
__device__ __forceinline__ void run_tree_rows(const GeneratedOperands &operands) {
  constexpr int kWidth = Tree::kWidth;
  for_chunks(operands.rows, operands.places, [](const ElementPlaces &places, int64_t chunk) {
    const int64_t first = (chunk * blockDim.x + threadIdx.x) * kWidth;
    if (first >= places.elements) return;
    Tree tree;
    tree.begin(places);
    typename Tree::C out[kWidth];
    tree.load(first, places.elements, out);
    store_dense<T, dtype, Tree::kIsWhole>(places.output, first, places.elements, out);
  });
}

/// A tree as what is reduced.
template <typename Tree>
struct TreeSource {
  using C = typename Tree::C;
  static constexpr int kWidth = Tree::kWidth;
  Tree tree;
  __device__ __forceinline__ void load(int64_t index, C (&x)[kWidth]) const { tree.load(index, INT64_MAX, x); }
};

template <typename Tree, typename Op, DType dtype>
__device__ __forceinline__ Reduction<Op, TreeSource<Tree>> reduction_of(const GeneratedOperands &operands) {
  using C = typename Tree::C;
  Reduction<Op, TreeSource<Tree>> work{{static_cast<C>(operands.start), static_cast<C>(operands.divisor), dtype,
                                        operands.places.output, operands.layout.columns},
                                       {},
                                       operands.outer_walk,
                                       operands.row_walk};
  work.source.tree.begin(operands.places);
  return work;
}

/// Reductions of the tree's elements: what launch_reduce does with elements that are stored.
template <typename Tree, typename Op, DType dtype>
__device__ __forceinline__ void reduce_tree_lines(const GeneratedOperands &operands) {
  run_lines(reduction_of<Tree, Op, dtype>(operands), operands.layout,
            static_cast<typename Tree::C *>(operands.partials));
}
template <typename Tree, typename Op, DType dtype>
__device__ __forceinline__ void reduce_tree_columns(const GeneratedOperands &operands) {
  run_columns(reduction_of<Tree, Op, dtype>(operands), operands.layout,
              static_cast<typename Tree::C *>(operands.partials));
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_GENERATED_INL_H_
