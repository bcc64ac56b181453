// SPDX-License-Identifier: Apache-2.0
//
// Walks as Arrow streams. What the consumer holds (schemas, arrays, the stream) owns what it needs, each by itself.
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "data/format/arrow.h"
#include "data/pipeline.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
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

// `extents`: of the lists around the values.
void emit_column(const std::string &name, DType dtype, std::span<const int64_t> extents, ArrowSchema *out) {
  auto node = std::make_unique<SchemaNode>();
  node->name = name;
  if (extents.empty()) {
    node->format = format_of(dtype);
  } else {
    node->format = base::concat("+w:", extents[0]);
    node->children.resize(1);
    emit_column("item", dtype, extents.subspan(1), &node->children[0]);
  }
  emit(std::move(node), out);
}

/// An array with what it points to.
struct ArrayNode {
  Tensor tensor;              // of the values
  std::vector<uint8_t> bits;  // of booleans
  const void *buffers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray *> pointers;

  static void release(ArrowArray *array) {
    auto *const node = static_cast<ArrayNode *>(array->private_data);
    for (ArrowArray &child : node->children) {
      if (child.release != nullptr) child.release(&child);
    }
    delete node;
    array->release = nullptr;
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

// The values of a tensor under the lists that its axes from `axis` on are; `length` of the outermost.
void emit_column(const Tensor &tensor, int32_t axis, int64_t length, ArrowArray *out) {
  auto node = std::make_unique<ArrayNode>();
  if (axis < tensor.rank()) {
    node->children.resize(1);
    emit_column(tensor, axis + 1, length * tensor.shape()[axis], &node->children[0]);
    return emit(std::move(node), length, 1, out);
  }
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

/// One walk.
class Exporter {
 public:
  explicit Exporter(std::unique_ptr<Iterator> iterator) : iterator_(std::move(iterator)) {}

  static void fill(std::unique_ptr<Exporter> exporter, ArrowArrayStream *out) {
    *out = {get_schema, get_next, get_last_error, release, exporter.release()};
  }

 private:
  static Exporter &of(ArrowArrayStream *stream) { return *static_cast<Exporter *>(stream->private_data); }

  // Nothing is thrown through the consumer.
  template <typename Body>
  int guard(Body body) noexcept {
    try {
      const Status status = body();
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
  static void release(ArrowArrayStream *stream) {
    delete static_cast<Exporter *>(stream->private_data);
    stream->release = nullptr;
  }

  Status write_schema(ArrowSchema *out) {
    auto root = std::make_unique<SchemaNode>();
    root->format = "+s";
    const std::vector<ComponentSpec> &components = iterator_->spec().components;
    root->children.resize(components.size());
    for (size_t i = 0; i < components.size(); ++i) {
      std::vector<int64_t> extents;
      for (size_t axis = 1; axis < components[i].dims.size(); ++axis)
        extents.push_back(components[i].dims[axis].constant());
      emit_column(components[i].name, components[i].dtype, extents, &root->children[i]);
    }
    emit(std::move(root), out);
    return Status();
  }

  Status write_next(ArrowArray *out) {
    *out = {};
    Element element;
    TUTTI_ASSIGN(const bool more, iterator_->next(element));
    if (!more) return Status();
    auto root = std::make_unique<ArrayNode>();
    root->children.resize(element.components.size());
    for (size_t i = 0; i < element.components.size(); ++i)
      emit_column(element.components[i], 1, element.components[i].rows(), &root->children[i]);
    emit(std::move(root), element.rows(), 1, out);
    return Status();
  }

  const std::unique_ptr<Iterator> iterator_;
  std::string last_error_;
};

Status check_exportable(const ElementSpec &spec) {
  for (const ComponentSpec &component : spec.components) {
    const auto refuse = [&](std::string_view why) {
      return base::unimplemented("component '", component.name, "' cannot be given as Arrow: ", why);
    };
    if (format_of(component.dtype) == nullptr) return refuse("it has no such type");
    for (size_t axis = 1; axis < component.dims.size(); ++axis) {
      if (!component.dims[axis].is_constant()) return refuse("its lists would differ in length");
    }
  }
  return Status();
}

}  // namespace

Status write_arrow(const DatasetRef &dataset, const IteratorContext &context, int64_t batch_rows,
                   ArrowArrayStream *out) {
  *out = {};
  DatasetRef batches = dataset;
  if (!dataset->spec().is_batched()) {
    TUTTI_ASSIGN(batches, Pipeline(dataset).apply("batch", {{"batch_size", batch_rows}}).build());
  }
  TUTTI_TRY(check_exportable(batches->spec()));
  TUTTI_ASSIGN(std::unique_ptr<Iterator> iterator, batches->make_iterator(context));
  Exporter::fill(std::make_unique<Exporter>(std::move(iterator)), out);
  return Status();
}

}  // namespace tutti::impl::data
