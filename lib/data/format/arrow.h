// SPDX-License-Identifier: Apache-2.0
//
// Arrow record batches as tensors, through the C stream interface (tutti/arrow.h).
//
//   TUTTI_ASSIGN(ArrowTable table, read_arrow(*ArrowStream::take(stream), columns));
//   table.batches[0][1].values;                      // the second column's rows of the first batch, [rows, ...]
//
// Numbers are views of the producer's memory where it is aligned to the size of an element and no null is filled;
// booleans (bits in Arrow), texts (by offsets or views) and what a dictionary holds are copied. Fixed-size lists are
// further axes. Lists (by offsets or views) are ranges of their items, an unknown dimension; a null list for which
// there is a fill is one without items. Dates, times and durations are the integers that they are stored as. Other
// types are UNIMPLEMENTED, by the name of the column.
//
// The producer is trusted as any code of the process is: its structs are checked for what can be seen of them, but
// nothing tells how long its buffers are.
//
// Threads: as the producer's functions; a batch is released on the thread that drops the last tensor of it.
#ifndef TUTTI_DATA_FORMAT_ARROW_H_
#define TUTTI_DATA_FORMAT_ARROW_H_

#include <tutti/arrow.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "data/pipeline/sources.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// A stream that is released once, at the latest with the object.
class ArrowStream {
 public:
  /// Moves the stream here; the caller's struct is released afterwards, as the specification calls it. Null for one
  /// that is null or was released.
  static std::shared_ptr<ArrowStream> take(ArrowArrayStream *stream);
  ~ArrowStream() { release(); }
  ArrowStream(const ArrowStream &) = delete;
  ArrowStream &operator=(const ArrowStream &) = delete;

  /// FAILED_PRECONDITION when it was released.
  base::Result<ArrowArrayStream *> get();
  void release();

 private:
  ArrowStream() = default;
  ArrowArrayStream stream_ = {};
};

/// A column to read, and what stands for its nulls; without that a null is an error.
struct ArrowColumn {
  std::string name;
  std::optional<std::string> fill;

  /// "age" or "age = 0".
  static base::Result<ArrowColumn> parse(const std::string &text);
};

/// The rows of a column in one batch.
struct ArrowValues {
  tensor::Tensor values;                              ///< [rows, ...], or of lists the items, [items, ...]
  std::shared_ptr<const RowRanges> ranges = nullptr;  ///< of lists the items of each row; else null

  int64_t rows() const { return ranges != nullptr ? static_cast<int64_t>(ranges->size()) : values.rows(); }
};

struct ArrowTable {
  std::vector<ComponentSpec> columns;             ///< of one row
  std::vector<std::vector<ArrowValues>> batches;  ///< for each batch the rows of each column
};

/// Reads the stream to its end and releases it. No columns means all. INVALID_ARGUMENT for what is not Arrow, for a
/// null ("column 'x', row 17"; rows are counted over all batches) and for unknown columns; UNIMPLEMENTED for types;
/// what the producer reports otherwise.
base::Result<ArrowTable> read_arrow(ArrowStream &stream, const std::vector<ArrowColumn> &columns);

/// A walk over the dataset as a stream of record batches. A dataset of batches gives one for each element, another one
/// for every `batch_rows` elements. `out` is overwritten; errors leave it released. The token of the context ends a
/// get_next() that waits.
/// Fixed-size dimensions become fixed-size lists, unknown ones large lists, dtype bytes large binary. Numbers and texts
/// are not copied, except out of elements whose shapes differ. UNIMPLEMENTED for bf16, by the name of the component.
base::Status write_arrow(const DatasetRef &dataset, const IteratorContext &context, int64_t batch_rows,
                         ArrowArrayStream *out);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_ARROW_H_
