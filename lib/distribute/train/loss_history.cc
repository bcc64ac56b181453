// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/loss_history.h"

#include <algorithm>

namespace tutti::impl::distribute {

std::vector<double> LossHistory::list() const {
  std::vector<double> losses;
  const size_t kept = std::min(count_, values_.size());
  for (size_t i = count_ - kept; i < count_; ++i)
    losses.push_back(values_[i % values_.size()]);
  return losses;
}

}  // namespace tutti::impl::distribute
