// SPDX-License-Identifier: Apache-2.0
//
// The thin layer over oneDNN, for its major versions 2 and 3: convolutions and changes of layout, with a scratchpad
// that we own, argument arrays made once, and a look at what was chosen: implementations that are plain loops are
// refused while there is another.
//
// Kernels of convolutions are stored in layouts named "conv/<tag>" or "conv<groups>/<tag>", <tag> being oneDNN's name
// of a blocked format over [filters, channels, height, width] (with groups: five axes). The same library on the same
// processor knows its own names; unknown ones are an error.
//
// With ConvolutionRequest::bf16 both factors are copied into scratch as bfloat16 (8 bits of precision, rounded to
// nearest even) before the library multiplies them with sums in f32. All that callers see is f32 as without.
// UNIMPLEMENTED on processors that do not multiply in bfloat16, and where the library would do so by plain loops.
//
// Everything here is immutable once made; ConvolutionState belongs to one program.
#ifndef TUTTI_BACKEND_CPU_DNNL_DNNL_CONVOLUTION_H_
#define TUTTI_BACKEND_CPU_DNNL_DNNL_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/kernel/image_stage.h"
#include "backend/cpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

struct ConvolutionShape {
  int64_t rows = 0, groups = 1;
  int64_t in_channels = 0, in_height = 0, in_width = 0;
  int64_t out_channels = 0, out_height = 0, out_width = 0;
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t pad_low[2] = {0, 0}, pad_high[2] = {0, 0};
  friend bool operator==(const ConvolutionShape &, const ConvolutionShape &) = default;
  friend auto operator<=>(const ConvolutionShape &, const ConvolutionShape &) = default;
};

enum class ConvolutionPass : uint8_t { forward, input_gradient, kernel_gradient };

/// What is done to the result of a convolution, in this order.
struct ConvolutionEpilogue {
  bool bias = false;  ///< forward: add it; kernel_gradient: its gradient too
  bool sum = false;   ///< forward: add what the output holds before
  bool relu = false;
};

struct ConvolutionRequest {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;
  bool winograd = false;
  bool blocked_input = false;   ///< x (or its gradient) is in nChw16c, else row-major NHWC
  bool blocked_output = false;  ///< y (or its gradient)
  std::string kernel_layout;    ///< of the kernel (or its gradient); "any" = what suits best
  ConvolutionEpilogue epilogue;
  bool accept_plain = false;  ///< take plain loops where there is nothing else
  bool bf16 = false;          ///< factors are rounded to bfloat16 in every run; sums and the result are f32
  bool repeatable = false;    ///< ask for a deterministic implementation
  int32_t threads = 1;        ///< for make_convolution_parts (convolution_parts.h); libraries are given one
  int32_t image_parts = 0;    ///< for the same: cut the images into so many parts, as for a stage; 0 = as suits it
};

/// Buffers of one convolution: `input` is x or its gradient, and so on.
struct ConvolutionBuffers {
  BufferId input = -1;
  BufferId kernel = -1;
  BufferId bias = -1;
  BufferId output = -1;
  BufferId scratch = -1;
};

class ConvolutionPlan {
 public:
  /// For one thread. UNIMPLEMENTED when the library has no real implementation for it.
  static base::Result<std::shared_ptr<const ConvolutionPlan>> make(const ConvolutionRequest &request);
  virtual ~ConvolutionPlan() = default;

  virtual const std::string &implementation() const = 0;
  virtual const std::string &kernel_layout() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  virtual std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const = 0;
  virtual bool is_stage() const { return false; }
  /// As a stage; null unless it is one, because image_parts were asked for.
  virtual std::unique_ptr<ImageStage> stage(const ConvolutionBuffers &) const { return nullptr; }
};

/// Bytes of a kernel [height, width, channels / groups, filters] in a layout; an error for a name that is none.
base::Result<int64_t> kernel_storage_bytes(std::string_view layout, const std::vector<int64_t> &dims);
/// A Kernel that copies between two layouts of a convolution kernel ("" = row-major).
base::Result<std::unique_ptr<Kernel>> make_kernel_reorder(std::string_view from_layout, std::string_view to_layout,
                                                          const std::vector<int64_t> &dims, BufferId from, BufferId to);
/// The same at once, outside of programs.
base::Status reorder_kernel(std::string_view from_layout, std::string_view to_layout, const std::vector<int64_t> &dims,
                            const void *from, void *to);

/// May parts of an image's memory with these channels be computed by different threads? Without the masks of AVX-512,
/// oneDNN's kernels write whole vectors, which reach from the last channels of a part into the next part.
bool can_share_images(int64_t in_channels, int64_t out_channels);

/// Does the processor multiply in bfloat16? Elsewhere oneDNN would emulate it.
bool has_bf16();

/// "oneDNN 2.6.3".
std::string dnnl_version_text();
/// The most that oneDNN makes of this processor, as the number of its kind of instruction set.
std::string dnnl_instruction_set();

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_DNNL_CONVOLUTION_H_
