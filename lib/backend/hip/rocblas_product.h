// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices by rocBLAS, which chooses the algorithm by shape alone and, as atomic operations are
// switched off for its handle (hip_library.h), gives the same bits every time.
//
//   TUTTI_ASSIGN(auto product, RocblasProduct::make(rocblas, handle, shape, most_scratch));
//   if (product) product->issue(rocblas, handle, {a, b, y}, scratch, stream);
//
// rocBLAS's matrices are column-major, and a row-major matrix is its own transposed: y' = b' a' is what is computed.
//
// Threads: a product is immutable; calls with the same handle are made one at a time.
#ifndef TUTTI_BACKEND_HIP_ROCBLAS_PRODUCT_H_
#define TUTTI_BACKEND_HIP_ROCBLAS_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "backend/gpu/library/library_product.h"
#include "backend/hip/rocblas.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

class RocblasProduct {
 public:
  struct Operands {
    const void *a = nullptr, *b = nullptr;
    void *y = nullptr;
    const void *addend = nullptr;  ///< lies as y does; where the shape has one
  };

  /// Nothing where rocBLAS has nothing for the shape: dtypes it does not multiply, more than an addend behind the
  /// product, sizes beyond 32 bits, or more scratch memory than `most_scratch`.
  static base::Result<std::optional<RocblasProduct>> make(const Rocblas &rocblas, rocblas_handle handle,
                                                          const gpu::ProductShape &shape, int64_t most_scratch);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  base::Status issue(const Rocblas &rocblas, rocblas_handle handle, const Operands &operands, void *scratch,
                     hipStream_t stream) const;

 private:
  explicit RocblasProduct(const gpu::ProductShape &shape) : shape_(shape) {}
  rocblas_status multiply(const Rocblas &rocblas, rocblas_handle handle, const Operands &operands) const;

  gpu::ProductShape shape_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_ROCBLAS_PRODUCT_H_
