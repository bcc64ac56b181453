// SPDX-License-Identifier: Apache-2.0
//
// Walks as Arrow streams. What the consumer holds (schemas, arrays, the stream) owns what it needs, each by itself.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "base/forked.h"
#include "data/dataset/stage.h"
#include "data/element/joined_elements.h"
#include "data/format/arrow.h"
#include "data/pipeline/pipeline.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

const char *format_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return "c";
    case DType::u8:
      return "C";
    case DType::i16:
      return "s";
    case DType::u16:
      return "S";
    case DType::i32:
      return "i";
    case DType::u32:
      return "I";
    case DType::i64:
      return "l";
    case DType::u64:
      return "L";
    case DType::f16:
      return "e";
    case DType::f32:
      return "f";
    case DType::f64:
      return "g";
    case DType::boolean:
      return "b";
    case DType::bytes:
      return "Z";
    case DType::bf16:
      break;
  }
  return nullptr;
}

/// A schema with what it points to. Children belong to it.
struct SchemaNode {
  std::string format, name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema *> pointers;

  static void release(ArrowSchema *schema) {
    auto *const node = static_cast<SchemaNode *>(schema->private_data);
    for (ArrowSchema &child : node->children) {
      // One that the consumer moved away is released already.
      if (child.release != nullptr) child.release(&child);
    }
    delete node;
    schema->release = nullptr;
  }
};

/// Fills `out`, whose children become those given.
void emit(std::unique_ptr<SchemaNode> node, ArrowSchema *out) {
  for (ArrowSchema &child : node->children)
    node->pointers.push_back(&child);
  *out = {};
  out->format = node->format.c_str();
  out->name = node->name.c_str();
  out->n_children = static_cast<int64_t>(node->children.size());
  out->children = node->pointers.data();
  out->release = SchemaNode::release;
  out->private_data = node.release();
}

// `dims`: of the lists around the values.
void emit_column(const std::string &name, DType dtype, std::span<const graph::Dim> dims, ArrowSchema *out) {
  auto node = std::make_unique<SchemaNode>();
  node->name = name;
  if (dims.empty()) {
    node->format = format_of(dtype);
  } else {
    node->format = dims[0].is_constant() ? base::concat("+w:", dims[0].constant()) : "+L";
    node->children.resize(1);
    emit_column("item", dtype, dims.subspan(1), &node->children[0]);
  }
  emit(std::move(node), out);
}

/// An array with what it points to.
struct ArrayNode {
  Tensor tensor;                 // of the values
  std::vector<uint8_t> bits;     // of booleans
  std::vector<int64_t> offsets;  // of lists of differing length
  const void *buffers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray *> pointers;

  // A forked child leaves it alone: its memory may belong to a pool, whose lock a thread of the parent had.
  static void release(ArrowArray *array) {
    array->release = nullptr;
    if (base::is_forked()) return;
    auto *const node = static_cast<ArrayNode *>(array->private_data);
    for (ArrowArray &child : node->children) {
      if (child.release != nullptr) child.release(&child);
    }
    delete node;
  }
};

void emit(std::unique_ptr<ArrayNode> node, int64_t length, int64_t buffers, ArrowArray *out) {
  for (ArrowArray &child : node->children)
    node->pointers.push_back(&child);
  *out = {};
  out->length = length;
  out->n_buffers = buffers;
  out->n_children = static_cast<int64_t>(node->children.size());
  out->buffers = node->buffers;
  out->children = node->pointers.data();
  out->release = ArrayNode::release;
  out->private_data = node.release();
}

/// A component of the rows of one batch.
struct ExportedColumn {
  std::span<const graph::Dim> dims;  // of a row
  std::vector<Shape> shapes;         // of each row, if dims are unknown
  Tensor values;                     // of all rows, one behind the other
};

// Where the lists of an axis begin among their items, and where the last ends. A row has as many of them as the axes
// before have items.
std::vector<int64_t> offsets_of(const ExportedColumn &column, int32_t axis) {
  std::vector<int64_t> offsets{0};
  for (const Shape &shape : column.shapes) {
    int64_t lists = 1;
    for (int32_t before = 0; before < axis; ++before)
      lists *= shape[before];
    for (int64_t i = 0; i < lists; ++i)
      offsets.push_back(offsets.back() + shape[axis]);
  }
  return offsets;
}

// The values under the lists that the axes from `axis` on are; `length` of the outermost.
void emit_column(const ExportedColumn &column, int32_t axis, int64_t length, ArrowArray *out) {
  auto node = std::make_unique<ArrayNode>();
  if (static_cast<size_t>(axis) < column.dims.size()) {
    const graph::Dim &dim = column.dims[static_cast<size_t>(axis)];
    node->children.resize(1);
    if (dim.is_constant()) {
      emit_column(column, axis + 1, length * dim.constant(), &node->children[0]);
      return emit(std::move(node), length, 1, out);
    }
    node->offsets = offsets_of(column, axis);
    node->buffers[1] = node->offsets.data();
    emit_column(column, axis + 1, node->offsets.back(), &node->children[0]);
    return emit(std::move(node), length, 2, out);
  }
  const Tensor &tensor = column.values;
  node->tensor = tensor;
  node->buffers[1] = tensor.data();
  int64_t buffers = 2;
  if (tensor.dtype() == DType::bytes) {
    // Offsets count from the beginning of the tensor's buffer (tensor/bytes_tensor.h).
    node->buffers[2] = tensor.buffer()->data();
    buffers = 3;
  } else if (tensor.dtype() == DType::boolean) {
    node->bits.assign(static_cast<size_t>(length + 7) / 8 + 1, 0);
    const auto *const values = tensor.data_as<uint8_t>();
    for (int64_t i = 0; i < length; ++i) {
      if (values[i] != 0) node->bits[static_cast<size_t>(i) / 8] |= static_cast<uint8_t>(1U << (i % 8));
    }
    node->buffers[1] = node->bits.data();
  }
  emit(std::move(node), length, buffers, out);
}

int errno_of(const Status &status) {
  switch (status.code()) {
    case base::Code::ok:
      return 0;
    case base::Code::cancelled:
      return ECANCELED;
    case base::Code::deadline_exceeded:
      return ETIMEDOUT;
    case base::Code::resource_exhausted:
      return ENOMEM;
    case base::Code::invalid_argument:
      return EINVAL;
    case base::Code::unimplemented:
      return ENOSYS;
    default:
      return EIO;
  }
}

bool are_known(std::span<const graph::Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](const graph::Dim &dim) { return dim.is_constant(); });
}

/// One walk.
class Exporter {
 public:
  // `batch_rows`: of elements that are no batches; 0 = they are.
  Exporter(std::unique_ptr<Iterator> iterator, int64_t batch_rows)
      : iterator_(std::move(iterator)), batch_rows_(batch_rows) {}

  static void fill(std::unique_ptr<Exporter> exporter, ArrowArrayStream *out) {
    *out = {get_schema, get_next, get_last_error, release, exporter.release()};
  }

 private:
  static Exporter &of(ArrowArrayStream *stream) { return *static_cast<Exporter *>(stream->private_data); }

  // Nothing is thrown through the consumer.
  template <typename Body>
  int guard(Body body) noexcept {
    try {
      const Status alive = base::check_not_forked();
      const Status status = alive.ok() ? body() : alive;
      if (!status.ok()) last_error_ = status.to_string();
      return errno_of(status);
    } catch (const std::exception &) {
      last_error_.clear();
      return ENOMEM;
    }
  }

  static int get_schema(ArrowArrayStream *stream, ArrowSchema *out) {
    return of(stream).guard([&] { return of(stream).write_schema(out); });
  }
  static int get_next(ArrowArrayStream *stream, ArrowArray *out) {
    return of(stream).guard([&] { return of(stream).write_next(out); });
  }
  static const char *get_last_error(ArrowArrayStream *stream) {
    const std::string &text = of(stream).last_error_;
    return text.empty() ? nullptr : text.c_str();
  }
  // A forked child has none of the threads of the walk.
  static void release(ArrowArrayStream *stream) {
    stream->release = nullptr;
    if (!base::is_forked()) delete static_cast<Exporter *>(stream->private_data);
  }

  Status write_schema(ArrowSchema *out) {
    auto root = std::make_unique<SchemaNode>();
    root->format = "+s";
    const std::vector<ComponentSpec> &components = iterator_->spec().components;
    root->children.resize(components.size());
    for (size_t i = 0; i < components.size(); ++i)
      emit_column(components[i].name, components[i].dtype, dims_of(components[i]), &root->children[i]);
    emit(std::move(root), out);
    return Status();
  }

  Status write_next(ArrowArray *out) {
    *out = {};
    int64_t rows = 0;
    std::vector<ExportedColumn> columns;
    TUTTI_ASSIGN(const bool more, batch_rows_ == 0 ? next_batch(columns, rows) : gather(columns, rows));
    if (!more) return Status();
    auto root = std::make_unique<ArrayNode>();
    root->children.resize(columns.size());
    for (size_t i = 0; i < columns.size(); ++i)
      emit_column(columns[i], 0, rows, &root->children[i]);
    emit(std::move(root), rows, 1, out);
    return Status();
  }

  // Of a row.
  std::span<const graph::Dim> dims_of(const ComponentSpec &component) const {
    return std::span(component.dims).subspan(batch_rows_ == 0 ? 1 : 0);
  }

  Result<bool> next_batch(std::vector<ExportedColumn> &columns, int64_t &rows) {
    Element batch;
    TUTTI_ASSIGN(const bool more, iterator_->next(batch));
    if (!more) return false;
    rows = batch.rows();
    for (size_t i = 0; i < batch.components.size(); ++i) {
      ExportedColumn column{dims_of(iterator_->spec().components[i]), {}, std::move(batch.components[i])};
      if (!are_known(column.dims)) column.shapes.assign(static_cast<size_t>(rows), column.values.shape().row_shape());
      columns.push_back(std::move(column));
    }
    return true;
  }

  // As a batch does it (batch_stage.h): what is there when an interrupt comes stays, and an element that fails takes
  // the others along.
  Result<bool> gather(std::vector<ExportedColumn> &columns, int64_t &rows) {
    for (bool over = false; taken_ < batch_rows_ && !over;) {
      Element element;
      const Result<bool> more = iterator_->next(element);
      if (base::is_interrupt(more.status())) return more.status();
      if (more.ok() && !*more) break;
      ++taken_;
      over = is_final(more.status());
      keep_worst(error_, more.status());
      if (error_.ok()) elements_.push_back(std::move(element));
    }
    taken_ = 0;
    const std::vector<Element> elements = std::exchange(elements_, {});
    TUTTI_TRY(std::exchange(error_, Status()));
    rows = static_cast<int64_t>(elements.size());
    if (rows == 0) return false;
    for (size_t i = 0; i < iterator_->spec().components.size(); ++i) {
      ExportedColumn column{dims_of(iterator_->spec().components[i]), {}, {}};
      int64_t values = 0;
      for (const Element &element : elements) {
        column.shapes.push_back(element.components[i].shape());
        values += element.components[i].elements();
      }
      TUTTI_ASSIGN(const Shape shape, Shape::make({&values, 1}));
      TUTTI_ASSIGN(column.values, join_values(elements, i, shape));
      columns.push_back(std::move(column));
    }
    return true;
  }

  const std::unique_ptr<Iterator> iterator_;
  const int64_t batch_rows_;
  std::string last_error_;
  // The rows of a batch in the making:
  int64_t taken_ = 0;
  std::vector<Element> elements_;
  Status error_;
};

Status check_exportable(const ElementSpec &spec) {
  for (const ComponentSpec &component : spec.components) {
    if (format_of(component.dtype) == nullptr)
      return base::unimplemented("component '", component.name, "' cannot be exported: Arrow has no type ",
                                 component.dtype);
  }
  return Status();
}

}  // namespace

Status write_arrow(const DatasetRef &dataset, const IteratorContext &context, int64_t batch_rows,
                   ArrowArrayStream *out) {
  *out = {};
  const ElementSpec &spec = dataset->spec();
  TUTTI_TRY(check_exportable(spec));
  if (!spec.is_batched() && batch_rows < 1)
    return base::invalid_argument("batch_rows: expected at least 1, got ", batch_rows);
  const bool have_equal_shapes = std::all_of(spec.components.begin(), spec.components.end(),
                                             [](const ComponentSpec &component) { return are_known(component.dims); });
  DatasetRef batches = dataset;
  if (!spec.is_batched() && have_equal_shapes) {
    TUTTI_ASSIGN(batches, Pipeline(dataset).apply("batch", {{"batch_size", batch_rows}}).build());
  }
  const int64_t to_gather = batches->spec().is_batched() ? 0 : batch_rows;
  TUTTI_ASSIGN(std::unique_ptr<Iterator> iterator, batches->make_iterator(context));
  Exporter::fill(std::make_unique<Exporter>(std::move(iterator), to_gather), out);
  return Status();
}

}  // namespace tutti::impl::data
