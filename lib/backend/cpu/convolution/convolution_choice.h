// SPDX-License-Identifier: Apache-2.0
//
// How the convolutions of a graph may be done. A candidate is one way to do one pass (forward, gradient of the input,
// gradient of the kernel): a family of implementations and the layouts of the images. Families are listed, best first
// where nothing was measured, in convolution_choice.cc; a new one is a line there and a function that makes a
// ConvolutionPlan or refuses with UNIMPLEMENTED.
//
//   for (const ConvolutionCandidate &candidate : convolution_candidates(shape, pass, level, threads)) {
//     auto plan = candidate.family->make(candidate.request);          // UNIMPLEMENTED: look further
//   }
//
// Immutable values and pure functions.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_CHOICE_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_CHOICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "backend/lowered_graph.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

using ConvolutionPlanPointer = std::shared_ptr<const ConvolutionPlan>;

/// Implementations that share an algorithm and a library.
struct ConvolutionFamily {
  std::string_view name;
  /// Rounds otherwise than the direct algorithm: level `fast` only.
  bool fast_only = false;
  /// Transforms each kernel in every run: what a run takes does not grow with the rows alone.
  bool transforms_kernels = false;
  /// Plain loops: looked at only when nothing else can do it.
  bool is_last_resort = false;
  /// What it is taken to do where nothing was measured.
  double rule_flops_per_second = 1e9;
  /// A quick look at shape, pass and layouts: is it worth calling make?
  bool (*suits)(const ConvolutionRequest &request) = nullptr;
  /// For one thread, whatever the request says: make_plan cuts what several threads do (convolution_parts.h).
  base::Result<ConvolutionPlanPointer> (*make)(const ConvolutionRequest &request) = nullptr;
  /// Its plans are for as many threads as the request says, and cut themselves.
  bool cuts_itself = false;
  /// Rounds factors to fewer bits than f32 has: only with permission, and only where it was measured to be faster.
  bool rounds_factors = false;
};

/// Best first by rule.
std::span<const ConvolutionFamily> convolution_families();

struct ConvolutionCandidate {
  const ConvolutionFamily *family = nullptr;
  ConvolutionRequest request;  ///< without epilogue, kernel_layout "any"
};

/// "dnnl_direct:rb": family, and of x and of y whether it is row-major or blocked.
std::string label(const ConvolutionCandidate &candidate);

/// Every candidate of a pass that may do, best first by rule; plain loops last. `allows_bf16`: factors may be rounded
/// (level fast).
std::vector<ConvolutionCandidate> convolution_candidates(const ConvolutionShape &shape, ConvolutionPass pass,
                                                         int32_t level, int32_t threads, bool allows_bf16 = false);

/// The candidate's plan with the kernel in `layout` if that works, else as suits it best ("any").
base::Result<ConvolutionPlanPointer> make_plan(const ConvolutionCandidate &candidate, const std::string &layout,
                                               const ConvolutionEpilogue &epilogue);
/// Is the convolution about as fast in parts of images (image_stage.h)?
bool suits_stage(const ConvolutionCandidate &candidate, const Parts &parts);
/// The same as a stage of these parts. An error where that cannot be, or for a forward pass not with the kernel in
/// `layout` ("" = any): it was chosen for that.
base::Result<ConvolutionPlanPointer> make_stage_plan(const ConvolutionCandidate &candidate, const std::string &layout,
                                                     const ConvolutionEpilogue &epilogue, const Parts &parts);

/// The first candidate of the forward pass of which there is a plan.
base::Result<ConvolutionCandidate> choose_by_rule(const ConvolutionShape &shape, int32_t level, int32_t threads);

/// Shape of a conv2d, conv2d_input_gradient or conv2d_kernel_gradient node.
ConvolutionShape convolution_shape(const LoweredGraph &graph, const graph::Node &node);
/// Is there nothing to compute?
bool is_empty(const ConvolutionShape &shape);

/// "forward", "input_gradient", "kernel_gradient".
std::string_view name(ConvolutionPass pass);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_CHOICE_H_
