// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl/layouts.h"

#include <cstring>

#include "backend/cpu/dnnl/dnnl_convolution.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

constexpr std::string_view kByElements = "elements:";

/// Puts the elements along an axis of a value that has them one behind the other where they are in row-major order.
std::unique_ptr<Kernel> make_element_copy(const LoweredValue &value, size_t axis, BufferId from, BufferId to) {
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < value.dims.size(); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= value.dims[i];
  }
  const int64_t length = value.dims[axis];
  auto move = [=](const RunContext &c) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < length; ++i)
        std::memcpy(c.out(to) + (o * length + i) * inner, c.in(from) + (i * outer + o) * inner,
                    static_cast<size_t>(inner) * sizeof(float));
    }
  };
  return std::make_unique<FunctionKernel<decltype(move)>>(move);
}

template <bool kToBlocked>
void move_blocks(int64_t rows, int64_t positions, int64_t channels, const float *from, float *to) {
  const int64_t blocks = channels / kBlockChannels;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t plain = row * positions * channels + block * kBlockChannels;
      const int64_t blocked = (row * blocks + block) * positions * kBlockChannels;
      for (int64_t p = 0; p < positions; ++p) {
        const int64_t plain_at = plain + p * channels;
        const int64_t blocked_at = blocked + p * kBlockChannels;
        std::memcpy(to + (kToBlocked ? blocked_at : plain_at), from + (kToBlocked ? plain_at : blocked_at),
                    kBlockChannels * sizeof(float));
      }
    }
  }
}

}  // namespace

void to_blocked(int64_t rows, int64_t positions, int64_t channels, const float *from, float *to) {
  move_blocks<true>(rows, positions, channels, from, to);
}

void from_blocked(int64_t rows, int64_t positions, int64_t channels, const float *from, float *to) {
  move_blocks<false>(rows, positions, channels, from, to);
}

std::string by_elements(int64_t axis) { return base::concat(kByElements, axis); }

int64_t storage_bytes(const LoweredValue &value, std::string_view layout) {
  if (layout.empty() || layout == kBlocked16 || layout.starts_with(kByElements)) return value.bytes;
  const Result<int64_t> bytes = kernel_storage_bytes(layout, value.dims);
  return bytes.ok() ? *bytes : value.bytes;
}

bool is_same_memory(const LoweredValue &value, std::string_view a, std::string_view b) {
  if (a == b) return true;
  const bool plain_and_blocked = (a.empty() && b == kBlocked16) || (b.empty() && a == kBlocked16);
  return plain_and_blocked && value.dims.size() == 4 && value.dims[3] == kBlockChannels;
}

Result<std::unique_ptr<Kernel>> make_reorder(const LoweredValue &value, std::string_view from_layout,
                                             std::string_view to_layout, BufferId from, BufferId to, int32_t threads) {
  if (value.dtype != tensor::DType::f32) {
    return base::invalid_argument("layout '", from_layout, "' is for f32, not ", value.dtype);
  }
  if (from_layout.starts_with(kByElements) && to_layout.empty())
    return make_element_copy(value, static_cast<size_t>(from_layout[kByElements.size()] - '0'), from, to);
  if (from_layout != kBlocked16 && to_layout != kBlocked16) {
    return make_kernel_reorder(from_layout, to_layout, value.dims, from, to);
  }
  const std::vector<int64_t> &d = value.dims;
  if (d.size() != 4 || d[3] % kBlockChannels != 0 || !(from_layout.empty() || to_layout.empty())) {
    return base::internal_error("cannot convert layout '", from_layout, "' to '", to_layout, "'");
  }
  const int64_t rows = d[0], positions = d[1] * d[2], channels = d[3];
  const bool forward = from_layout.empty();
  const Parts parts(rows, grain_of(2 * positions * channels), threads);
  auto move = [=](const RunContext &c) {
    c.for_parts(parts, [&](Range range) {
      const int64_t at = range.begin * positions * channels;
      (forward ? to_blocked : from_blocked)(range.size(), positions, channels, c.in(from) + at, c.out(to) + at);
    });
  };
  return std::unique_ptr<Kernel>(std::make_unique<FunctionKernel<decltype(move)>>(move));
}

std::function<void(const RunContext &)> make_plain_add(tensor::DType dtype, int64_t n, BufferId from, BufferId to) {
  std::function<void(const RunContext &)> made;
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    made = [=](const RunContext &c) {
      const T *source = static_cast<const T *>(c.buffers[from]);
      T *sum = static_cast<T *>(c.buffers[to]);
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<T, tensor::Half> || std::is_same_v<T, tensor::BFloat16>) {
          sum[i] = T(static_cast<float>(sum[i]) + static_cast<float>(source[i]));
        } else {
          sum[i] = static_cast<T>(sum[i] + source[i]);
        }
      }
    };
  });
  return made;
}

}  // namespace tutti::impl::backend::cpu
