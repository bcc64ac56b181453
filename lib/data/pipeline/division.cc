// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/division.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "data/pipeline/element_division.h"
#include "data/pipeline/file_division.h"

namespace tutti::impl::data {

using base::Result;

std::string_view name(DivideBy by) {
  return by == DivideBy::files ? "file" : by == DivideBy::elements ? "data" : "auto";
}

const WorkerPart *find_part(const Dataset &dataset) {
  if (dataset.part() != nullptr) return dataset.part().get();
  for (const DatasetRef &input : dataset.inputs()) {
    if (const WorkerPart *part = find_part(*input)) return part;
  }
  return nullptr;
}

Result<DatasetRef> divide(const DatasetRef &dataset, DivideBy by, int32_t worker, int32_t workers) {
  if (!dataset->spec().is_batched()) {
    return base::failed_precondition("the dataset cannot be divided among workers: its elements ", dataset->spec(),
                                     " are single examples; add batch()");
  }
  auto part = std::make_shared<WorkerPart>(WorkerPart{by, worker, workers, {}, dataset});
  DatasetRef made;
  std::string why_not;
  if (by != DivideBy::elements) {
    TUTTI_ASSIGN(FileDivision files, divide_files(dataset, worker, workers));
    made = std::move(files.dataset);
    why_not = std::move(files.refusal);
    part->how = base::concat("by files: worker ", worker, " of ", workers, " reads ", files.own, " of ", files.all);
    part->by = DivideBy::files;
  }
  if (made == nullptr && by == DivideBy::files)
    return base::failed_precondition("the dataset cannot be divided among workers by files: ", why_not);
  if (made == nullptr) {
    TUTTI_ASSIGN(ElementDivision elements, divide_elements(dataset, worker, workers));
    made = std::move(elements.dataset);
    part->how = base::concat("by elements, as each worker keeps its rows of each batch behind '", elements.behind, "'");
    if (!why_not.empty()) part->how += base::concat(" (not by files: ", why_not, ")");
    part->by = DivideBy::elements;
  }
  made->set_part(std::move(part));
  return made;
}

}  // namespace tutti::impl::data
