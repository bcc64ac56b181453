// SPDX-License-Identifier: Apache-2.0
//
// The layout pass: which images of a graph lie row-major and which in blocks of 16 channels, and with which candidate
// each convolution and each of its gradients is done, so that the whole costs least.
//
//   const ImageLayouts layouts = ImageLayouts::make(graph, fusion);
//   const ConvolutionCandidate *candidate = layouts.convolution(step);      // null: none can do it
//   bool blocked = layouts.is_blocked(value);
//
// At level `fast`: images that meet in an op which takes both layouts (normalisation, pooling, elementwise, residual
// sums, and their gradients) share one layout, and are one yes/no variable of a CostNetwork. Terms are the measured
// times of the convolutions between two such sets (ConvolutionTimes), a reorder wherever layouts do not agree, and what
// neighbours bound by memory lose in one layout. The passes of a convolution are chosen each for itself.
// At the other levels each convolution takes what choose_by_rule says, and its gradients the same.
//
// Immutable once made. The same graph gives the same layouts throughout a process.
#ifndef TUTTI_BACKEND_CPU_LOWER_IMAGE_LAYOUTS_H_
#define TUTTI_BACKEND_CPU_LOWER_IMAGE_LAYOUTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/convolution/convolution_choice.h"
#include "backend/cpu/convolution/convolution_times.h"
#include "backend/cpu/lower/fusion.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::cpu {

class ImageLayouts {
 public:
  static ImageLayouts make(const LoweredGraph &graph, const FusionPlan &fusion);

  /// How the conv2d or gradient at a step is done; null when no candidate can.
  const ConvolutionCandidate *convolution(int32_t step) const {
    const auto found = convolutions_.find(step);
    return found == convolutions_.end() ? nullptr : &found->second;
  }
  /// The layout an image should have where both are possible.
  bool is_blocked(graph::ValueId id) const { return blocked_[static_cast<size_t>(id)] != 0; }

 private:
  friend class LayoutPass;
  std::map<int32_t, ConvolutionCandidate> convolutions_;
  std::vector<char> blocked_;
};

/// What has to be known about the convolutions of a graph; empty unless its level is `fast`.
std::vector<ConvolutionQuestion> convolution_questions(const LoweredGraph &graph, const FusionPlan &fusion);

/// For tests: $TUTTI_CPU_CONVOLUTION names a candidate, such as "dnnl_direct:bb" (x and y blocked) or "dnnl_winograd",
/// that is taken wherever there is such a one, or "".
std::string forced_convolution_from_environment();

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_IMAGE_LAYOUTS_H_
