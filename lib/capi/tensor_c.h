// SPDX-License-Identifier: Apache-2.0
//
// Tensors behind handles.
#ifndef TUTTI_CAPI_TENSOR_C_H_
#define TUTTI_CAPI_TENSOR_C_H_

#include <tutti/tensor.h>

#include <utility>
#include <vector>

#include "capi/handles.h"
#include "tensor/tensor.h"

namespace tutti::impl::capi {

class TensorObject : public base::Object {
 public:
  TensorObject(tensor::Tensor tensor, bool writable) : tensor_(std::move(tensor)), writable_(writable) {}
  const tensor::Tensor &tensor() const { return tensor_; }
  /// May the host write? Only into memory that nothing else of the library reads.
  bool writable() const { return writable_ && tensor_.buffer() && tensor_.buffer()->reference_count() == 1; }

 private:
  tensor::Tensor tensor_;
  bool writable_;
};

extern constinit HandleType<TensorObject> tensor_handles;

Status emit_tensor(tensor::Tensor tensor, bool writable, tutti_tensor **out);

/// The tensor of an argument.
Result<tensor::Tensor> find_tensor(const tutti_tensor *handle, std::string_view argument);
/// The same for something that has a name; the error says so: "component", "x".
Result<tensor::Tensor> find_tensor_of(std::string_view kind, std::string_view name, const tutti_tensor *handle,
                                      std::string_view argument);

/// A dtype number of the C interface.
Result<tensor::DType> to_dtype(int32_t number);

/// Dims as given by the host: rank and sizes checked.
Result<tensor::Shape> to_shape(const int64_t *dims, int64_t rank);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_TENSOR_C_H_
