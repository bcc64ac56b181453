// SPDX-License-Identifier: Apache-2.0
//
// Sizes of layouts and copies between them. Names: "" row-major, kBlocked16 for images, by_elements() for sequences,
// "conv.../..." for kernels of convolutions (dnnl_convolution.h).
#ifndef TUTTI_BACKEND_CPU_DNNL_LAYOUTS_H_
#define TUTTI_BACKEND_CPU_DNNL_LAYOUTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/cpu/kernel/kernel.h"
#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// Images [rows, height, width, channels] stored as [rows, channels / 16, height, width, 16].
inline constexpr std::string_view kBlocked16 = "nChw16c";
/// Channels of a block of it.
constexpr int64_t kBlockChannels = 16;

/// The elements of a sequence along an axis one behind the other.
std::string by_elements(int64_t axis);

/// Bytes of a value in a layout.
int64_t storage_bytes(const LoweredValue &value, std::string_view layout);

/// Are two layouts of a value the same bytes? Images of 16 channels are one block.
bool is_same_memory(const LoweredValue &value, std::string_view a, std::string_view b);

/// A kernel that copies a value from one layout to another, images on so many threads.
base::Result<std::unique_ptr<Kernel>> make_reorder(const LoweredValue &value, std::string_view from_layout,
                                                   std::string_view to_layout, BufferId from, BufferId to,
                                                   int32_t threads);

/// to[i] += from[i] for any number dtype.
std::function<void(const RunContext &)> make_plain_add(tensor::DType dtype, int64_t n, BufferId from, BufferId to);

/// [rows, positions, channels] <-> [rows, channels / 16, positions, 16].
void to_blocked(int64_t rows, int64_t positions, int64_t channels, const float *from, float *to);
void from_blocked(int64_t rows, int64_t positions, int64_t channels, const float *from, float *to);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_LAYOUTS_H_
