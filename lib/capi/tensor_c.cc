// SPDX-License-Identifier: Apache-2.0
#include "capi/tensor_c.h"

#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "capi/guard.h"
#include "capi/host_call.h"
#include "tensor/bytes_tensor.h"
#include "tensor/dlpack.h"

namespace tutti::impl::capi {

constinit HandleType<TensorObject> tensor_handles{"tensor"};

Status emit_tensor(tensor::Tensor tensor, bool writable, tutti_tensor **out) {
  return emit(base::make_ref<TensorObject>(std::move(tensor), writable), tensor_handles, out);
}

Result<tensor::Tensor> find_tensor(const tutti_tensor *handle, std::string_view argument) {
  TUTTI_ASSIGN(const Ref<TensorObject> object, find(handle, tensor_handles, argument));
  return object->tensor();
}

Result<tensor::Tensor> find_tensor_of(std::string_view kind, std::string_view name, const tutti_tensor *handle,
                                      std::string_view argument) {
  Result<tensor::Tensor> tensor = find_tensor(handle, argument);
  if (tensor.ok()) return tensor;
  return tensor.status().wrap(base::concat(kind, " ", base::quoted(name)));
}

Result<tensor::DType> to_dtype(int32_t number) { return tensor::dtype_from_number(number); }

Result<tensor::Shape> to_shape(const int64_t *dims, int64_t rank) {
  if (rank < 0) return base::invalid_argument("argument 'rank' must be 0 or more, got ", rank);
  if (rank > 0) TUTTI_TRY(require(dims, "dims"));
  return tensor::Shape::make(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
}

namespace {

/// Calls a release function once, at the latest when it goes out of scope.
class Releaser {
 public:
  Releaser(tutti_release_fn release, void *user) : release_(release), user_(user) {}
  Releaser(const Releaser &) = delete;
  Releaser &operator=(const Releaser &) = delete;
  ~Releaser() {
    if (release_ != nullptr) (void)catch_thrown("the release function", [&] { release_(user_); });
  }

 private:
  const tutti_release_fn release_;
  void *const user_;
};

Status check_size(tensor::DType dtype, const tensor::Shape &shape, int64_t size_bytes) {
  if (dtype == tensor::DType::bytes) {
    // Whether the texts fit is a matter of the offsets before them, which Tensor::from_buffer() looks at.
    if (size_bytes >= 8) return Status();
    return base::invalid_argument("a tensor of dtype bytes begins with offsets of 8 bytes each, got ", size_bytes,
                                  " bytes");
  }
  const int64_t needed = shape.elements() * static_cast<int64_t>(tensor::size_bytes(dtype));
  if (size_bytes == needed) return Status();
  const auto one = static_cast<int64_t>(tensor::size_bytes(dtype));
  const std::string elements =
      size_bytes % one == 0 ? base::concat(" (", shape.elements(), " elements, got ", size_bytes / one, ")") : "";
  return base::invalid_argument("a tensor ", dtype, " ", shape, " needs ", needed, " bytes, got ", size_bytes,
                                elements);
}

template <typename T, typename Get>
T from_tensor(const tutti_tensor *handle, T otherwise, Get &&get) {
  const Ref<TensorObject> object = peek(handle, tensor_handles);
  return object ? get(object->tensor()) : otherwise;
}

/// The layout of bytes_tensor.h, checked and copied.
Result<tensor::Tensor> copy_of_bytes(const tensor::Shape &shape, const void *data, int64_t size_bytes) {
  TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, tensor::Buffer::allocate(size_bytes));
  if (size_bytes > 0) std::memcpy(buffer->data(), data, static_cast<size_t>(size_bytes));
  return tensor::Tensor::from_buffer(tensor::DType::bytes, shape, std::move(buffer));
}

/// Where an element lies; nothing for a wrong handle or index.
std::optional<std::string_view> element_of(const tutti_tensor *tensor, int64_t index) {
  return from_tensor<std::optional<std::string_view>>(
      tensor, std::nullopt, [index](const tensor::Tensor &t) -> std::optional<std::string_view> {
        if (index < 0 || index >= t.elements()) return std::nullopt;
        if (t.dtype() == tensor::DType::bytes) return tensor::bytes_at(t, index);
        const size_t size = tensor::size_bytes(t.dtype());
        return std::string_view(t.data_as<char>() + static_cast<size_t>(index) * size, size);
      });
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_tensor_create(int32_t dtype, const int64_t *dims, int64_t rank, tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const tensor::DType type, to_dtype(dtype));
    TUTTI_ASSIGN(const tensor::Shape shape, to_shape(dims, rank));
    TUTTI_ASSIGN(tensor::Tensor made, tensor::Tensor::zeros(type, shape));
    return emit_tensor(std::move(made), true, out);
  });
}

int32_t tutti_tensor_from_data(int32_t dtype, const int64_t *dims, int64_t rank, const void *data, int64_t size_bytes,
                               tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const tensor::DType type, to_dtype(dtype));
    TUTTI_ASSIGN(const tensor::Shape shape, to_shape(dims, rank));
    TUTTI_TRY(check_size(type, shape, size_bytes));
    if (size_bytes > 0) TUTTI_TRY(require(data, "data"));
    if (type == tensor::DType::bytes) {
      TUTTI_ASSIGN(tensor::Tensor made, copy_of_bytes(shape, data, size_bytes));
      return emit_tensor(std::move(made), false, out);
    }
    TUTTI_ASSIGN(tensor::Tensor made, tensor::Tensor::copy_of(type, shape, data, size_bytes));
    return emit_tensor(std::move(made), true, out);
  });
}

int32_t tutti_tensor_take_memory(int32_t dtype, const int64_t *dims, int64_t rank, const void *data, int64_t size_bytes,
                                 tutti_release_fn release, void *user, tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    const auto owner = std::make_shared<Releaser>(release, user);
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const tensor::DType type, to_dtype(dtype));
    TUTTI_ASSIGN(const tensor::Shape shape, to_shape(dims, rank));
    TUTTI_TRY(check_size(type, shape, size_bytes));
    if (size_bytes > 0) TUTTI_TRY(require(data, "data"));
    Ref<tensor::Buffer> buffer = tensor::Buffer::borrow(
        const_cast<void *>(data), size_bytes, [owner] {}, tensor::Buffer::Access::read_only);
    TUTTI_ASSIGN(tensor::Tensor made, tensor::Tensor::from_buffer(type, shape, std::move(buffer)));
    return emit_tensor(std::move(made), false, out);
  });
}

int32_t tutti_tensor_take_dlpack(DLManagedTensorVersioned *managed, tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(managed, "managed"));
    // from_dlpack owns `managed` from here on, whatever comes of it.
    Result<tensor::Tensor> made = tensor::from_dlpack(managed);
    TUTTI_TRY(clear(out, "out"));
    if (!made.ok()) return made.status();
    return emit_tensor(made.take(), false, out);
  });
}

int32_t tutti_tensor_to_dlpack(tutti_tensor *tensor, DLManagedTensorVersioned **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const tensor::Tensor source, find_tensor(tensor, "tensor"));
    TUTTI_ASSIGN(*out, tensor::to_dlpack(source));
    return Status();
  });
}

TUTTI_DEFINE_COUNTING(tensor, tensor_handles)

int32_t tutti_tensor_get_dtype(const tutti_tensor *tensor) {
  return from_tensor<int32_t>(tensor, 0, [](const tensor::Tensor &t) { return static_cast<int32_t>(t.dtype()); });
}

int64_t tutti_tensor_get_rank(const tutti_tensor *tensor) {
  return from_tensor<int64_t>(tensor, -1, [](const tensor::Tensor &t) { return t.rank(); });
}

int64_t tutti_tensor_get_dim(const tutti_tensor *tensor, int64_t axis) {
  return from_tensor<int64_t>(tensor, -1, [axis](const tensor::Tensor &t) -> int64_t {
    return axis >= 0 && axis < t.rank() ? t.shape()[static_cast<int32_t>(axis)] : -1;
  });
}

int64_t tutti_tensor_get_element_count(const tutti_tensor *tensor) {
  return from_tensor<int64_t>(tensor, -1, [](const tensor::Tensor &t) { return t.elements(); });
}

int64_t tutti_tensor_get_size_bytes(const tutti_tensor *tensor) {
  return from_tensor<int64_t>(tensor, -1, [](const tensor::Tensor &t) { return t.size_bytes(); });
}

const void *tutti_tensor_get_data(const tutti_tensor *tensor) {
  return from_tensor<const void *>(
      tensor, nullptr, [](const tensor::Tensor &t) -> const void * { return t.elements() > 0 ? t.data() : nullptr; });
}

const void *tutti_tensor_get_element_data(const tutti_tensor *tensor, int64_t index) {
  const std::optional<std::string_view> element = element_of(tensor, index);
  return element ? element->data() : nullptr;
}

int64_t tutti_tensor_get_element_size(const tutti_tensor *tensor, int64_t index) {
  const std::optional<std::string_view> element = element_of(tensor, index);
  return element ? static_cast<int64_t>(element->size()) : -1;
}

int32_t tutti_tensor_get_mutable_data(tutti_tensor *tensor, void **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<TensorObject> object, find(tensor, tensor_handles, "tensor"));
    if (!object->writable())
      return base::failed_precondition("the tensor's memory is borrowed or shared with the library; copy it to write");
    *out = object->tensor().mutable_data();
    return Status();
  });
}
