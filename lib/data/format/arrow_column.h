// SPDX-License-Identifier: Apache-2.0
//
// Columns of Arrow record batches as tensors; what arrow.h says of them.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_FORMAT_ARROW_COLUMN_H_
#define TUTTI_DATA_FORMAT_ARROW_COLUMN_H_

#include <tutti/arrow.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/format/arrow.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// How a column's innermost values lie in memory.
enum class ArrowLayout { numbers, bits, offsets32, offsets64, fixed_bytes, views };

/// How lists of differing length say which items they have.
enum class ArrowLists { offsets32, offsets64, views32, views64 };

/// The type of a column.
struct ArrowType {
  tensor::DType dtype;
  ArrowLayout layout;
  int64_t value_bytes = 0;                            ///< of fixed_bytes
  std::vector<int64_t> extents;                       ///< of a row, or of an item
  std::optional<tensor::DType> index = std::nullopt;  ///< of a dictionary, whose values have the layout
  std::optional<ArrowLists> lists = std::nullopt;     ///< rows are lists of items

  graph::Dims dims() const;  ///< of a row
};

/// INVALID_ARGUMENT and UNIMPLEMENTED by the name of the column.
base::Result<ArrowType> arrow_type_of(const ArrowSchema &schema, const std::string &column);

/// Rows of a column: `count` from `offset` on in the array, of which the first is row `number` of the stream.
struct ArrowRows {
  int64_t offset = 0;
  int64_t count = 0;
  int64_t number = 0;
};

/// Memory of the array is used as long as the tensor lives, and keeps `owner`.
base::Result<ArrowValues> read_arrow_column(const ArrowColumn &column, const ArrowType &type, const ArrowArray &array,
                                            const ArrowRows &rows, std::shared_ptr<const void> owner);
/// The rows of a batch without rows.
base::Result<ArrowValues> no_arrow_rows(const ArrowType &type);

inline bool arrow_bit(const void *bits, int64_t index) {
  return ((static_cast<const unsigned char *>(bits)[index >> 3] >> (index & 7)) & 1) != 0;
}

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_ARROW_COLUMN_H_
