// SPDX-License-Identifier: Apache-2.0
//
// What cuBLASLt can do with the results of a product before it stores them, of what the graph has behind it: an addend
// that lies as they do, a bias, relu, the approximate gelu, whose operand may be stored, too, its gradient, another
// dtype. It rounds once, at the end. relu is its header's max(x, 0), and what becomes of a NaN is documented neither
// for it nor for the gradient, nor for the gelu that comes with that: an algorithm is taken for these that was seen to
// keep one (CublasLtProduct), as a loss that is not finite has to be seen. -0 may become 0, which is equal.
#ifndef TUTTI_BACKEND_CUDA_LIBRARY_EPILOGUE_H_
#define TUTTI_BACKEND_CUDA_LIBRARY_EPILOGUE_H_

#include <cstdint>

#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/library/library_product.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

using gpu::ProductShape;

class LibraryEpilogue {
 public:
  /// A bias of the node's own, in front of the epilogue: the request's input 2.
  void add_bias(const gpu::KernelRequest &request, ProductShape &shape);
  /// Sets what follows in `shape`; false where cuBLASLt has nothing like the request's epilogue. Without an epilogue
  /// nothing follows.
  bool read(const gpu::KernelRequest &request, ProductShape &shape);
  /// Reserves scratch memory, behind all that the product itself needs.
  void reserve(gpu::KernelRequest &request);

  /// The addend, or null.
  const char *addend(const gpu::Frame &frame) const;
  /// What gelu was computed of, whose gradient follows, or null.
  const char *gelu_operand(const gpu::Frame &frame) const;
  /// Where to store what gelu is computed of, or null.
  char *kept_operand(const gpu::Frame &frame) const;
  /// The bias in the dtype of the results, or null: converted in the scratch memory if it is of another.
  base::Result<const void *> bias(const gpu::Frame &frame) const;

 private:
  bool keep_operand(const gpu::KernelRequest &request, ProductShape &shape);

  int32_t addend_ = -1, bias_ = -1, gelu_operand_ = -1;  // inputs of the frame
  int32_t kept_ = -1;                                    // an output of it
  tensor::DType bias_dtype_{}, result_{};
  int64_t columns_ = 0, scratch_ = 0;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_LIBRARY_EPILOGUE_H_
