// SPDX-License-Identifier: Apache-2.0
//
// What steps report of themselves, loss and ok, read without keeping the device from the next step: behind the work of
// a step its report is copied to page-locked memory of the host, and who wants to know waits for that copy alone.
//
//   issue(n, report, stream)             // behind the work of step n
//   issue(n + 1, report, stream)         // the device need not have begun step n
//   wait(n, stream) -> loss, ok          // step n is done; n + 1 may be under way
//
// Where devices use the host's memory a wait is for the whole stream.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_REPORTS_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_REPORTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// The number that a scalar of state holds.
double number_at(const void *address, tensor::DType dtype);
/// What an entry of a buffer of state holds.
base::Result<tensor::Tensor> read_entry(const backend::Buffer &buffer, const backend::StateEntry &entry);

struct StepReport {
  double loss = 0;
  bool is_ok = false;
  bool has_faults = false;  ///< in the data of this contributor, which the stream tells; of several on devices
};

class StepReports {
 public:
  static constexpr int32_t kMostInFlight = 2;

  /// Makes room for the reports of so many steps; for one where the device has no memory of the host to give. Where
  /// finish is guarded it must have.
  base::Status open(const StatePlan &plan, backend::Device &device, int32_t in_flight);
  /// Steps that may be issued and not waited for.
  int32_t in_flight() const { return in_flight_; }
  /// Finish is guarded.
  bool tells_faults() const { return faults_ != nullptr; }

  /// Lets steps go on from now, whatever those before reported; nothing is under way. `report`: that arena.
  base::Status begin(backend::Buffer &report);
  base::Status issue(int64_t step, const backend::Buffer &report, backend::Stream &stream);
  /// Or the error that its work has met with on the device. Where finish is guarded nothing behind the step is waited
  /// for, and what was wrong with the data is left for the stream to tell.
  base::Result<StepReport> wait(int64_t step, backend::Stream &stream);
  /// What has been copied, of one of the last steps that were issued.
  StepReport read(int64_t step) const;

 private:
  size_t place_of(int64_t step) const { return static_cast<size_t>(step % in_flight_); }
  std::byte *copy_of(int64_t step);
  const std::byte *copy_of(int64_t step) const { return const_cast<StepReports *>(this)->copy_of(step); }

  const backend::StateEntry *loss_ = nullptr, *ok_ = nullptr;
  const backend::StateEntry *faults_ = nullptr;  // of several contributors on devices
  int64_t offset_ = 0, bytes_ = 0;               // of what is copied
  int32_t in_flight_ = 1;
  int64_t last_issued_ = -1;
  base::Status failure_;          // of the last step issued, which is not waited for yet
  std::vector<std::byte> alone_;  // of devices with the host's memory; else a piece of page_locked_ each
  backend::HostMemory page_locked_;
  std::array<backend::Event, kMostInFlight> copied_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_REPORTS_H_
