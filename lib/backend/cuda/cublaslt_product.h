// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices by cuBLASLt: the algorithm is chosen once, when the product is made, by cuBLASLt's
// estimate or by trials; with relu or a gradient of gelu, among
// those that were seen to keep a NaN.
//
//   TUTTI_ASSIGN(auto product, CublasLtProduct::make(lt, handle, shape, most_scratch));
//   if (product != nullptr) product->issue(handle, {a, b, y}, scratch, stream);
//
// cuBLASLt's matrices are column-major, and a row-major matrix is its own transposed: y' = b' a' is what is computed.
//
// Threads: a product is immutable; calls with the same handle are made one at a time.
#ifndef TUTTI_BACKEND_CUDA_CUBLASLT_PRODUCT_H_
#define TUTTI_BACKEND_CUDA_CUBLASLT_PRODUCT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/cuda/dynamic_library.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/library/library_product.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

using gpu::LibraryCalls;
using gpu::ProductShape;
using gpu::SummedFactor;

/// "f32 64x32x16 ...": what times of algorithms depend on.
std::string describe(const ProductShape &shape);

class CublasLtProduct {
 public:
  /// Null where cuBLASLt has nothing for the shape. Without `trials` its first estimate is taken. `probes`: of what may
  /// lose a NaN; without them there is nothing for it.
  static base::Result<std::shared_ptr<const CublasLtProduct>> make(const CublasLt &lt, cublasLtHandle_t handle,
                                                                   const ProductShape &shape, int64_t most_scratch,
                                                                   gpu::AlgorithmTrials *trials = nullptr,
                                                                   gpu::AlgorithmProbes *probes = nullptr);
  ~CublasLtProduct();
  CublasLtProduct(const CublasLtProduct &) = delete;
  CublasLtProduct &operator=(const CublasLtProduct &) = delete;

  int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Where the operands lie; what the shape does not have is null.
  struct Operands {
    const void *a, *b;
    void *y;
    const void *addend = nullptr, *bias = nullptr;
    void *sums = nullptr;
    const void *gelu_operand = nullptr;  ///< of the gradient
    void *kept_operand = nullptr;        ///< where gelu's is stored
  };
  base::Status issue(cublasLtHandle_t handle, const Operands &operands, void *scratch, cudaStream_t stream) const;

 private:
  CublasLtProduct(const CublasLt &lt, const ProductShape &shape) : lt_(lt), shape_(shape) {}
  base::Status describe();
  base::Status describe_matrix(cublasLtMatrixLayout_t *layout, tensor::DType dtype, int64_t rows, int64_t columns,
                               int64_t step);
  /// `vector`: a bias or sums; `auxiliary`: the operand of gelu. What the shape does not have is not looked at.
  base::Status describe_operation(cublasLtMatmulDesc_t operation, const void *vector, const void *auxiliary) const;
  base::Status multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const Operands &operands,
                        void *scratch, cudaStream_t stream) const;
  /// Of the operands and the scratch memory that lie one behind the other, and the end: see offsets_of().
  using Places = std::array<int64_t, 8>;
  static Places offsets_of(const ProductShape &shape, int64_t scratch_bytes);
  /// One of cuBLASLt's algorithms for the shape.
  struct Candidate {
    std::string name;  ///< "estimate 0" is its first choice
    cublasLtMatmulAlgo_t algorithm;
    int64_t scratch_bytes;
  };
  /// Whether there is an algorithm.
  base::Result<bool> choose(cublasLtHandle_t handle, int64_t most_scratch, gpu::AlgorithmTrials *trials,
                            gpu::AlgorithmProbes *probes);
  /// Up to as many algorithms as there is room for, best estimate first: how many.
  base::Result<size_t> ask(cublasLtHandle_t handle, cublasLtMatmulPreference_t preference, int64_t most_scratch,
                           std::span<cublasLtMatmulHeuristicResult_t> algorithms);
  void take(const Candidate &candidate);
  /// With all operands in `memory`, as offsets_of() has them.
  base::Status issue_in(cublasLtHandle_t handle, char *memory, const Places &at, cudaStream_t stream) const;
  bool keeps_nan(cublasLtHandle_t handle, const Candidate &candidate, gpu::AlgorithmProbes &probes);
  void try_all(cublasLtHandle_t handle, std::span<const Candidate> candidates, gpu::AlgorithmTrials &trials);
  /// Of trials and probes.
  std::string described_shape() const;

  const CublasLt &lt_;
  const ProductShape shape_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, y_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  int64_t scratch_bytes_ = 0;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUBLASLT_PRODUCT_H_
