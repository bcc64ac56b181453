// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_operations.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using tensor::DType;

cudnnDataType_t cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::i32:
      return CUDNN_DATA_INT32;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

CudnnDescriptor CudnnGraphWriter::describe(const CudnnTensor &tensor, int64_t uid) const {
  CudnnDescriptor descriptor(*cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type);
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  return descriptor;
}

CudnnValue CudnnGraphWriter::add_tensor(const CudnnTensor &tensor, int64_t uid, bool is_virtual) {
  CudnnDescriptor descriptor = describe(tensor, uid);
  if (is_virtual) descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  return part(std::move(descriptor));
}

CudnnValue CudnnGraphWriter::number(cudnnDataType_t type, int64_t uid) {
  CudnnDescriptor descriptor = describe({type, {1, 1, 1, 1}, {1, 1, 1, 1}}, uid);
  descriptor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  return part(std::move(descriptor));
}

CudnnValue CudnnGraphWriter::part(CudnnDescriptor part) {
  if (is_failed()) return nullptr;
  status_ = part.finalize();
  graph_.parts.push_back(std::move(part));
  return graph_.parts.back().pointer();
}

void CudnnGraphWriter::operation(CudnnDescriptor operation) {
  if (is_failed()) return;
  is_taken_ = operation.finalize().ok();
  graph_.operations.push_back(std::move(operation));
}

void CudnnGraphWriter::operation(cudnnBackendDescriptorType_t type, Operands operands) {
  CudnnDescriptor descriptor(*cudnn_, type);
  for (const auto &[name, value] : operands) {
    if (value != nullptr) descriptor.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
  }
  operation(std::move(descriptor));
}

void CudnnGraphWriter::pointwise(const CudnnPointwise &one, CudnnValue y) {
  CudnnDescriptor mode(*cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, one.mode);
  mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, one.computed_in);
  if (one.axis >= 0) mode.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, one.axis);
  // A mode that this version does not have is an operation that it does not take.
  if (is_failed() || !mode.finalize().ok()) {
    is_taken_ = false;
    return;
  }
  const CudnnValue pointer = mode.pointer();
  graph_.parts.push_back(std::move(mode));
  const bool has_gradients = is_gradient(one.mode);
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
            {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointer},
             {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_XDESC, one.x},
             {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC, one.b},
             {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, one.t},
             {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
}

void CudnnGraphWriter::product(CudnnValue a, CudnnValue b, CudnnValue c) {
  CudnnDescriptor arithmetic(*cudnn_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  arithmetic.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  const CudnnValue pointer = part(std::move(arithmetic));
  operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_DESC, pointer}});
}

void CudnnGraphWriter::reduce(cudnnReduceTensorOp_t mode, CudnnValue x, CudnnValue y) {
  CudnnDescriptor reduction(*cudnn_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  const CudnnValue pointer = part(std::move(reduction));
  operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
                                                           {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y},
                                                           {CUDNN_ATTR_OPERATION_REDUCTION_DESC, pointer}});
}

void CudnnGraphWriter::channel_sums(CudnnValue x, CudnnValue sums, CudnnValue squares) {
  CudnnDescriptor descriptor(*cudnn_, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  descriptor.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  descriptor.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
  descriptor.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, sums);
  descriptor.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, squares);
  operation(std::move(descriptor));
}

void CudnnGraphWriter::reshape(CudnnValue x, CudnnValue y) {
  operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
            {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
}

Result<bool> CudnnGraphWriter::finish() const {
  TUTTI_TRY(status_);
  return is_taken_;
}

}  // namespace tutti::impl::backend::cuda
