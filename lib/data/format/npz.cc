// SPDX-License-Identifier: Apache-2.0
#include "base/name_suggestions.h"
#include "data/element/name_index.h"
#include "data/format/npy.h"
#include "data/format/zip.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

Result<std::vector<std::pair<std::string, Tensor>>> decode_npz(const Ref<tensor::Buffer> &buffer,
                                                               const std::vector<std::string> &names,
                                                               std::string_view path, int64_t maximum_array_bytes) {
  const std::string_view bytes(static_cast<const char *>(buffer->data()), static_cast<size_t>(buffer->size_bytes()));
  TUTTI_ASSIGN(const std::vector<ZipMember> members, read_zip_directory(bytes, path));
  const NameIndex wanted(names);
  std::vector<std::string> known;
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const ZipMember &member : members) {
    if (!member.name.ends_with(".npy")) continue;
    known.push_back(member.name.substr(0, member.name.size() - 4));
    if (!names.empty() && wanted.find(known.back()) == nullptr) continue;
    if (member.bytes > member.packed_bytes && member.bytes > maximum_array_bytes)
      return base::data_loss("archive ", base::quoted(path, 400), ": array '", known.back(), "' says ", member.bytes,
                             " bytes after decompression, more than maximum_array_bytes = ", maximum_array_bytes);
    TUTTI_ASSIGN(const Piece piece, read_zip_member(buffer, member, path));
    TUTTI_ASSIGN(Tensor tensor,
                 decode_npy(piece.buffer, piece.offset, piece.size, base::concat(path, "/", member.name)));
    arrays.emplace_back(known.back(), std::move(tensor));
  }
  const NameIndex found(known);
  for (const std::string &name : names) {
    if (found.find(name) != nullptr) continue;
    return base::invalid_argument("archive ", base::quoted(path, 400), " has no array '", name, "'",
                                  base::but_there_are(name, known));
  }
  return arrays;
}

}  // namespace tutti::impl::data
