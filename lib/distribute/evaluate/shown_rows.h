// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation shows of the rows of its batches: values that a model shows (graph::SummarySpec) and that carry
// the batch. Histograms are of all rows, images of the last batch.
//
//   ShownRows shown(model, names, devices);                       // names: EvaluateGraphs::summary_rows
//   TUTTI_ASSIGN(std::vector<Tensor> results, shown.reserve(program));
//   ...                                                            // the program writes them
//   TUTTI_TRY(shown.add(device, {number, first_row}, results));
//   TUTTI_ASSIGN(std::vector<monitor::ShownSummary> all, shown.collect());
//
// Threads: reserve() and add() of a device by one thread at a time; the rest by the caller, when these are done.
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_EVALUATE_SHOWN_ROWS_H_
#define TUTTI_DISTRIBUTE_EVALUATE_SHOWN_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/status.h"
#include "graph/model.h"
#include "monitor/shown_summary.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

class ShownRows {
 public:
  /// Where in the data rows are.
  struct Place {
    int64_t batch = 0;  ///< its number
    int64_t first_row = 0;
    auto operator<=>(const Place &) const = default;
  };

  ShownRows() = default;
  ShownRows(const graph::Model &model, std::span<const std::string> names, size_t devices);

  bool empty() const { return shown_.empty(); }
  /// Memory of the host for the results of a program, in its order.
  static base::Result<std::vector<tensor::Tensor>> reserve(const backend::ExecutableDescription &program);
  /// Results of a program that has computed some rows of a batch.
  base::Status add(size_t device, const Place &place, const backend::ExecutableDescription &program,
                   std::span<const tensor::Tensor> results);
  /// Of all devices.
  base::Result<std::vector<monitor::ShownSummary>> collect();

 private:
  /// Some of the images in a batch.
  struct Images {
    Place place;
    tensor::Tensor pixels;
  };
  struct OfDevice {
    std::vector<monitor::Histogram> histograms;  // by summary
    std::vector<std::vector<Images>> images;     // of the newest batch, by summary
  };

  std::vector<monitor::ShownSummary> shown_;
  std::vector<OfDevice> devices_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_EVALUATE_SHOWN_ROWS_H_
