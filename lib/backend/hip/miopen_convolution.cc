// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/miopen_convolution.h"

#include <limits>

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::ConvolutionPass;
using gpu::ConvolutionShape;
using tensor::DType;

namespace {

using Four = std::array<int64_t, 4>;

/// More are never worth a look.
constexpr size_t kMostSolutions = 16;

/// ConvDirectNaiveConvFwd, -Bwd and -Wrw of MIOpen's src/solver.cpp, where numbers once given are kept: plain loops, a
/// last resort that is slower than the kernels of gpu/.
constexpr uint64_t kFirstNaive = 85, kLastNaive = 87;

miopenDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return miopenHalf;
    case DType::bf16:
      return miopenBFloat16;
    default:
      return miopenFloat;
  }
}

/// Ok, or what MIOpen lacks: by its header dims and steps are int and groups are not dilated; a window descriptor has
/// one padding for both ends of an axis.
Status check(const ConvolutionShape &shape) {
  if (shape.dtype != DType::f32 && shape.dtype != DType::f16 && shape.dtype != DType::bf16)
    return base::unimplemented("MIOpen supports convolutions of f32, f16 and bf16, and this is ",
                               tensor::name(shape.dtype));
  if (shape.pad_before != shape.pad_after)
    return base::unimplemented("MIOpen supports only equal padding at both ends of an axis, and this needs ",
                               base::join(shape.pad_before, "x"), " before and ", base::join(shape.pad_after, "x"),
                               " after");
  const std::array<int64_t, 2> dense = {1, 1};
  if (shape.groups() > 1 && shape.dilation != dense)
    return base::unimplemented("MIOpen does not support dilation with groups, and this has ", shape.groups(),
                               " groups");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const Four kernel = {shape.filters(), shape.kernel[0], shape.kernel[1], shape.kernel[2]};
  for (const Four &dims : {shape.x, kernel, shape.y}) {
    if (dims[0] > kMost || dims[1] * dims[2] * dims[3] > kMost)
      return base::unimplemented("MIOpen supports images of less than 2^31 elements, and these are ",
                                 base::join(dims, "x"));
  }
  return Status();
}

}  // namespace

Result<MiopenConvolution> MiopenConvolution::make(const Miopen &miopen, const ConvolutionShape &shape,
                                                  ConvolutionPass pass, bool must_repeat) {
  TUTTI_TRY(check(shape));
  MiopenConvolution made(miopen);
  if (pass == ConvolutionPass::forward) {
    made.pass_ = &miopen.forward;
    made.order_ = {1, 0, 2};
  } else if (pass == ConvolutionPass::input_gradient) {
    made.pass_ = &miopen.backward_data;
    made.order_ = {2, 1, 0};
  } else {
    made.pass_ = &miopen.backward_weights;
    made.order_ = {2, 0, 1};
  }
  TUTTI_ASSIGN(made.descriptors_[0], made.tensor(shape, shape.x));
  TUTTI_ASSIGN(made.descriptors_[1],
               made.tensor(shape, {shape.filters(), shape.kernel[0], shape.kernel[1], shape.kernel[2]}));
  TUTTI_ASSIGN(made.descriptors_[2], made.tensor(shape, shape.y));
  TUTTI_TRY(made.add_window(shape, must_repeat));
  return made;
}

/// MIOpen's order of dims, whatever the memory's, is images (or filters), channels, height, width.
Result<MiopenConvolution::TensorDescriptor> MiopenConvolution::tensor(const ConvolutionShape &shape,
                                                                      const Four &dims) const {
  constexpr char kAction[] = "describing images";
  miopenTensorDescriptor_t made = nullptr;
  TUTTI_TRY(status_of(*miopen_, miopen_->miopenCreateTensorDescriptor(&made), kAction));
  TensorDescriptor descriptor(made, miopen_->miopenDestroyTensorDescriptor);
  const int images = static_cast<int>(dims[0]), height = static_cast<int>(dims[1]), width = static_cast<int>(dims[2]),
            channels = static_cast<int>(dims[3]);
  TUTTI_TRY(
      status_of(*miopen_,
                miopen_->miopenSet4dTensorDescriptorEx(made, type_of(shape.dtype), images, channels, height, width,
                                                       height * width * channels, 1, width * channels, channels),
                kAction));
  return descriptor;
}

Status MiopenConvolution::add_window(const ConvolutionShape &shape, bool must_repeat) {
  constexpr char kAction[] = "describing a convolution";
  const auto pair = [](const std::array<int64_t, 2> &values) {
    return std::array<int, 2>{static_cast<int>(values[0]), static_cast<int>(values[1])};
  };
  const auto pads = pair(shape.pad_before), stride = pair(shape.stride), dilation = pair(shape.dilation);
  miopenConvolutionDescriptor_t made = nullptr;
  TUTTI_TRY(status_of(*miopen_, miopen_->miopenCreateConvolutionDescriptor(&made), kAction));
  window_ = WindowDescriptor(made, miopen_->miopenDestroyConvolutionDescriptor);
  TUTTI_TRY(status_of(*miopen_,
                      miopen_->miopenInitConvolutionDescriptor(made, miopenConvolution, pads[0], pads[1], stride[0],
                                                               stride[1], dilation[0], dilation[1]),
                      kAction));
  if (shape.groups() > 1)
    TUTTI_TRY(
        status_of(*miopen_, miopen_->miopenSetConvolutionGroupCount(made, static_cast<int>(shape.groups())), kAction));
  if (!must_repeat) return Status();
  return status_of(*miopen_, miopen_->miopenSetConvolutionAttribute(made, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC, 1),
                   kAction);
}

Result<std::vector<MiopenSolution>> MiopenConvolution::solutions(miopenHandle_t handle, int64_t most_scratch) const {
  std::array<miopenConvSolution_t, kMostSolutions> found{};
  size_t count = 0;
  const Status asked = status_of(*miopen_,
                                 pass_->miopenGetSolution(handle, descriptor(0), descriptor(1), window_.get(),
                                                          descriptor(2), found.size(), &count, found.data()),
                                 "looking for convolutions");
  if (!asked.ok() && asked.code() != base::Code::unimplemented) return asked;
  std::vector<MiopenSolution> taken;
  for (size_t i = 0; asked.ok() && i < count && i < found.size(); ++i) {
    const miopenConvSolution_t &one = found[i];
    const bool is_naive = one.solution_id >= kFirstNaive && one.solution_id <= kLastNaive;
    if (is_naive || one.algorithm == miopenConvolutionAlgoGEMM) continue;
    if (one.workspace_size > static_cast<size_t>(most_scratch)) continue;
    taken.push_back({one.solution_id, static_cast<int64_t>(one.workspace_size)});
  }
  return taken;
}

Status MiopenConvolution::compile(miopenHandle_t handle, const MiopenSolution &solution) const {
  return status_of(
      *miopen_,
      pass_->miopenCompileSolution(handle, descriptor(0), descriptor(1), window_.get(), descriptor(2), solution.id),
      base::concat("compiling solution ", solution.id));
}

Status MiopenConvolution::issue(miopenHandle_t handle, const MiopenSolution &solution,
                                const std::array<void *, 3> &tensors, void *scratch) const {
  const bool has_scratch = solution.scratch_bytes > 0;
  return status_of(
      *miopen_,
      pass_->miopenImmediate(handle, descriptor(0), tensors[order_[0]], descriptor(1), tensors[order_[1]],
                             window_.get(), descriptor(2), tensors[order_[2]], has_scratch ? scratch : nullptr,
                             static_cast<size_t>(solution.scratch_bytes), solution.id),
      "convolving images");
}

}  // namespace tutti::impl::backend::hip
