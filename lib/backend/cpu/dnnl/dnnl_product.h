// SPDX-License-Identifier: Apache-2.0
//
// Products of large row-major f32 matrices on oneDNN, whose packing hides where the operands come from better than ours
// does (simd_gemm.h is for the small and middle ones): what a dense layer computes forward and for its kernel. With
// factors rounded to bfloat16 (copies in scratch; sums and the result are f32) also what it computes for its input.
// One thread. Immutable once made.
#ifndef TUTTI_BACKEND_CPU_DNNL_DNNL_PRODUCT_H_
#define TUTTI_BACKEND_CPU_DNNL_DNNL_PRODUCT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "backend/cpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

struct ProductRequest {
  int64_t m = 0, n = 0, k = 0;
  bool turned = false;    ///< C[m, n] = Aᵀ·B with A [k, m]; else C = A·B with A [m, k]
  bool b_turned = false;  ///< C = A·Bᵀ with B [n, k]; only with bf16, not with `turned`
  bool bf16 = false;      ///< factors are rounded to bfloat16 in every run
  bool bias = false;      ///< n values added to every row; not with `turned`
  bool relu = false;

  /// Of the examples of a batch.
  int64_t rows() const { return turned ? k : m; }
};

struct ProductBuffers {
  BufferId a = -1, b = -1, bias = -1, c = -1, scratch = -1;
};

class ProductPlan {
 public:
  /// Is it large enough to be worth a library's call? With bf16: to be worth measuring.
  static bool suits(const ProductRequest &request);
  /// UNIMPLEMENTED when the library has only plain loops for it.
  static base::Result<std::shared_ptr<const ProductPlan>> make(const ProductRequest &request);
  virtual ~ProductPlan() = default;

  virtual const std::string &implementation() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  virtual std::unique_ptr<Kernel> kernel(const ProductBuffers &buffers) const = 0;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_DNNL_PRODUCT_H_
