// SPDX-License-Identifier: Apache-2.0
//
// Arrow columns written by hand, and what is read of them.
#ifndef TUTTI_TESTS_DATA_ARROW_COLUMNS_H_
#define TUTTI_TESTS_DATA_ARROW_COLUMNS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/format/arrow.h"
#include "tensor/bytes_tensor.h"
#include "tensor/tensor.h"

namespace tutti::testing {

/// A column made by hand: whoever releases it does nothing.
struct Column {
  explicit Column(const char *format, int64_t length, std::vector<const void *> with_buffers)
      : buffers(std::move(with_buffers)) {
    schema.format = format;
    schema.name = "x";
    schema.release = [](ArrowSchema *one) { one->release = nullptr; };
    array.length = length;
    array.null_count = -1;
    array.n_buffers = static_cast<int64_t>(buffers.size());
    array.buffers = buffers.data();
    array.release = [](ArrowArray *one) { one->release = nullptr; };
  }
  Column &of(Column &values) {
    schema.dictionary = &values.schema;
    array.dictionary = &values.array;
    return *this;
  }
  Column &list_of(Column &item) {
    schema.children = &item_schema;
    array.children = &item_array;
    schema.n_children = array.n_children = 1;
    item_schema = &item.schema;
    item_array = &item.array;
    return *this;
  }

  std::vector<const void *> buffers;
  ArrowSchema schema{}, *item_schema = nullptr;
  ArrowArray array{}, *item_array = nullptr;
};

/// The column as the one of a stream with one record batch of so many rows.
inline impl::base::Result<impl::data::ArrowTable> read_table(Column &column, int64_t rows, const std::string &name) {
  struct Source {
    ArrowSchema root_schema{}, *schemas[1];
    ArrowArray root{}, *arrays[1];
    const void *no_nulls[1] = {nullptr};
    bool is_read = false;
  };
  Source source;
  source.schemas[0] = &column.schema;
  source.arrays[0] = &column.array;
  source.root_schema.format = "+s";
  source.root_schema.children = source.schemas;
  source.root_schema.release = column.schema.release;
  source.root.children = source.arrays;
  source.root.length = rows;
  source.root.buffers = source.no_nulls;
  source.root.release = column.array.release;
  source.root_schema.n_children = source.root.n_children = source.root.n_buffers = 1;
  ArrowArrayStream stream{};
  stream.private_data = &source;
  stream.get_schema = [](ArrowArrayStream *one, ArrowSchema *out) {
    *out = static_cast<Source *>(one->private_data)->root_schema;
    return 0;
  };
  stream.get_next = [](ArrowArrayStream *one, ArrowArray *out) {
    auto *const from = static_cast<Source *>(one->private_data);
    *out = std::exchange(from->is_read, true) ? ArrowArray{} : from->root;
    return 0;
  };
  stream.release = [](ArrowArrayStream *one) { one->release = nullptr; };
  TUTTI_ASSIGN(const impl::data::ArrowColumn wanted, impl::data::ArrowColumn::parse(name));
  return impl::data::read_arrow(*impl::data::ArrowStream::take(&stream), {wanted});
}
inline impl::base::Result<impl::tensor::Tensor> read_column(Column &column, int64_t rows,
                                                            const std::string &name = "x") {
  TUTTI_ASSIGN(const impl::data::ArrowTable table, read_table(column, rows, name));
  return table.batches[0][0].values;
}

inline std::vector<std::string> texts_in(const impl::tensor::Tensor &tensor) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    texts.emplace_back(impl::tensor::bytes_at(tensor, i));
  return texts;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_ARROW_COLUMNS_H_
