// SPDX-License-Identifier: Apache-2.0
//
// One of a model's summaries (graph::SummarySpec) as it is seen: put together from the pieces that parts of a batch, or
// several batches, have of it.
//
//   ShownSummary shown{model.summaries[0]};
//   for (const tensor::Tensor &piece : pieces) TUTTI_TRY(shown.add(piece));
//   shown.write(summary);
//
// Threads: a value.
#ifndef TUTTI_MONITOR_SHOWN_SUMMARY_H_
#define TUTTI_MONITOR_SHOWN_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/model.h"
#include "monitor/histogram.h"
#include "monitor/summary.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

struct ShownSummary {
  graph::SummarySpec spec;
  double number = std::numeric_limits<double>::quiet_NaN();  ///< of a scalar
  Histogram histogram{};
  std::vector<std::string> images{};  ///< as PNG files, all of this size
  int64_t height = 0, width = 0;

  /// A scalar becomes this; a histogram gets these elements, too; images behind those there are, as many as the
  /// summary may have. Of floating point numbers 0 is black and 1 white; what is beyond is as these, NaN black.
  /// INVALID_ARGUMENT for texts.
  base::Status add(const tensor::Tensor &piece);
  void write(Summary &summary) const;

  /// What another process has of it, as tensors: put() appends them, take() adds the first ones and lets go of them.
  base::Status put(std::vector<tensor::Tensor> &to) const;
  base::Status take(std::span<const tensor::Tensor> &from);
};

/// INVALID_ARGUMENT for what png_files() does not take.
base::Status check_images(const tensor::Tensor &images);
/// Images [images, height, width, channels] of u8, or of floating point numbers from 0 to 1, as PNG files: the first
/// ones, `most` at most.
base::Result<std::vector<std::string>> png_files(const tensor::Tensor &images, int64_t most);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_SHOWN_SUMMARY_H_
