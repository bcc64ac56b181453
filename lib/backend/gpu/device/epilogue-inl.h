// SPDX-License-Identifier: Apache-2.0
//
// Epilogues in the kernels of products. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_EPILOGUE_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_EPILOGUE_INL_H_

#include "backend/gpu/device/arithmetic-inl.h"
#include "backend/gpu/device/device_epilogue.h"
#include "backend/gpu/device/floats-inl.h"

namespace tutti::impl::backend::gpu {

/// Neighbours in a row.
template <int kCount>
struct EpilogueLanes {
  float lane[kCount];
};

/// Apart from the kernels, which have it in many places: they would grow by all ops in each.
template <int kCount>
__device__ TUTTI_NOINLINE EpilogueLanes<kCount> run_epilogue_op(ElementOp op, EpilogueLanes<kCount> a,
                                                                EpilogueLanes<kCount> b, float number) {
  switch (op) {
#define TUTTI_EPILOGUE_OP(name)                                                      \
  case ElementOp::name:                                                              \
    TUTTI_UNROLL                                                                     \
    for (int i = 0; i < kCount; ++i)                                                 \
      a.lane[i] = apply<ElementOp::name, float>(a.lane[i], b.lane[i], 0.0f, number); \
    break;
    TUTTI_EPILOGUE_OPS(TUTTI_EPILOGUE_OP)
#undef TUTTI_EPILOGUE_OP
    default:
      break;
  }
  return a;
}

struct alignas(8) FourHalves {
  uint32_t words[2];
};

/// Neighbours from `first` on, which is a multiple of four and so is their number.
template <int kCount>
__device__ inline void load_wide(const EpilogueOperand &operand, int64_t first, EpilogueLanes<kCount> &to) {
  TUTTI_UNROLL
  for (int i = 0; i + 4 <= kCount; i += 4) {
    if (operand.dtype == DType::f32) {
      const Bytes16 four = *reinterpret_cast<const Bytes16 *>(static_cast<const float *>(operand.data) + first + i);
      memcpy(&to.lane[i], four.words, sizeof(four));
    } else {
      const FourHalves four =
          *reinterpret_cast<const FourHalves *>(static_cast<const uint16_t *>(operand.data) + first + i);
      TUTTI_UNROLL
      for (int j = 0; j < 4; ++j)
        to.lane[i + j] = half_to_float(operand.dtype, four.words[j / 2] >> (j % 2 * 16));
    }
  }
}

/// The first `count` of neighbours of an operand; `position` and `column` as for run_epilogue().
template <int kCount>
__device__ inline void load_operand(const EpilogueOperand &operand, int64_t position, int64_t column, int count,
                                    EpilogueLanes<kCount> &to) {
  const int64_t first = operand.access == EpilogueAccess::dense ? position : column;
  if (kCount % 4 == 0 && operand.is_wide != 0) {
    load_wide(operand, first, to);
  } else {
    TUTTI_UNROLL
    for (int j = 0; j < kCount; ++j) {
      const int64_t at = operand.access == EpilogueAccess::scalar ? 0 : first + j;
      if (j < count) to.lane[j] = load_float<float>(operand.dtype, operand.data, at);
    }
  }
}

template <int kCount>
__device__ inline void run_step(const EpilogueStep &step, const EpilogueLanes<kCount> &other,
                                EpilogueLanes<kCount> &value) {
  value = step.is_reversed != 0 ? run_epilogue_op(step.op, other, value, step.number)
                                : run_epilogue_op(step.op, value, other, step.number);
}

/// The same bits without a call; nothing if the step is not usual.
template <int kCount>
__device__ inline void run_if_usual(const EpilogueStep &step, const EpilogueLanes<kCount> &other,
                                    EpilogueLanes<kCount> &value) {
  switch (step.op) {
#define TUTTI_USUAL_OP(name)                                                                          \
  case ElementOp::name:                                                                               \
    TUTTI_UNROLL                                                                                      \
    for (int i = 0; i < kCount; ++i)                                                                  \
      value.lane[i] = apply<ElementOp::name, float>(value.lane[i], other.lane[i], 0.0f, step.number); \
    break;
    TUTTI_USUAL_OPS(TUTTI_USUAL_OP)
#undef TUTTI_USUAL_OP
    default:
      break;
  }
}

/// The first `count` of the lanes at `position` of the results, the first in `column`.
template <int kCount>
__device__ inline void run_epilogue(const Epilogue &epilogue, int64_t position, int64_t column, int count,
                                    EpilogueLanes<kCount> &value) {
  for (int32_t i = 0; i < epilogue.step_count; ++i) {
    const EpilogueStep &step = epilogue.steps[i];
    EpilogueLanes<kCount> other = {};
    if (step.operand >= 0) load_operand(epilogue.operands[step.operand], position, column, count, other);
    run_step(step, other, value);
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_EPILOGUE_INL_H_
