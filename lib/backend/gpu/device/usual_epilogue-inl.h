// SPDX-License-Identifier: Apache-2.0
//
// Epilogues in kernels that wait for memory alone: of usual steps, with operands that are asked for with what they are
// computed with, before anything is waited for. What nearly always comes is compiled by itself (UsualPattern). Included
// by .cu files only.
//
//   return visit_usual_epilogue<T, V>(epilogue, dtype, channels,
//                                     [&](const auto &usual) { return launch(usual, ...); });
#ifndef TUTTI_BACKEND_GPU_DEVICE_USUAL_EPILOGUE_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_USUAL_EPILOGUE_INL_H_

#include "backend/gpu/device/epilogue-inl.h"
#include "backend/gpu/device/product_results-inl.h"
#include "backend/gpu/device/storage-inl.h"

namespace tutti::impl::backend::gpu {

/// Of results that are rounded first, where they have 16 bits: relu, relu of a sum. Of what lies in memory: relu's
/// gradient, that of a sum. Operands lie as the results do.
enum class UsualPattern { any, relu, add_relu, relu_gradient, add_relu_gradient };

/// What narrow() and widen() make of it.
template <typename T>
__device__ inline Computed<T> rounded(Computed<T> value) {
  T stored;
  narrow(value, stored);
  return widen(stored);
}

/// Of results of type T, V of them at a time.
template <typename T, int V, UsualPattern kPattern>
struct UsualEpilogue {
  static constexpr int kAhead = 2;
  static constexpr bool kAdds = kPattern == UsualPattern::add_relu || kPattern == UsualPattern::add_relu_gradient;
  static constexpr bool kMasks = kPattern == UsualPattern::relu_gradient || kPattern == UsualPattern::add_relu_gradient;
  struct Loaded {
    Pack<T, V> operands[kAhead];
  };
  Epilogue epilogue;
  /// Operands that lie as the results do, by number, -1 = none; of a pattern the addend, then what masks.
  int32_t ahead[kAhead];
  const T *ahead_at[kAhead];

  __device__ Loaded load(int64_t index) const {
    Loaded loaded = {};
    TUTTI_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const bool is_read = kPattern == UsualPattern::any ? ahead_at[i] != nullptr : i == 0 ? kAdds : kMasks;
      if (is_read) loaded.operands[i] = pack_at<V>(ahead_at[i], index);
    }
    return loaded;
  }
  __device__ void run(const Loaded &loaded, int64_t index, int64_t channel, EpilogueLanes<V> &lanes) const {
    if constexpr (kPattern == UsualPattern::any) {
      run_any(loaded, index, channel, lanes);
    } else {
      TUTTI_UNROLL
      for (int v = 0; v < V; ++v)
        lanes.lane[v] = of_pattern(loaded, v, lanes.lane[v]);
    }
  }

 private:
  __device__ static float of_pattern(const Loaded &loaded, int v, float value) {
    if constexpr (!kMasks) value = rounded<T>(value);
    if constexpr (kAdds) value += widen(loaded.operands[0].items[v]);
    if constexpr (kMasks) return apply<ElementOp::relu_gradient>(value, widen(loaded.operands[1].items[v]), 0.0f, 0.0f);
    return apply<ElementOp::relu>(value, 0.0f, 0.0f, 0.0f);
  }
  __device__ void run_any(const Loaded &loaded, int64_t index, int64_t channel, EpilogueLanes<V> &lanes) const {
    for (int32_t i = 0; i < epilogue.step_count; ++i) {
      const EpilogueStep &step = epilogue.steps[i];
      EpilogueLanes<V> other = {};
      if (step.operand >= 0) read(step.operand, loaded, index, channel, other);
      run_if_usual(step, other, lanes);
    }
  }
  __device__ void read(int32_t operand, const Loaded &loaded, int64_t index, int64_t channel,
                       EpilogueLanes<V> &other) const {
    if (operand == ahead[0]) {
      widen_pack(loaded.operands[0], other.lane);
    } else if (operand == ahead[1]) {
      widen_pack(loaded.operands[1], other.lane);
    } else {
      load_operand(epilogue.operands[operand], index, channel, V, other);
    }
  }
};

/// Says of each operand whether neighbours may be read together.
inline Epilogue with_widths(const Epilogue &epilogue, int64_t channels) {
  Epilogue known = epilogue;
  for (EpilogueOperand &operand : known.operands)
    operand.is_wide = operand.access != EpilogueAccess::scalar && operand.data != nullptr &&
                      is_wide(operand.data, operand.dtype, channels);
  return known;
}

inline bool is_usual(const Epilogue &epilogue) {
  for (int32_t i = 0; i < epilogue.step_count; ++i) {
    if (!is_usual(epilogue.steps[i])) return false;
  }
  return true;
}

/// How an epilogue of usual steps is read; `width`: elements of a pack.
class UsualReader {
 public:
  UsualReader(const Epilogue &epilogue, DType dtype, int64_t channels, int width)
      : epilogue_(epilogue), dtype_(dtype), channels_(channels), width_(width) {}

  /// The addend and what masks, in `operands`.
  UsualPattern pattern(int32_t (&operands)[2]) const {
    int32_t next = 0;
    const bool is_rounded = dtype_ != DType::f32 && takes(next, rounding());
    if (takes(next, ElementOp::add) && !lies_alike(operands[0] = epilogue_.steps[next - 1].operand))
      return UsualPattern::any;
    const bool adds = operands[0] >= 0, begins_in_memory = dtype_ == DType::f32 || !is_rounded;
    if (takes(next, ElementOp::relu_gradient) && next == epilogue_.step_count && begins_in_memory &&
        lies_alike(operands[1] = epilogue_.steps[next - 1].operand))
      return adds ? UsualPattern::add_relu_gradient : UsualPattern::relu_gradient;
    if (takes(next, ElementOp::relu) && next == epilogue_.step_count && (dtype_ == DType::f32 || is_rounded))
      return adds ? UsualPattern::add_relu : UsualPattern::relu;
    return UsualPattern::any;
  }

  bool lies_alike(int32_t operand) const {
    if (operand < 0) return false;
    const EpilogueOperand &read = epilogue_.operands[operand];
    return read.access == EpilogueAccess::dense && read.dtype == dtype_ && read.data != nullptr &&
           (width_ == 1 || is_wide(dtype_, channels_, {read.data}));
  }

 private:
  ElementOp rounding() const { return dtype_ == DType::f16 ? ElementOp::to_f16 : ElementOp::to_bf16; }
  bool takes(int32_t &next, ElementOp op) const {
    const bool is_next = next < epilogue_.step_count && epilogue_.steps[next].op == op;
    next += is_next ? 1 : 0;
    return is_next;
  }

  const Epilogue &epilogue_;
  const DType dtype_;
  const int64_t channels_;
  const int width_;
};

/// Calls function(UsualEpilogue<T, V, ..>) for an epilogue of usual steps whose results have the dtype, that of T.
template <typename T, int V, typename Function>
gpuError_t visit_usual_epilogue(const Epilogue &epilogue, DType dtype, int64_t channels, Function function) {
  const UsualReader reader(epilogue, dtype, channels, V);
  const auto with = [&]<UsualPattern kPattern>(const int32_t(&operands)[2]) {
    UsualEpilogue<T, V, kPattern> usual{with_widths(epilogue, channels), {operands[0], operands[1]}, {}};
    for (int i = 0; i < 2; ++i) {
      if (operands[i] >= 0) usual.ahead_at[i] = static_cast<const T *>(epilogue.operands[operands[i]].data);
    }
    return function(usual);
  };
  int32_t operands[2] = {-1, -1};
  switch (reader.pattern(operands)) {
    case UsualPattern::relu:
      return with.template operator()<UsualPattern::relu>(operands);
    case UsualPattern::add_relu:
      return with.template operator()<UsualPattern::add_relu>(operands);
    case UsualPattern::relu_gradient:
      return with.template operator()<UsualPattern::relu_gradient>(operands);
    case UsualPattern::add_relu_gradient:
      return with.template operator()<UsualPattern::add_relu_gradient>(operands);
    default:
      break;
  }
  int32_t ahead[2] = {-1, -1};
  for (int32_t i = 0, found = 0; i < Epilogue::kOperands && found < 2; ++i) {
    if (reader.lies_alike(i)) ahead[found++] = i;
  }
  return with.template operator()<UsualPattern::any>(ahead);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_USUAL_EPILOGUE_INL_H_
