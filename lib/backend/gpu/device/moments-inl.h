// SPDX-License-Identifier: Apache-2.0
//
// Means and variances in one pass: each thread sums differences from the first element it meets, and the means and
// squared differences of threads are combined pairwise (Chan, Golub and LeVeque 1983), so nothing cancels where the
// mean is large. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_MOMENTS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_MOMENTS_INL_H_

#include "backend/gpu/device/storage-inl.h"

namespace tutti::impl::backend::gpu {

/// Of `count` elements: their mean and the sum of squared differences from it.
template <typename C>
struct Moments {
  C count, mean, squares;

  /// The population variance; 0 of no elements.
  __device__ C variance() const { return squares / (count > 1 ? count : C(1)); }
};

template <typename C>
__device__ inline Moments<C> no_moments() {
  return {C(0), C(0), C(0)};
}

template <typename C>
__device__ inline Moments<C> combine_moments(Moments<C> a, Moments<C> b) {
  const C count = a.count + b.count;
  if (b.count == 0 || count == 0) return a;
  const C difference = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + difference * share, a.squares + b.squares + difference * difference * a.count * share};
}

/// For group_combine().
template <typename C>
__device__ inline Moments<C> exchanged(Moments<C> value, int mask) {
  return {gpu_shuffle_xor(value.count, mask), gpu_shuffle_xor(value.mean, mask), gpu_shuffle_xor(value.squares, mask)};
}

/// What a thread has of V neighbouring channels.
template <typename C, int V>
struct MomentSums {
  C count, origin[V], sum[V], squares[V];  // sums of differences from the origin, the first row

  __device__ void add(const C (&pack)[V]) {
    count += 1;
    for (int v = 0; v < V; ++v) {
      const C difference = pack[v] - origin[v];
      sum[v] += difference;
      squares[v] += difference * difference;
    }
  }
  __device__ Moments<C> total(int v) const {
    if (count == 0) return no_moments<C>();
    const C mean = sum[v] / count, rest = squares[v] - sum[v] * mean;
    return {count, origin[v] + mean, rest < 0 ? C(0) : rest};
  }
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_MOMENTS_INL_H_
