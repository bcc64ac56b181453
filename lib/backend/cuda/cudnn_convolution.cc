// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_convolution.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// What every tensor is aligned to; memory of arenas is to 64.
constexpr int64_t kAlignment = 16;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// The attributes in which an operation differs from the others.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, kernel, y, convolution, alpha, beta;
};

constexpr OperationNames kForward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
constexpr OperationNames kInputGradient = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
constexpr OperationNames kKernelGradient = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

const OperationNames &names_of(ConvolutionPass pass) {
  return pass == ConvolutionPass::forward
             ? kForward
             : (pass == ConvolutionPass::input_gradient ? kInputGradient : kKernelGradient);
}

using Four = std::array<int64_t, 4>;

/// cuDNN's order of dims, whatever the memory's, is images (or filters), channels, height, width; this memory's is
/// images, height, width, channels.
CudnnDescriptor image_tensor(const Cudnn &cudnn, DType dtype, int64_t uid, int64_t images, int64_t height,
                             int64_t width, int64_t channels) {
  CudnnDescriptor tensor(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(dtype));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, Four{images, channels, height, width});
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, Four{height * width * channels, 1, width * channels, channels});
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  return tensor;
}

CudnnDescriptor window_descriptor(const Cudnn &cudnn, const ConvolutionShape &shape, cudnnDataType_t compute) {
  CudnnDescriptor window(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pad_before);
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pad_after);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilation);
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.stride);
  return window;
}

}  // namespace

int64_t padding_behind(int64_t input, int64_t output, int64_t window, int64_t stride, int64_t dilation,
                       int64_t pad_before) {
  const int64_t reach = (window - 1) * dilation + 1;
  const int64_t covered = (output - 1) * stride + reach;
  const int64_t least = std::max<int64_t>(covered - input - pad_before, 0);
  const bool is_even_enough = (input + 2 * pad_before - reach) / stride + 1 == output && pad_before >= least;
  return is_even_enough ? pad_before : least;
}

std::string describe(const ConvolutionShape &shape, ConvolutionPass pass, const CudnnLimits &limits) {
  static constexpr const char *kPasses[] = {"forward", "input gradient", "kernel gradient"};
  return base::concat(kPasses[static_cast<size_t>(pass)], " ", name(shape.dtype), " x ", base::join(shape.x, "x"),
                      " kernel ", base::join(shape.kernel, "x"), " y ", base::join(shape.y, "x"), " stride ",
                      base::join(shape.stride, "x"), " dilation ", base::join(shape.dilation, "x"), " pads ",
                      base::join(shape.pad_before, "x"), "+", base::join(shape.pad_after, "x"), " within ",
                      limits.most_scratch, limits.allows_tensor_cores ? " tensor cores" : "",
                      limits.must_repeat ? " repeatable" : "");
}

Result<std::vector<CudnnPlan>> plan_convolution(const Cudnn &cudnn, const CudnnDevice &device,
                                                const ConvolutionShape &shape, ConvolutionPass pass,
                                                const CudnnLimits &limits, const CudnnWish &wish) {
  const bool is_double = shape.dtype == DType::f64;
  const OperationNames &names = names_of(pass);
  std::vector<CudnnDescriptor> parts;
  parts.push_back(
      image_tensor(cudnn, shape.dtype, kConvolutionUids[0], shape.x[0], shape.x[1], shape.x[2], shape.x[3]));
  parts.push_back(image_tensor(cudnn, shape.dtype, kConvolutionUids[1], shape.kernel[3], shape.kernel[0],
                               shape.kernel[1], shape.kernel[2]));
  parts.push_back(
      image_tensor(cudnn, shape.dtype, kConvolutionUids[2], shape.y[0], shape.y[1], shape.y[2], shape.y[3]));
  parts.push_back(window_descriptor(cudnn, shape, is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  CudnnDescriptor operation(cudnn, names.operation);
  for (CudnnDescriptor &part : parts)
    TUTTI_TRY(part.finalize());
  operation.set(names.x, parts[0]);
  operation.set(names.kernel, parts[1]);
  operation.set(names.y, parts[2]);
  operation.set(names.convolution, parts[3]);
  if (is_double) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  // A combination that cuDNN does not take is no error: there are other kernels.
  if (!operation.finalize().ok()) return std::vector<CudnnPlan>();
  parts.push_back(std::move(operation));
  return CudnnPlan::find(cudnn, device, std::move(parts), limits, wish);
}

}  // namespace tutti::impl::backend::cuda
