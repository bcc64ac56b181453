// SPDX-License-Identifier: Apache-2.0
//
// Threads: one. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_LOSS_HISTORY_H_
#define TUTTI_DISTRIBUTE_TRAIN_LOSS_HISTORY_H_

#include <cstddef>
#include <vector>

namespace tutti::impl::distribute {

/// The last losses of a run, without growing.
class LossHistory {
 public:
  explicit LossHistory(size_t capacity) : values_(capacity) {}
  void clear() { count_ = 0; }
  void add(double loss) { values_[count_++ % values_.size()] = loss; }
  std::vector<double> list() const;

 private:
  std::vector<double> values_;
  size_t count_ = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_LOSS_HISTORY_H_
