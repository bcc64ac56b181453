// SPDX-License-Identifier: Apache-2.0
//
// A cache whose files lie side by side in a folder, one for each state of the pipeline before it. The source
// element_files reads them elsewhere.
#include <utility>

#include "data/transform/cache.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

base::Result<DatasetRef> apply_snapshot(const DatasetRef &input, const SnapshotParameters &parameters,
                                        TransformArguments &arguments) {
  TUTTI_ASSIGN(std::unique_ptr<CacheContents> contents,
               make_file_contents(input, {parameters.path, true, parameters.key}, arguments.cancel));
  return make_cache("snapshot", input, std::move(contents));
}

}  // namespace tutti::impl::data
