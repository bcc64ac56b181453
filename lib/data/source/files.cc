// SPDX-License-Identifier: Apache-2.0
#include "data/file/file_system.h"
#include "data/pipeline/sources.h"
#include "data/source_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;

Result<DatasetRef> make_files(const FilesParameters &parameters) {
  TUTTI_ASSIGN(const std::vector<std::string> paths,
               expand_paths(parameters.paths, parameters.file_systems.get(), parameters.cancel));
  TUTTI_ASSIGN(tensor::Tensor texts, tensor::make_bytes_tensor({static_cast<int64_t>(paths.size())}, paths));
  return from_slices({{parameters.name, std::move(texts), Role::feature}}, {nullptr, true});
}

}  // namespace tutti::impl::data
