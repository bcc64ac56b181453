// SPDX-License-Identifier: Apache-2.0
//
// The safetensors file format: named dense tensors, row-major, little-endian.
//
//   u64 N | N bytes of JSON | data
//   JSON: {"__metadata__": {"k": "v"}, "dense/kernel": {"dtype": "F32", "shape": [784, 256], "data_offsets": [0,
//   802816]}}
//
// Offsets count from the start of the data. Tensors follow each other without holes and fill the file. What is written
// here is readable by every reader of the format, and the same tensors give the same bytes whatever order they come in:
// entries are sorted by falling element size, then by name, so each tensor is aligned to its element size.
//
// The reader trusts nothing: the header's length is bounded by the file's, and dtype, shape and offsets must agree, be
// in range, without overlap or hole, before memory is taken; memory never exceeds the size of the file.
//
// Threads: the functions may be called from any thread.
#ifndef TUTTI_CHECKPOINT_SAFETENSORS_H_
#define TUTTI_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::checkpoint {

/// A header larger than this is refused, as the public readers do.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Where a tensor lies in the data of a file.
struct SafetensorsEntry {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  tensor::Shape shape;
  int64_t begin_byte = 0;
  int64_t end_byte = 0;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  SafetensorsMetadata metadata;
};

/// What identifies a file's content.
struct FileSummary {
  int64_t size_bytes = 0;
  uint32_t crc32c = 0;
  friend bool operator==(const FileSummary &, const FileSummary &) = default;
};

/// "F32" for f32; nothing for a dtype the format has not (bytes).
std::optional<std::string_view> safetensors_name(tensor::DType dtype);
std::optional<tensor::DType> dtype_from_safetensors(std::string_view name);

/// Checks and decodes the JSON of a header whose file has `data_bytes` bytes of data. DATA_LOSS names the tensor.
base::Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, int64_t data_bytes);

/// What to write: the order does not matter.
struct SafetensorsItem {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  tensor::Shape shape;
};
/// Gives the tensor of items[index]; called once per item, in the order of the file.
using TensorSource = std::function<base::Result<tensor::Tensor>(size_t index)>;

/// Writes and fsyncs a file; it appears only when complete. Holds one tensor at a time. INVALID_ARGUMENT for a bad or
/// repeated name, a dtype the format has not, or a tensor that is not what its item says.
base::Result<FileSummary> write_safetensors(const std::string &path, const std::vector<SafetensorsItem> &items,
                                            const TensorSource &source, const SafetensorsMetadata &metadata,
                                            const base::CancelToken *cancel);

struct SafetensorsContent {
  SafetensorsHeader header;
  std::vector<tensor::Tensor> tensors;  // as header.entries
  FileSummary summary;
};

/// Reads a whole file. With `expected`, a size that differs is found before anything is read, a checksum that differs
/// after; both are DATA_LOSS and say what was expected.
base::Result<SafetensorsContent> read_safetensors(const std::string &path, const std::optional<FileSummary> &expected);

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_SAFETENSORS_H_
