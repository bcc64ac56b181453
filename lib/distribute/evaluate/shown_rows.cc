// SPDX-License-Identifier: Apache-2.0
#include "distribute/evaluate/shown_rows.h"

#include <algorithm>

#include "distribute/plan/step_graphs.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using tensor::Tensor;

ShownRows::ShownRows(const graph::Model &model, std::span<const std::string> names, size_t devices) {
  for (const std::string &name : names)
    shown_.push_back({*model.find_summary(name)});
  devices_.resize(names.empty() ? 0 : devices);
  for (OfDevice &device : devices_) {
    device.histograms.resize(names.size());
    device.images.resize(names.size());
  }
}

Result<std::vector<Tensor>> ShownRows::reserve(const backend::ExecutableDescription &program) {
  std::vector<Tensor> results;
  for (const backend::PortDescription &port : program.outputs) {
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(port.dims));
    TUTTI_ASSIGN(Tensor result, Tensor::allocate(port.dtype, shape));
    results.push_back(std::move(result));
  }
  return results;
}

Status ShownRows::add(size_t device, const Place &place, const backend::ExecutableDescription &program,
                      std::span<const Tensor> results) {
  OfDevice &of = devices_[device];
  for (size_t i = 0; i < shown_.size(); ++i) {
    const graph::SummarySpec &spec = shown_[i].spec;
    const int32_t at = program.output_index(summary_entry(spec.name));
    if (at < 0) return base::internal_error("a program does not give summary '", spec.name, "'");
    const Tensor &value = results[static_cast<size_t>(at)];
    if (spec.kind == graph::SummaryKind::histogram) TUTTI_TRY(of.histograms[i].add(value));
    if (spec.kind != graph::SummaryKind::image || value.rows() == 0) continue;
    std::vector<Images> &newest = of.images[i];
    if (!newest.empty() && newest.front().place.batch > place.batch) continue;
    if (!newest.empty() && newest.front().place.batch < place.batch) newest.clear();
    if (place.first_row >= spec.most_images) continue;
    TUTTI_ASSIGN(const Tensor first, value.slice_rows(0, std::min(value.rows(), spec.most_images)));
    TUTTI_ASSIGN(Tensor kept, first.clone());
    newest.push_back({place, std::move(kept)});
  }
  return Status();
}

Result<std::vector<monitor::ShownSummary>> ShownRows::collect() {
  for (size_t i = 0; i < shown_.size(); ++i) {
    std::vector<Images> images;
    for (OfDevice &device : devices_) {
      shown_[i].histogram.add(device.histograms[i]);
      std::ranges::move(device.images[i], std::back_inserter(images));
    }
    std::ranges::sort(images, {}, &Images::place);
    for (const Images &some : images)
      if (some.place.batch == images.back().place.batch) TUTTI_TRY(shown_[i].add(some.pixels));
  }
  return std::move(shown_);
}

}  // namespace tutti::impl::distribute
