// SPDX-License-Identifier: Apache-2.0
//
// The source arrow: the rows of the record batches of a stream, which is read when the source is made.
#include <utility>

#include "data/format/arrow.h"
#include "data/format/field.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "data/source_parameters.h"

namespace tutti::impl::data {

using base::Result;

Result<DatasetRef> make_arrow(const ArrowParameters &parameters) {
  if (parameters.arrow_stream == nullptr)
    return base::failed_precondition("there is no Arrow stream; it must be set before the source");
  std::vector<ArrowColumn> columns;
  for (const std::string &text : parameters.columns) {
    TUTTI_ASSIGN(ArrowColumn column, ArrowColumn::parse(text));
    columns.push_back(std::move(column));
  }
  TUTTI_ASSIGN(ArrowTable table, read_arrow(*parameters.arrow_stream, columns));
  ElementSpec spec{std::move(table.columns)};
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  std::vector<DatasetRef> datasets;
  for (std::vector<ArrowValues> &batch : table.batches) {
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < batch.size(); ++i) {
      const ComponentSpec &component = spec.components[i];
      named.push_back({component.name, std::move(batch[i].values), component.role, std::move(batch[i].ranges)});
    }
    TUTTI_ASSIGN(DatasetRef dataset, from_slices(std::move(named)));
    datasets.push_back(std::move(dataset));
  }
  if (datasets.size() == 1) return datasets[0];
  TransformArguments others;
  others.others.assign(datasets.begin() + 1, datasets.end());
  return Pipeline(datasets[0]).apply("concatenate", {}, std::move(others)).build();
}

}  // namespace tutti::impl::data
