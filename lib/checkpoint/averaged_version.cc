// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/averaged_version.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tutti::impl::checkpoint {

namespace {

class AveragedVersion : public WeightVersion {
 public:
  explicit AveragedVersion(base::Ref<WeightVersion> version) : version_(std::move(version)) {
    const std::vector<StateEntry> &all = version_->entries();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].role != StateRole::weight) continue;
      const int64_t average = version_->find(StateRole::slot, base::concat(all[i].name, "/", kAverageSlot));
      entries_.push_back(all[i]);
      sources_.push_back(average < 0 ? i : static_cast<size_t>(average));
    }
  }

  int64_t step() const override { return version_->step(); }
  const std::vector<StateEntry> &entries() const override { return entries_; }
  base::Result<tensor::Tensor> read(size_t index) const override { return version_->read(sources_[index]); }

 private:
  const base::Ref<WeightVersion> version_;
  std::vector<StateEntry> entries_;
  std::vector<size_t> sources_;  // of the version's entries
};

}  // namespace

base::Ref<WeightVersion> with_averages(base::Ref<WeightVersion> version) {
  const bool has_averages =
      version && std::ranges::any_of(version->entries(), [](const StateEntry &entry) { return entry.is_average(); });
  if (!has_averages) return version;
  return base::make_ref<AveragedVersion>(std::move(version));
}

}  // namespace tutti::impl::checkpoint
