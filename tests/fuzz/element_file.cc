// SPDX-License-Identifier: Apache-2.0
// Any bytes are an element file or an error, also where all its checksums are right; every element is inside the file.
#include "data/keep/element_file.h"

#include <cstdlib>
#include <cstring>

#include "base/hash/checksum.h"
#include "data/keep/element_file_layout.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;

namespace {

// Makes the checksums fit, as far as there is something to be summed up.
void repair(char *bytes, size_t size) {
  data::ElementFileTrailer trailer;
  if (size < data::kElementFileHeaderBytes + sizeof(trailer)) return;
  const size_t end = size - sizeof(trailer);
  std::memcpy(&trailer, bytes + end, sizeof(trailer));
  uint32_t text = 0;
  std::memcpy(&text, bytes + 12, sizeof(text));
  const uint64_t header = data::round_up(data::kElementFileHeaderBytes + text, 64);
  if (header <= end) trailer.header_checksum = base::crc32c(bytes, header);
  if (trailer.index_offset <= end) {
    for (uint64_t at = trailer.index_offset; at + sizeof(data::ElementBlock) <= end; at += sizeof(data::ElementBlock)) {
      data::ElementBlock block;
      std::memcpy(&block, bytes + at, sizeof(block));
      if (block.offset > end || block.bytes > end - block.offset) continue;
      block.checksum = base::crc32c(bytes + block.offset, block.bytes);
      std::memcpy(bytes + at, &block, sizeof(block));
    }
    trailer.index_checksum = base::crc32c(bytes + trailer.index_offset, end - trailer.index_offset);
  }
  std::memcpy(trailer.magic, data::ElementFileTrailer().magic, sizeof(trailer.magic));
  trailer.checksum = base::crc32c(&trailer, offsetof(data::ElementFileTrailer, checksum));
  std::memcpy(bytes + end, &trailer, sizeof(trailer));
}

void look_at(const data::Element &element) {
  static volatile uint32_t sum = 0;
  for (const tensor::Tensor &tensor : element.components) {
    if (tensor.dtype() == tensor::DType::bytes) {
      for (int64_t i = 0; i < tensor.elements(); ++i)
        sum = sum + base::crc32c(tensor::bytes_at(tensor, i));
    } else {
      sum = sum + base::crc32c(tensor.data(), static_cast<size_t>(tensor.size_bytes()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto buffer = tensor::Buffer::allocate(static_cast<int64_t>(size)).take();
  if (size > 0) std::memcpy(buffer->data(), data, size);
  for (int pass = 0; pass < 2; ++pass) {
    const auto file = data::ElementFile::decode(buffer, "fuzz.elements");
    if (file.ok()) {
      if ((*file)->size() > static_cast<int64_t>(size)) std::abort();
      data::Element element;
      for (int64_t i = 0; i < (*file)->size(); ++i) {
        static_cast<void>((*file)->lineage(i));
        if ((*file)->element(i, element).ok()) look_at(element);
      }
      if ((*file)->size() > 0 && (*file)->view(0, (*file)->size(), element)) look_at(element);
    }
    repair(static_cast<char *>(buffer->data()), size);
  }
  return 0;
}
