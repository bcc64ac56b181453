// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/planned_convolution.h"

#include <algorithm>
#include <chrono>

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;

namespace {

using Clock = std::chrono::steady_clock;

/// Solutions for 16 bits may add up in f32 what they store, in scratch memory as large as that.
constexpr int64_t kMostScratch = int64_t{1} << 30;

std::string name_of(const MiopenSolution &solution) { return base::concat("solution ", solution.id); }

/// The one of that name comes first, if it is there.
void move_to_front(std::vector<MiopenSolution> &solutions, const std::string &name) {
  const auto found = std::find_if(solutions.begin(), solutions.end(),
                                  [&](const MiopenSolution &solution) { return name_of(solution) == name; });
  if (found != solutions.end()) std::rotate(solutions.begin(), found, found + 1);
}

}  // namespace

Result<const MiopenSolution *> PlannedConvolution::solution_for(const Device &device, const MiopenHandle::Use &use,
                                                                gpu::AlgorithmTrials *trials) {
  return solutions_.get(device, [&]() -> Result<std::optional<MiopenSolution>> {
    const Miopen *const miopen = device->miopen(use);
    if (miopen == nullptr) return std::optional<MiopenSolution>();
    if (!convolution_) {
      TUTTI_ASSIGN(MiopenConvolution made, MiopenConvolution::make(*miopen, shape_, pass_, must_repeat_));
      convolution_ = std::move(made);
    }
    TUTTI_ASSIGN(const MiopenSolution chosen, choose(*device, use, trials));
    if (!first_) first_ = chosen;
    return std::optional<MiopenSolution>(chosen);
  });
}

Result<MiopenSolution> PlannedConvolution::choose(MiopenHandle &device, const MiopenHandle::Use &use,
                                                  gpu::AlgorithmTrials *trials) {
  TUTTI_ASSIGN(Solutions found,
               convolution_->solutions(device.handle(), first_ ? first_->scratch_bytes : kMostScratch));
  if (found.empty())
    return base::unimplemented("MIOpen has no", must_repeat_ ? " repeatable" : "",
                               " solution for a convolution: ", gpu::describe_convolution(shape_, pass_));
  const std::string what = base::concat("miopen ", device.version(), " ", gpu::describe_convolution(shape_, pass_),
                                        " within ", kMostScratch);
  const std::optional<std::string> known = first_              ? std::optional(name_of(*first_))
                                           : trials != nullptr ? trials->known(what)
                                                               : std::nullopt;
  if (known) move_to_front(found, *known);
  const bool may_try = !known && trials != nullptr && trials->may_measure();
  const auto start = Clock::now();
  TUTTI_ASSIGN(const Solutions compiled,
               compile(device.handle(), found, may_try ? gpu::AlgorithmTrials::kMostCandidates : 1));
  if (known || trials == nullptr) return compiled.front();
  trials->spend(std::chrono::duration<double>(Clock::now() - start).count());
  return compiled[fastest(device, use, what, compiled, *trials)];
}

/// The first that can be compiled, at least one of them; the first failure if none can.
Result<PlannedConvolution::Solutions> PlannedConvolution::compile(miopenHandle_t handle, const Solutions &wanted,
                                                                  size_t most) const {
  Solutions compiled;
  Status failure;
  for (const MiopenSolution &solution : wanted) {
    if (compiled.size() == most) break;
    const Status status = convolution_->compile(handle, solution);
    if (status.ok()) compiled.push_back(solution);
    if (!status.ok() && failure.ok()) failure = status;
  }
  if (compiled.empty())
    return Status(base::Code::unimplemented,
                  base::concat("MIOpen can compile no solution for a convolution (", failure.message(),
                               "): ", gpu::describe_convolution(shape_, pass_)));
  return compiled;
}

/// In the memory of a trial lie x, kernel, y, scratch memory.
size_t PlannedConvolution::fastest(MiopenHandle &device, const MiopenHandle::Use &use, const std::string &what,
                                   const Solutions &compiled, gpu::AlgorithmTrials &trials) const {
  std::vector<std::string> names;
  int64_t scratch = 0;
  for (const MiopenSolution &solution : compiled) {
    names.push_back(name_of(solution));
    scratch = std::max(scratch, solution.scratch_bytes);
  }
  const auto at =
      gpu::trial_offsets(std::array<int64_t, 4>{shape_.x_bytes(), shape_.kernel_bytes(), shape_.y_bytes(), scratch});
  return trials.fastest(what, names, at.back(), [&](size_t i, char *memory, gpuStream_t stream) -> Status {
    TUTTI_TRY(device.set_stream(use, stream));
    return convolution_->issue(device.handle(), compiled[i], {memory + at[0], memory + at[1], memory + at[2]},
                               memory + at[3]);
  });
}

Status PlannedConvolution::issue(const std::array<void *, 3> &tensors, void *scratch, hipStream_t stream) {
  TUTTI_ASSIGN(const Device device, MiopenHandle::of_current_device());
  const MiopenHandle::Use use(*device);
  TUTTI_ASSIGN(const MiopenSolution *const solution, solution_for(device, use));
  if (solution == nullptr) return base::internal_error("MIOpen cannot be used on this device");
  TUTTI_TRY(device->set_stream(use, stream));
  return convolution_->issue(device->handle(), *solution, tensors, scratch);
}

}  // namespace tutti::impl::backend::hip
