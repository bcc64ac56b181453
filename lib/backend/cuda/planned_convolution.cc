// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/planned_convolution.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/fusion/norm_sources.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::ElementAccess;
using tensor::DType;

namespace {

using Clock = std::chrono::steady_clock;

/// The answer of trials where a convolution is faster without what follows it.
constexpr const char *kApart = "apart";

int64_t count(const std::array<int64_t, 4> &dims) { return dims[0] * dims[1] * dims[2] * dims[3]; }
int64_t bytes_of(int64_t elements, DType dtype) { return elements * static_cast<int64_t>(tensor::size_bytes(dtype)); }

const std::array<int64_t, 4> &result_dims(const ConvolutionWork &work) {
  return work.pass == ConvolutionPass::forward ? work.shape.y : work.shape.x;
}

/// In the memory of a trial, one behind the other: x, kernel, y, what the tail stores, its operands, sums, scratch
/// memory; then the end.
constexpr size_t kResult = 3, kOperands = 4, kSums = kOperands + CudnnEpilogue::kMostOperands, kScratch = kSums + 1;
using TrialPlaces = std::array<int64_t, kScratch + 2>;

TrialPlaces trial_places(const ConvolutionWork &work, int64_t scratch_bytes) {
  const ConvolutionShape &shape = work.shape;
  std::array<int64_t, kScratch + 1> bytes{};
  bytes[0] = bytes_of(count(shape.x), shape.dtype);
  bytes[1] = bytes_of(count(shape.kernel), shape.dtype);
  bytes[2] = bytes_of(count(shape.y), shape.dtype);
  bytes[kScratch] = scratch_bytes;
  if (work.has_sums) bytes[kSums] = 2 * gpu::squares_at(shape.filters()) * bytes_of(1, DType::f64);
  if (!work.tail.is_empty()) bytes[kResult] = bytes_of(count(result_dims(work)), work.tail.result);
  for (size_t i = 0; i < work.tail.operands.size(); ++i) {
    const CudnnEpilogueOperand &operand = work.tail.operands[i];
    const int64_t elements = operand.access == gpu::EpilogueAccess::dense    ? count(result_dims(work))
                             : operand.access == gpu::EpilogueAccess::column ? result_dims(work)[3]
                                                                             : 1;
    bytes[kOperands + i] = bytes_of(elements, operand.dtype);
  }
  return gpu::trial_offsets(bytes);
}

/// What a plan is executed with: tensor_uids() in order.
std::vector<void *> pointers_of(const ConvolutionWork &work, const std::array<void *, 3> &tensors,
                                const std::vector<void *> &operands) {
  std::vector<void *> pointers(tensors.begin(), tensors.end());
  pointers.insert(pointers.end(), operands.begin(), operands.end());
  for (const float &number : work.tail.constants)
    pointers.push_back(const_cast<float *>(&number));
  return pointers;
}

/// As operands: what sums are stored to.
void add_sums(const ConvolutionWork &work, float *sums, std::vector<void *> &operands) {
  if (!work.has_sums) return;
  operands.push_back(sums);
  operands.push_back(sums + gpu::squares_at(work.shape.filters()));
}

/// The sums of y apart.
gpu::BatchNormWork sums_work(const ConvolutionWork &work) {
  gpu::BatchNormWork sums{};
  sums.dtype = work.shape.dtype;
  sums.parameter = sums.statistics = DType::f32;
  sums.channels = work.shape.filters();
  sums.rows = count(work.shape.y) / sums.channels;
  return sums;
}

/// A program that reads and writes what the tail does, and adds: it takes the time that the tail takes.
gpu::ElementProgram program_like(const ConvolutionWork &work) {
  const CudnnEpilogue &tail = work.tail;
  const int64_t columns = result_dims(work)[3];
  gpu::ElementProgram program{};
  program.elements = count(result_dims(work));
  program.arithmetic = gpu::Arithmetic::f32;
  program.rank = 2;
  program.dims[0] = program.elements / columns;
  program.dims[1] = columns;
  program.inputs[0] = {work.shape.dtype, ElementAccess::dense, {columns, 1}};
  program.output = {tail.result, ElementAccess::dense, {columns, 1}};
  program.input_count = static_cast<int32_t>(1 + tail.operands.size());
  program.instruction_count = std::max(program.input_count - 1, 1);
  program.instructions[0] = {gpu::ElementOp::identity, 0, 0, 0, 0};
  for (int32_t i = 1; i < program.input_count; ++i) {
    const CudnnEpilogueOperand &operand = tail.operands[static_cast<size_t>(i) - 1];
    program.inputs[i] = operand.access == gpu::EpilogueAccess::dense
                            ? gpu::ElementOperand{operand.dtype, ElementAccess::dense, {columns, 1}}
                        : operand.access == gpu::EpilogueAccess::column
                            ? gpu::ElementOperand{operand.dtype, ElementAccess::strided, {0, 1}}
                            : gpu::ElementOperand{operand.dtype, ElementAccess::scalar, {0, 0}};
    program.instructions[i - 1] = {gpu::ElementOp::add, i == 1 ? 0 : program.input_count + i - 2, i, 0, 0};
  }
  return program;
}

int64_t most_scratch(const std::vector<CudnnPlan> &plans) {
  int64_t bytes = 0;
  for (const CudnnPlan &plan : plans)
    bytes = std::max(bytes, plan.scratch_bytes());
  return bytes;
}

}  // namespace

Result<const CudnnPlan *> PlannedConvolution::plan_for(const Handles &handles, const DeviceHandles::Use &use,
                                                       gpu::AlgorithmTrials *trials) {
  return plans_.get(handles, [&]() -> Result<std::optional<CudnnPlan>> {
    const Cudnn *const cudnn = handles->cudnn(use);
    if (cudnn == nullptr) return std::optional<CudnnPlan>();
    const CudnnDevice device = handles->cudnn_device(use);
    TUTTI_ASSIGN(Plans plans, trials == nullptr ? find_plans(*cudnn, device, {1, engine_name_})
                                                : find_fastest(handles, use, *trials));
    if (plans.empty()) return std::optional<CudnnPlan>();
    CudnnPlan &plan = plans.front();
    limits_.most_scratch = std::min(limits_.most_scratch, plan.scratch_bytes());
    engine_name_ = plan.name();
    return std::optional<CudnnPlan>(std::move(plan));
  });
}

Status PlannedConvolution::issue(const gpu::Frame &frame, const std::array<void *, 3> &tensors, void *scratch,
                                 float *sums) {
  TUTTI_ASSIGN(const Handles handles, DeviceHandles::of_current_device());
  const DeviceHandles::Use use(*handles);
  TUTTI_ASSIGN(const CudnnPlan *const plan, plan_for(handles, use));
  if (plan == nullptr) return base::internal_error("cuDNN has no plan for a convolution on this device");
  TUTTI_TRY(handles->issue_cudnn_on(use, frame.stream()));
  std::vector<void *> operands;
  for (const CudnnEpilogueOperand &operand : work_.tail.operands)
    operands.push_back(const_cast<void *>(frame.input(operand.input)));
  add_sums(work_, sums, operands);
  return plan->execute(handles->cudnn_handle(), tensor_uids(work_), pointers_of(work_, tensors, operands), scratch);
}

int64_t PlannedConvolution::trial_bytes(const CudnnPlan &plan) const {
  return trial_places(work_, plan.scratch_bytes()).back();
}

Status PlannedConvolution::try_once(const CudnnPlan &plan, const Handles &handles, const DeviceHandles::Use &use,
                                    char *memory, cudaStream_t stream) const {
  TUTTI_TRY(handles->issue_cudnn_on(use, stream));
  return try_plan(plan, handles->cudnn_device(use), memory);
}

/// The plans of that name, or where there is none the best that cuDNN has.
Result<PlannedConvolution::Plans> PlannedConvolution::find_plans(const Cudnn &cudnn, const CudnnDevice &device,
                                                                 const CudnnWish &wish) {
  // What follows can be computed apart, too.
  const bool allows_fallback = !work_.is_fused();
  TUTTI_ASSIGN(Plans plans, plan_convolution(cudnn, device, work_, limits_, {wish.most, wish.name, allows_fallback}));
  if (!plans.empty() || wish.name.empty()) return plans;
  return plan_convolution(cudnn, device, work_, limits_, {wish.most, "", allows_fallback});
}

/// The fastest plan in front; none if the fastest is to do apart what follows.
Result<PlannedConvolution::Plans> PlannedConvolution::find_fastest(const Handles &handles,
                                                                   const DeviceHandles::Use &use,
                                                                   gpu::AlgorithmTrials &trials) {
  const Cudnn &cudnn = *handles->cudnn(use);
  const CudnnDevice device = handles->cudnn_device(use);
  const std::string what = base::concat("cudnn ", cudnn.cudnnGetVersion(), " ", describe(work_, limits_));
  const std::optional<std::string> known = trials.known(what);
  if (known) return *known == kApart ? Result<Plans>(Plans()) : find_plans(cudnn, device, {1, *known});
  // cuDNN compiles most graphs of several operations, which takes seconds.
  if (work_.is_fused() && !trials.may_measure()) return Plans();
  const auto start = Clock::now();
  const size_t most = trials.may_measure() ? gpu::AlgorithmTrials::kMostCandidates : 1;
  TUTTI_ASSIGN(Plans plans, find_plans(cudnn, device, {most, ""}));
  trials.spend(std::chrono::duration<double>(Clock::now() - start).count());
  if (plans.empty()) return plans;
  PlannedConvolution plain({work_.shape, work_.pass}, limits_);
  const CudnnPlan *plain_plan = nullptr;
  if (work_.is_fused() && trials.may_measure()) {
    TUTTI_ASSIGN(plain_plan, plain.plan_for(handles, use, &trials));
  }
  std::vector<std::string> names;
  for (const CudnnPlan &plan : plans)
    names.push_back(plan.name());
  if (plain_plan != nullptr) names.emplace_back(kApart);
  int64_t scratch = std::max(most_scratch(plans), plain_plan == nullptr ? 0 : plain_plan->scratch_bytes());
  if (work_.has_sums) scratch = std::max(scratch, gpu::batch_norm_scratch_bytes(sums_work(work_)));
  const size_t best = trials.fastest(
      what, names, trial_places(work_, scratch).back(), [&](size_t i, char *memory, cudaStream_t stream) -> Status {
        TUTTI_TRY(handles->issue_cudnn_on(use, stream));
        return i < plans.size() ? try_plan(plans[i], device, memory) : try_apart(*plain_plan, device, memory, stream);
      });
  if (best == plans.size()) return Plans();
  if (best > 0) std::swap(plans[0], plans[best]);
  return plans;
}

Status PlannedConvolution::try_plan(const CudnnPlan &plan, const CudnnDevice &device, char *memory) const {
  const TrialPlaces at = trial_places(work_, 0);
  std::array<void *, 3> tensors = {memory + at[0], memory + at[1], memory + at[2]};
  if (!work_.tail.is_empty()) tensors[work_.pass == ConvolutionPass::forward ? 2 : 0] = memory + at[kResult];
  std::vector<void *> operands;
  for (size_t i = 0; i < work_.tail.operands.size(); ++i)
    operands.push_back(memory + at[kOperands + i]);
  add_sums(work_, reinterpret_cast<float *>(memory + at[kSums]), operands);
  return plan.execute(device.handle, tensor_uids(work_), pointers_of(work_, tensors, operands), memory + at[kScratch]);
}

/// The convolution, then sums, or as many kernels as would do what follows.
Status PlannedConvolution::try_apart(const CudnnPlan &plain, const CudnnDevice &device, char *memory,
                                     cudaStream_t stream) const {
  const TrialPlaces at = trial_places(work_, 0);
  const std::array<void *, 3> tensors = {memory + at[0], memory + at[1], memory + at[2]};
  TUTTI_TRY(plain.execute(device.handle, tensor_uids(ConvolutionWork()), tensors, memory + at[kScratch]));
  if (work_.has_sums) {
    gpu::BatchNormWork sums = sums_work(work_);
    sums.x = tensors[2];
    sums.first = memory + at[kSums];
    sums.second = static_cast<double *>(sums.first) + sums.channels;
    sums.scratch = memory + at[kScratch];
    return gpu::status_of(gpu::launch_batch_norm_moments(sums, stream), "launching the moments of a batch");
  }
  const gpu::ElementProgram program = program_like(work_);
  gpu::ElementPlaces places = gpu::make_places(program.elements);
  gpu::place_input(places, 0, tensors[work_.pass == ConvolutionPass::forward ? 2 : 0]);
  for (size_t i = 0; i < work_.tail.operands.size(); ++i)
    gpu::place_input(places, static_cast<int32_t>(1 + i), memory + at[kOperands + i]);
  gpu::place_output(places, memory + at[kResult]);
  for (int32_t i = 0; i < work_.tail.kernels_apart; ++i)
    TUTTI_TRY(gpu::status_of(gpu::launch_elements(program, places, stream), "launching elementwise work"));
  return Status();
}

}  // namespace tutti::impl::backend::cuda
