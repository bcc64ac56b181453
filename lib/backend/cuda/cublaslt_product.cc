// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cublaslt_product.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// What every array is aligned to; memory of arenas is to 64, and no algorithm asks for more than 16.
constexpr uint32_t kAlignment = 16;

/// What the matrices of an array are aligned to.
uint32_t alignment_of(DType dtype, int64_t places) {
  const uint32_t all = static_cast<uint32_t>(places * static_cast<int64_t>(tensor::size_bytes(dtype))) | kAlignment;
  return all & (~all + 1);
}
std::array<uint32_t, 3> alignments_of(const ProductShape &shape) {
  return {alignment_of(shape.dtype, shape.a_places | shape.a_step),
          alignment_of(shape.dtype, shape.b_places | shape.b_step),
          alignment_of(shape.result_dtype(), shape.y_places | shape.y_step)};
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cudaDataType_t scale_type(const ProductShape &shape) { return shape.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F; }

cublasComputeType_t compute_type(const ProductShape &shape) {
  if (shape.dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return shape.dtype == DType::f32 && shape.allows_rounding ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue(const ProductShape &shape) {
  // The first factor of cuBLASLt is b.
  if (shape.sums != SummedFactor::none)
    return shape.sums == SummedFactor::b ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
  if (shape.has_gelu_gradient) return CUBLASLT_EPILOGUE_DGELU;
  if (shape.keeps_gelu_operand) return shape.has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (shape.has_gelu) return shape.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  if (shape.has_relu) return shape.has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return shape.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

bool has_vector(const ProductShape &shape) { return shape.has_bias || shape.sums != SummedFactor::none; }

/// Is the operand of gelu read or stored?
bool has_auxiliary(const ProductShape &shape) { return shape.has_gelu_gradient || shape.keeps_gelu_operand; }

/// Does the description of a call have a pointer?
bool has_pointer(const ProductShape &shape) { return has_vector(shape) || has_auxiliary(shape); }

/// Is it documented nowhere what becomes of a NaN?
bool may_lose_nan(const ProductShape &shape) { return shape.has_relu || has_auxiliary(shape); }

/// Elements of the bias or of the sums.
int64_t vector_size(const ProductShape &shape) {
  if (!has_vector(shape)) return 0;
  return shape.sums == SummedFactor::a ? shape.m : shape.n;
}

bool fits(const ProductShape &shape) {
  for (const int64_t count : {shape.m, shape.n, shape.k, shape.batches}) {
    if (count <= 0 || count > INT32_MAX) return false;
  }
  return tensor::is_floating(shape.dtype);
}

}  // namespace

/// Of a, b, y, the addend, the bias or the sums, the operand of gelu and the scratch memory.
CublasLtProduct::Places CublasLtProduct::offsets_of(const ProductShape &shape, int64_t scratch_bytes) {
  const auto factor = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  const auto result = static_cast<int64_t>(tensor::size_bytes(shape.result_dtype()));
  const int64_t last = shape.batches - 1;
  const int64_t y_bytes = (last * shape.y_step + shape.m * shape.n) * result;
  return gpu::trial_offsets(std::array<int64_t, 7>{
      (last * shape.a_step + shape.m * shape.k) * factor, (last * shape.b_step + shape.k * shape.n) * factor, y_bytes,
      shape.has_addend ? y_bytes : 0, vector_size(shape) * result, has_auxiliary(shape) ? y_bytes : 0, scratch_bytes});
}

std::string describe(const ProductShape &shape) {
  return base::concat(name(shape.dtype), " ", shape.m, "x", shape.n, "x", shape.k, shape.transpose_a ? " a'" : "",
                      shape.transpose_b ? " b'" : "", " batches ", shape.batches, " by ", shape.a_step, ",",
                      shape.b_step, ",", shape.y_step, " aligned to ", base::join(alignments_of(shape), ","),
                      shape.allows_rounding ? " rounded" : "", " to ", name(shape.result_dtype()),
                      shape.has_addend ? " addend" : "", shape.has_bias ? " bias" : "", shape.has_gelu ? " gelu" : "",
                      shape.keeps_gelu_operand ? " kept" : "", shape.has_relu ? " relu" : "",
                      shape.has_gelu_gradient ? " gelu gradient" : "",
                      shape.sums == SummedFactor::none ? "" : (shape.sums == SummedFactor::a ? " sums a" : " sums b"));
}

Result<std::shared_ptr<const CublasLtProduct>> CublasLtProduct::make(const CublasLt &lt, cublasLtHandle_t handle,
                                                                     const ProductShape &shape, int64_t most_scratch,
                                                                     gpu::AlgorithmTrials *trials,
                                                                     gpu::AlgorithmProbes *probes) {
  if (!fits(shape)) return std::shared_ptr<const CublasLtProduct>();
  std::shared_ptr<CublasLtProduct> product(new CublasLtProduct(lt, shape));
  TUTTI_TRY(product->describe());
  TUTTI_ASSIGN(const bool found, product->choose(handle, most_scratch, trials, probes));
  if (!found) return std::shared_ptr<const CublasLtProduct>();
  return std::shared_ptr<const CublasLtProduct>(std::move(product));
}

CublasLtProduct::~CublasLtProduct() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, y_}) {
    if (layout != nullptr) (void)lt_.cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation_ != nullptr) (void)lt_.cublasLtMatmulDescDestroy(operation_);
}

Status CublasLtProduct::describe_matrix(cublasLtMatrixLayout_t *layout, DType dtype, int64_t rows, int64_t columns,
                                        int64_t step) {
  // The row-major matrix is a column-major one with as many rows as this one has columns.
  TUTTI_TRY(status_of(lt_,
                      lt_.cublasLtMatrixLayoutCreate(layout, data_type(dtype), static_cast<uint64_t>(columns),
                                                     static_cast<uint64_t>(rows), columns),
                      "describing a matrix"));
  if (shape_.batches == 1) return Status();
  const int32_t batches = static_cast<int32_t>(shape_.batches);
  TUTTI_TRY(status_of(
      lt_, lt_.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof(batches)),
      "describing a batch of matrices"));
  return status_of(
      lt_,
      lt_.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step)),
      "describing a batch of matrices");
}

Status CublasLtProduct::describe_operation(cublasLtMatmulDesc_t operation, const void *vector,
                                           const void *auxiliary) const {
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto &value) {
    return status_of(lt_, lt_.cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value)),
                     "describing what follows a matrix product");
  };
  // The first factor of cuBLASLt is b.
  const cublasOperation_t transpositions[] = {shape_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                              shape_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N};
  const cublasLtMatmulDescAttributes_t names[] = {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB};
  for (size_t i = 0; i < 2; ++i)
    TUTTI_TRY(status_of(
        lt_, lt_.cublasLtMatmulDescSetAttribute(operation, names[i], &transpositions[i], sizeof(transpositions[i])),
        "describing a matrix product"));
  const cublasLtEpilogue_t finish = epilogue(shape_);
  if (finish == CUBLASLT_EPILOGUE_DEFAULT) return Status();
  TUTTI_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, finish));
  if (has_vector(shape_)) TUTTI_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector));
  if (!has_auxiliary(shape_)) return Status();
  // Its dtype is that of the results unless another is asked for.
  TUTTI_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary));
  return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.n);
}

Status CublasLtProduct::describe() {
  TUTTI_TRY(status_of(lt_, lt_.cublasLtMatmulDescCreate(&operation_, compute_type(shape_), scale_type(shape_)),
                      "describing a matrix product"));
  // To be chosen for, a bias is somewhere, and aligned as others are.
  const auto *const somewhere = reinterpret_cast<const void *>(uintptr_t{kAlignment});
  TUTTI_TRY(describe_operation(operation_, somewhere, somewhere));
  TUTTI_TRY(shape_.transpose_a ? describe_matrix(&a_, shape_.dtype, shape_.k, shape_.m, shape_.a_step)
                               : describe_matrix(&a_, shape_.dtype, shape_.m, shape_.k, shape_.a_step));
  TUTTI_TRY(shape_.transpose_b ? describe_matrix(&b_, shape_.dtype, shape_.n, shape_.k, shape_.b_step)
                               : describe_matrix(&b_, shape_.dtype, shape_.k, shape_.n, shape_.b_step));
  return describe_matrix(&y_, shape_.result_dtype(), shape_.m, shape_.n, shape_.y_step);
}

void CublasLtProduct::take(const Candidate &candidate) {
  algorithm_ = candidate.algorithm;
  scratch_bytes_ = candidate.scratch_bytes;
}

std::string CublasLtProduct::described_shape() const {
  return base::concat("cublaslt ", lt_.cublasLtGetVersion(), " ", cuda::describe(shape_));
}

Status CublasLtProduct::issue_in(cublasLtHandle_t handle, char *memory, const Places &at, cudaStream_t stream) const {
  return issue(handle,
               {memory + at[0], memory + at[1], memory + at[2], memory + at[3], memory + at[4], memory + at[4],
                memory + at[5], memory + at[5]},
               memory + at[6], stream);
}

bool CublasLtProduct::keeps_nan(cublasLtHandle_t handle, const Candidate &candidate, gpu::AlgorithmProbes &probes) {
  // What lies between the matrices of a result would not be written.
  if (shape_.batches > 1 && shape_.y_step != shape_.m * shape_.n) return false;
  take(candidate);
  const Places at = offsets_of(shape_, candidate.scratch_bytes);
  const auto result_bytes = static_cast<int64_t>(tensor::size_bytes(shape_.result_dtype()));
  gpu::NanProbe probe;
  probe.shape = described_shape();
  // An algorithm is what lies in these words, which the library's header allows to be kept.
  probe.algorithm = "algorithm";
  for (const uint64_t word : candidate.algorithm.data)
    probe.algorithm += base::concat(" ", word);
  probe.bytes = at.back();
  probe.result_at = at[2];
  probe.result_bytes = shape_.batches * shape_.m * shape_.n * result_bytes;
  probe.result = shape_.result_dtype();
  probe.issue = [&](char *memory, cudaStream_t stream) { return issue_in(handle, memory, at, stream); };
  return probes.keeps_nan(probe);
}

void CublasLtProduct::try_all(cublasLtHandle_t handle, std::span<const Candidate> candidates,
                              gpu::AlgorithmTrials &trials) {
  std::vector<std::string> names;
  int64_t most_scratch = 0;
  for (const Candidate &candidate : candidates) {
    names.push_back(candidate.name);
    most_scratch = std::max(most_scratch, candidate.scratch_bytes);
  }
  const Places at = offsets_of(shape_, most_scratch);
  take(candidates[trials.fastest(described_shape(), names, at.back(), [&](size_t i, char *memory, cudaStream_t stream) {
    take(candidates[i]);
    return issue_in(handle, memory, at, stream);
  })]);
}

Result<bool> CublasLtProduct::choose(cublasLtHandle_t handle, int64_t most_scratch, gpu::AlgorithmTrials *trials,
                                     gpu::AlgorithmProbes *probes) {
  if (may_lose_nan(shape_) && probes == nullptr) return false;
  std::array<cublasLtMatmulHeuristicResult_t, gpu::AlgorithmTrials::kMostCandidates> algorithms{};
  const bool needs_one = trials == nullptr && !may_lose_nan(shape_);
  cublasLtMatmulPreference_t preference = nullptr;
  TUTTI_TRY(status_of(lt_, lt_.cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm for a product"));
  const Result<size_t> found =
      ask(handle, preference, most_scratch, std::span(algorithms).first(needs_one ? 1 : algorithms.size()));
  (void)lt_.cublasLtMatmulPreferenceDestroy(preference);
  TUTTI_TRY(found);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < *found && (candidates.empty() || trials != nullptr); ++i) {
    const Candidate candidate{base::concat("estimate ", i), algorithms[i].algo,
                              static_cast<int64_t>(algorithms[i].workspaceSize)};
    if (!may_lose_nan(shape_) || keeps_nan(handle, candidate, *probes)) candidates.push_back(candidate);
  }
  if (candidates.empty()) return false;
  take(candidates[0]);
  if (trials != nullptr) try_all(handle, candidates, *trials);
  return true;
}

Result<size_t> CublasLtProduct::ask(cublasLtHandle_t handle, cublasLtMatmulPreference_t preference,
                                    int64_t most_scratch, std::span<cublasLtMatmulHeuristicResult_t> algorithms) {
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, const auto &value) {
    return status_of(lt_, lt_.cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
                     "choosing an algorithm for a product");
  };
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(most_scratch)));
  // Parts of a sum are added in one order and in the type of the sum: results repeat, and 16-bit types lose nothing.
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  const auto [a, b, y] = alignments_of(shape_);  // the first factor of cuBLASLt is b
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b));
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a));
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, y));
  TUTTI_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, y));
  int count = 0;
  const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
      handle, operation_, b_, a_, y_, y_, preference, static_cast<int>(algorithms.size()), algorithms.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return size_t{0};
  TUTTI_TRY(status_of(lt_, status, "choosing an algorithm for a product"));
  const auto given = algorithms.first(std::min(static_cast<size_t>(std::max(count, 0)), algorithms.size()));
  const auto end = std::stable_partition(
      given.begin(), given.end(), [](const auto &algorithm) { return algorithm.state == CUBLAS_STATUS_SUCCESS; });
  return static_cast<size_t>(end - given.begin());
}

Status CublasLtProduct::issue(cublasLtHandle_t handle, const Operands &operands, void *scratch,
                              cudaStream_t stream) const {
  if (!has_pointer(shape_)) return multiply(handle, operation_, operands, scratch, stream);
  // A description of its own: it has the pointer, and others may issue the product on other devices meanwhile.
  cublasLtMatmulDesc_t operation = nullptr;
  TUTTI_TRY(status_of(lt_, lt_.cublasLtMatmulDescCreate(&operation, compute_type(shape_), scale_type(shape_)),
                      "describing a matrix product"));
  const void *const vector = shape_.has_bias ? operands.bias : operands.sums;
  Status status =
      describe_operation(operation, vector, shape_.has_gelu_gradient ? operands.gelu_operand : operands.kept_operand);
  if (status.ok()) status = multiply(handle, operation, operands, scratch, stream);
  (void)lt_.cublasLtMatmulDescDestroy(operation);
  return status;
}

Status CublasLtProduct::multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const Operands &operands,
                                 void *scratch, cudaStream_t stream) const {
  const float factors[] = {1, shape_.has_addend ? 1.0f : 0.0f};
  const double double_factors[] = {1, shape_.has_addend ? 1.0 : 0.0};
  const bool is_double = shape_.dtype == DType::f64;
  const void *const alpha = is_double ? static_cast<const void *>(&double_factors[0]) : &factors[0];
  const void *const beta = is_double ? static_cast<const void *>(&double_factors[1]) : &factors[1];
  const void *const c = shape_.has_addend ? operands.addend : operands.y;
  return status_of(lt_,
                   lt_.cublasLtMatmul(handle, operation, alpha, operands.b, b_, operands.a, a_, beta, c, y_, operands.y,
                                      y_, &algorithm_, scratch, static_cast<size_t>(scratch_bytes_), stream),
                   "multiplying matrices");
}

}  // namespace tutti::impl::backend::cuda
