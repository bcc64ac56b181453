// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_random.h"

#include <tutti/plugin/backend.h>

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/divider.h"
#include "backend/gpu/device/philox-inl.h"
#include "backend/gpu/device/vector4-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// What a rule does: four results from four words (and four operands).

template <typename Number>
struct DropoutRule {
  using C = Number;
  static constexpr bool kReads = true;
  uint32_t least;  ///< upper 24 bits of the words that keep an element
  C scale;

  __device__ void make(const PhiloxBlock &block, const C *x, C *y) const {
    for (int k = 0; k < 4; ++k)
      y[k] = block.words[k] >> 8 >= least ? x[k] * scale : C(0);
  }
};

struct UniformRule {
  using C = float;
  static constexpr bool kReads = false;
  UniformRange range;

  __device__ void make(const PhiloxBlock &block, const C *, C *y) const {
    for (int k = 0; k < 4; ++k)
      y[k] = uniform_in(range, block.words[k]);
  }
};

struct NormalRule {
  using C = double;
  static constexpr bool kReads = false;
  double mean, deviation;

  __device__ void make(const PhiloxBlock &block, const C *, C *y) const {
    normal_pair(block.words[0], block.words[1], y, y + 1);
    normal_pair(block.words[2], block.words[3], y + 2, y + 3);
    for (int k = 0; k < 4; ++k)
      y[k] = mean + deviation * y[k];
  }
};

struct TruncatedRule {
  using C = double;
  static constexpr bool kReads = false;
  double mean, deviation, below;

  __device__ void make(const PhiloxBlock &block, const C *, C *y) const {
    for (int k = 0; k < 4; ++k)
      y[k] = mean + deviation * truncated_normal(block.words[k], below);
  }
};

struct RandomPlan {
  RandomLayout layout;
  int64_t row_elements;
  Divider row_blocks;
  int32_t takes_vector4;  ///< blocks lie in memory as they are, aligned
  const void *x;
  void *y;
};

/// The key of the whole launch: made once for a block. All threads must call it.
__device__ inline uint64_t shared_key(const RandomLayout &layout) {
  __shared__ uint64_t key;
  if (threadIdx.x == 0)
    key = random_key(static_cast<uint64_t>(layout.scalars[TUTTI_RUN_SEED]), layout.stream,
                     static_cast<uint64_t>(layout.scalars[TUTTI_RUN_BATCH_COUNTER]), layout.iteration);
  __syncthreads();
  return key;
}

/// RandomRows::position.
__device__ inline int64_t position_of(const RandomLayout &layout, int64_t row, int64_t element) {
  const int64_t i = element % layout.inner, outer = element / layout.inner;
  return ((outer / layout.factor * layout.rows + row) * layout.factor + outer % layout.factor) * layout.inner + i;
}

template <typename Rule>
__device__ inline void make_scattered(const RandomPlan &plan, const Rule &rule, const PhiloxBlock &block, int64_t row,
                                      int64_t first) {
  using C = typename Rule::C;
  const DType dtype = plan.layout.dtype;
  const int64_t left = plan.row_elements - first;
  C x[4] = {}, y[4];
  int64_t positions[4];
  for (int k = 0; k < 4; ++k) {
    if (k >= left) continue;
    positions[k] =
        plan.layout.outer == 1 ? row * plan.row_elements + first + k : position_of(plan.layout, row, first + k);
    if constexpr (Rule::kReads) x[k] = load_element<C>(dtype, plan.x, positions[k]);
  }
  rule.make(block, x, y);
  for (int k = 0; k < 4; ++k) {
    if (k < left) store_element<C>(dtype, plan.y, positions[k], y[k]);
  }
}

template <typename Rule, typename I>
__global__ void make_random(const RandomPlan plan, const Rule rule) {
  using C = typename Rule::C;
  const RandomLayout &layout = plan.layout;
  const uint64_t key = shared_key(layout);
  const int64_t first_row = layout.has_batch != 0 ? layout.scalars[TUTTI_RUN_ROW_OFFSET] : 0;
  const int64_t total = layout.rows * plan.row_blocks.divisor;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const I row = divide(static_cast<I>(i), plan.row_blocks);
    const I number = static_cast<I>(i) - row * static_cast<I>(plan.row_blocks.divisor);
    const PhiloxBlock block = philox_block(key, static_cast<uint64_t>(first_row) + row, number);
    if (plan.takes_vector4 != 0) {
      C x[4] = {}, y[4];
      if constexpr (Rule::kReads) load_vector4<C>(layout.dtype, plan.x, i, x);
      rule.make(block, x, y);
      store_vector4<C>(layout.dtype, plan.y, i, y);
    } else {
      make_scattered(plan, rule, block, static_cast<int64_t>(row), 4 * static_cast<int64_t>(number));
    }
  }
}

template <typename Rule>
gpuError_t launch(const RandomLayout &layout, const Rule &rule, const void *x, void *y, gpuStream_t stream) {
  RandomPlan plan{layout, layout.outer * layout.factor * layout.inner, {}, 0, x, y};
  if (plan.row_elements * layout.rows == 0) return gpuSuccess;
  const int64_t blocks = (plan.row_elements + 3) / 4, total = layout.rows * blocks;
  plan.row_blocks = Divider::of(blocks);
  plan.takes_vector4 = layout.outer == 1 && plan.row_elements % 4 == 0 && is_vector4_aligned(layout.dtype, y) &&
                               (!Rule::kReads || is_vector4_aligned(layout.dtype, x))
                           ? 1
                           : 0;
  const auto kernel = total <= Divider::kMost ? make_random<Rule, uint32_t> : make_random<Rule, uint64_t>;
  return gpu_launch(kernel, blocks_for(total), kBlockThreads, 0, stream, plan, rule);
}

}  // namespace

gpuError_t launch_dropout(const RandomLayout &layout, double rate, const void *x, void *y, gpuStream_t stream) {
  // uniform >= rate, both times 2^24.
  const uint32_t least = static_cast<uint32_t>(std::ceil(rate * 0x1.0p24));
  const double scale = 1 / (1 - rate);
  if (layout.dtype == DType::f64) return launch(layout, DropoutRule<double>{least, scale}, x, y, stream);
  return launch(layout, DropoutRule<float>{least, static_cast<float>(scale)}, x, y, stream);
}

gpuError_t launch_random_uniform(const RandomLayout &layout, double low, double high, void *y, gpuStream_t stream) {
  return launch(layout, UniformRule{UniformRange::of(low, high)}, nullptr, y, stream);
}

gpuError_t launch_random_normal(const RandomLayout &layout, Normal kind, double mean, double deviation, void *y,
                                gpuStream_t stream) {
  if (kind == Normal::plain) return launch(layout, NormalRule{mean, deviation}, nullptr, y, stream);
  const double below = 0.5 * std::erfc(std::sqrt(2.0));
  return launch(layout, TruncatedRule{mean, deviation, below}, nullptr, y, stream);
}

}  // namespace tutti::impl::backend::gpu
