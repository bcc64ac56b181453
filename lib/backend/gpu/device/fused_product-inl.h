// SPDX-License-Identifier: Apache-2.0
//
// Products in kernels that are written by fused_text.h. A product is a type of its own:
//
//   struct Product {
//     using A = float;                              // the words of a, which hold kA
//     static constexpr DType kA = DType::f32;
//     using B = float;
//     static constexpr DType kB = DType::f32;
//     static constexpr DType kResult = DType::f32;
//     static constexpr int64_t kRows = 32, kInner = 256;
//     static constexpr int64_t kColumns = 256;      // of a part
//     static constexpr int64_t kPitch = 1024;       // from a row of b to the next
//     static constexpr bool kIsTransposed = false;
//     static constexpr int kParts = 4;
//     static __device__ int64_t first_column(int part);
//   };
//
// The order of a sum depends on its length and the platform's block alone.
#ifndef TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_INL_H_

#include "backend/gpu/device/arithmetic-inl.h"
#include "backend/gpu/device/fused_product.h"

namespace tutti::impl::backend::gpu {

/// Sums over slices, of each part and element of a tile.
template <int kParts>
struct TileSums {
  float partial[kTileSlices][kParts][kTileElements];
};

inline constexpr int kTogether = 4;

/// Elements first .. first + 3 of an array; together where they are aligned.
template <typename T, DType dtype, bool is_aligned>
__device__ __forceinline__ void load_together(const T *source, int64_t first, float (&out)[kTogether]) {
  if constexpr (is_aligned) {
    const auto pack = *reinterpret_cast<const Pack<T, kTogether> *>(source + first);
    TUTTI_UNROLL
    for (int i = 0; i < kTogether; ++i)
      out[i] = load_element<float>(dtype, pack.items, i);
  } else {
    TUTTI_UNROLL
    for (int i = 0; i < kTogether; ++i)
      out[i] = load_element<float>(dtype, source, first + i);
  }
}

/// The rows of a that a thread multiplies, and its column of b in each part.
template <typename Product>
struct TileOperands {
  const typename Product::A *a;
  const typename Product::B *b;
  int64_t row[kTileThreadRows];
  int64_t column;

  __device__ __forceinline__ int64_t place_in_b(int part, int64_t k) const {
    const int64_t at = Product::first_column(part) + column;
    return Product::kIsTransposed ? at * Product::kPitch + k : k * Product::kPitch + at;
  }
};

/// What a thread multiplies, of so many times four products: all of it is on its way before the first is computed.
template <typename Product, int kGroups>
struct TileFactors {
  static constexpr bool kIsAligned = Product::kInner % kTogether == 0;
  float x[kGroups][kTileThreadRows][kTogether];
  float y[kGroups][Product::kParts][kTogether];

  __device__ __forceinline__ void load(const TileOperands<Product> &from, int64_t first) {
    TUTTI_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      const int64_t k = first + group * kTogether;
      TUTTI_UNROLL
      for (int r = 0; r < kTileThreadRows; ++r)
        load_together<typename Product::A, Product::kA, kIsAligned>(from.a, from.row[r] * Product::kInner + k,
                                                                    x[group][r]);
      TUTTI_UNROLL
      for (int part = 0; part < Product::kParts; ++part)
        load_column(from, part, k, y[group][part]);
    }
  }

  static __device__ __forceinline__ void load_column(const TileOperands<Product> &from, int part, int64_t k,
                                                     float (&out)[kTogether]) {
    if constexpr (Product::kIsTransposed) {
      load_together<typename Product::B, Product::kB, kIsAligned>(from.b, from.place_in_b(part, k), out);
    } else {
      TUTTI_UNROLL
      for (int i = 0; i < kTogether; ++i)
        out[i] = load_element<float>(Product::kB, from.b, from.place_in_b(part, k + i));
    }
  }

  __device__ __forceinline__ void multiply(float (&sums)[kTileThreadRows][Product::kParts]) const {
    TUTTI_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      TUTTI_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        TUTTI_UNROLL
        for (int r = 0; r < kTileThreadRows; ++r) {
          TUTTI_UNROLL
          for (int part = 0; part < Product::kParts; ++part)
            sums[r][part] = gpu_multiply_add(x[group][r][i], y[group][part][i], sums[r][part]);
        }
      }
    }
  }
};

/// Adds the products k .. of so many groups to the sums of a thread; the next k.
template <typename Product, int kGroups>
__device__ __forceinline__ int64_t multiply_groups(const TileOperands<Product> &from, int64_t k, int64_t end,
                                                   float (&sums)[kTileThreadRows][Product::kParts]) {
  for (; k + kGroups * kTogether <= end; k += kGroups * kTogether) {
    TileFactors<Product, kGroups> factors;
    factors.load(from, k);
    factors.multiply(sums);
  }
  return k;
}

/// Adds product k alone.
template <typename Product>
__device__ __forceinline__ void multiply_one(const TileOperands<Product> &from, int64_t k,
                                             float (&sums)[kTileThreadRows][Product::kParts]) {
  for (int part = 0; part < Product::kParts; ++part) {
    const float y = load_element<float>(Product::kB, from.b, from.place_in_b(part, k));
    for (int r = 0; r < kTileThreadRows; ++r) {
      const float x = load_element<float>(Product::kA, from.a, from.row[r] * Product::kInner + k);
      sums[r][part] = gpu_multiply_add(x, y, sums[r][part]);
    }
  }
}

/// The sums of a tile, once all threads of the block are here. What lies behind the last row or column is computed as
/// if it were that, and not used.
template <typename Product>
__device__ __forceinline__ void multiply_tile(const void *a, const void *b, int64_t first_row, int64_t first_column,
                                              TileSums<Product::kParts> &tile) {
  const int thread = static_cast<int>(threadIdx.x) % kSliceThreads;
  const int slice = static_cast<int>(threadIdx.x) / kSliceThreads;
  const int row = thread / kTileColumns * kTileThreadRows;
  TileOperands<Product> from{static_cast<const typename Product::A *>(a), static_cast<const typename Product::B *>(b)};
  for (int r = 0; r < kTileThreadRows; ++r)
    from.row[r] = first_row + row + r < Product::kRows ? first_row + row + r : Product::kRows - 1;
  from.column = first_column + thread % kTileColumns;
  if (from.column >= Product::kColumns) from.column = Product::kColumns - 1;
  constexpr int64_t kChunk =
      ((Product::kInner + kTileSlices - 1) / kTileSlices + kTogether - 1) / kTogether * kTogether;
  const int64_t begin = slice * kChunk;
  const int64_t end = begin + kChunk < Product::kInner ? begin + kChunk : Product::kInner;
  float sums[kTileThreadRows][Product::kParts] = {};
  // As many as have their factors in a hundred registers.
  constexpr int kParts = Product::kParts, kGroups = kParts == 1 ? 8 : kParts == 2 ? 6 : kParts <= 4 ? 4 : 2;
  int64_t k = multiply_groups<Product, kGroups>(from, begin, end, sums);
  k = multiply_groups<Product, 1>(from, k, end, sums);
  if constexpr (Product::kInner % kTogether != 0) {
    for (; k < end; ++k)
      multiply_one<Product>(from, k, sums);
  }
  TUTTI_UNROLL
  for (int r = 0; r < kTileThreadRows; ++r) {
    TUTTI_UNROLL
    for (int part = 0; part < Product::kParts; ++part)
      tile.partial[slice][part][(row + r) * kTileColumns + thread % kTileColumns] = sums[r][part];
  }
  __syncthreads();
}

/// A result, as if it had been stored.
template <typename Product>
__device__ __forceinline__ float tile_sum(const TileSums<Product::kParts> &tile, int part, int element) {
  float sum = tile.partial[0][part][element];
  TUTTI_UNROLL
  for (int slice = 1; slice < kTileSlices; ++slice)
    sum += tile.partial[slice][part][element];
  if constexpr (Product::kResult == DType::f16) return apply<ElementOp::to_f16, float>(sum, 0, 0, 0);
  if constexpr (Product::kResult == DType::bf16) return apply<ElementOp::to_bf16, float>(sum, 0, 0, 0);
  return sum;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_INL_H_
