// SPDX-License-Identifier: Apache-2.0
//
// A product as a part of a multi-output fusion (fused_program.h): its results are computed where the program reads
// them, tile by tile, and stored nowhere. For the few rows of a loop's iteration, where a launch takes longer than the
// product.
#ifndef TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_H_
#define TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// a [rows, inner] times b [inner, columns], or [columns, inner] transposed; both dense and aligned to 16 bytes. They
/// are two further inputs behind those of the program.
struct FusedProduct {
  static constexpr int32_t kParts = 8;

  tensor::DType a, b;
  tensor::DType result;  ///< to which it is rounded before the program computes with it
  int64_t inner, columns;
  bool is_transposed;
  int32_t part_count;
  int32_t parts[kParts];  ///< inputs of the program that are columns of the product, from their offset on
};

// A block computes a tile of the program's elements, all parts of it. A thread computes two rows of a column for some
// of the products that are added up, a slice; slices are added up in order.
inline constexpr int kTileColumns = 8;
inline constexpr int kTileRows = kBlockThreads < 64 ? 4 : 8;
inline constexpr int kTileElements = kTileRows * kTileColumns;
inline constexpr int kTileThreadRows = 2;
inline constexpr int kSliceThreads = kTileElements / kTileThreadRows;
inline constexpr int kTileSlices = kBlockThreads / kSliceThreads;

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FUSED_PRODUCT_H_
