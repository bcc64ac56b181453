// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_weights.h"

#include <utility>

#include "base/exceptions.h"
#include "distribute/workers/worker_agreement.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status PredictWeights::set(const base::Ref<checkpoint::WeightVersion> &version) {
  if (version == nullptr) return base::invalid_argument("set_weights needs a version");
  TUTTI_TRY(check_weights(programs_.of(0).plan, model_, *version));
  auto loaded = std::make_shared<LoadedVersion>();
  TUTTI_TRY(load(*version, *loaded));
  TUTTI_TRY(compute_derived_on_devices(*loaded));
  std::lock_guard lock(mutex_);
  current_ = std::move(loaded);
  return Status();
}

Status PredictWeights::load(const checkpoint::WeightVersion &version, LoadedVersion &loaded) {
  loaded.step = version.step();
  if (with_checksum_) {
    TUTTI_ASSIGN(loaded.checksum, checksum_of(version, model_, false));
  }
  for (int32_t device = 0; device < programs_.device_count(); ++device) {
    const KindPrograms &of = programs_.of(device);
    TUTTI_ASSIGN(std::shared_ptr<LoadedWeights> weights,
                 load_weights(of.plan, model_, version, programs_.devices()[static_cast<size_t>(device)],
                              *of.executables, programs_kept_));
    loaded.lanes.push_back(std::move(weights));
    packed_.fetch_add(1, std::memory_order_relaxed);
  }
  for (int32_t lane = programs_.device_count(); lane < pool_.lane_count(); ++lane) {
    const int32_t device = pool_.device_of(lane);
    const LoadedWeights &first = *loaded.lanes[static_cast<size_t>(device)];
    TUTTI_ASSIGN(std::shared_ptr<LoadedWeights> another,
                 make_lane(first, *programs_.of(device).executables, programs_kept_));
    loaded.lanes.push_back(std::move(another));
  }
  return Status();
}

Status PredictWeights::compute_derived_on_devices(const LoadedVersion &version) {
  if (!programs_.of(0).prepare) return Status();
  JobGroup jobs;
  jobs.add(programs_.device_count());
  for (int32_t device = 0; device < programs_.device_count(); ++device) {
    pool_.submit(device, [&, device](int32_t lane) {
      const KindPrograms &of = programs_.of(device);
      jobs.done(base::without_exceptions(
          [&] { return compute_derived(*of.prepare, *of.executables, *version.lanes[static_cast<size_t>(lane)]); }));
    });
  }
  return jobs.wait(nullptr);
}

Result<std::shared_ptr<const LoadedVersion>> PredictWeights::current() const {
  std::lock_guard lock(mutex_);
  if (current_ == nullptr) return base::failed_precondition("there are no weights to predict with: call set_weights");
  return current_;
}

}  // namespace tutti::impl::distribute
