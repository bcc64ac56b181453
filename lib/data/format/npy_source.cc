// SPDX-License-Identifier: Apache-2.0
//
// The sources npy and npz: slices of arrays, which stay in the file as long as nobody looks.
#include <utility>

#include "data/element/name_index.h"
#include "data/file/file_system.h"
#include "data/format/npy.h"
#include "data/pipeline/sources.h"
#include "data/source_parameters.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// from_slices() after the roles have been set.
Result<DatasetRef> slices_of(std::vector<NamedTensor> arrays, const std::vector<std::string> &labels,
                             const std::vector<std::string> &weights, FileName file) {
  const NameIndex index(arrays, [](const NamedTensor &array) -> std::string_view { return array.name; });
  const auto set = [&](const std::vector<std::string> &names, Role role) -> Status {
    for (const std::string &wanted : names) {
      const NameIndex::Place *const found = index.find(wanted);
      if (found == nullptr) return base::invalid_argument("there is no array '", wanted, "' to be a ", name(role));
      arrays[found->first].role = role;
    }
    return Status();
  };
  TUTTI_TRY(set(labels, Role::label));
  TUTTI_TRY(set(weights, Role::weight));
  return from_slices(std::move(arrays), {std::move(file)});
}

}  // namespace

Result<DatasetRef> make_npy(const NpyParameters &parameters) {
  std::vector<NamedTensor> arrays;
  std::vector<FileName> files;
  for (const std::string &text : parameters.arrays) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return base::invalid_argument("array ", base::quoted(text), ": expected NAME=PATH, as in \"x=images.npy\"");
    files.push_back(std::make_shared<const std::string>(text.substr(equals + 1)));
    TUTTI_ASSIGN(Tensor tensor, read_npy(*files.back(), parameters.file_systems.get(), parameters.cancel));
    arrays.push_back({text.substr(0, equals), std::move(tensor), Role::feature});
  }
  // The elements of several files came from none of them alone.
  return slices_of(std::move(arrays), parameters.labels, parameters.weights, files.size() == 1 ? files[0] : nullptr);
}

Result<DatasetRef> make_npz(const NpzParameters &parameters) {
  TUTTI_ASSIGN(const Ref<const ReadableFile> file,
               open_file(parameters.path, parameters.file_systems.get(), parameters.cancel));
  TUTTI_ASSIGN(const Ref<tensor::Buffer> contents, file->contents());
  std::vector<NamedTensor> arrays;
  TUTTI_ASSIGN(auto found, decode_npz(contents, parameters.arrays, parameters.path, parameters.maximum_array_bytes));
  for (auto &[name, tensor] : found)
    arrays.push_back({name, std::move(tensor), Role::feature});
  return slices_of(std::move(arrays), parameters.labels, parameters.weights,
                   std::make_shared<const std::string>(parameters.path));
}

}  // namespace tutti::impl::data
