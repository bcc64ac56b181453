// SPDX-License-Identifier: Apache-2.0
//
// One training process per model_dir: an advisory lock on the file "model_dir/training.lock", held while a session is
// open. The system drops it with the process, so a killed one leaves nothing to clean up.
//
// Threads: a lock belongs to one thread at a time.
#ifndef TUTTI_ESTIMATOR_MODEL_DIR_LOCK_H_
#define TUTTI_ESTIMATOR_MODEL_DIR_LOCK_H_

#include <string>

#include "base/file.h"
#include "base/status.h"

namespace tutti::impl::estimator {

class ModelDirLock {
 public:
  /// None.
  ModelDirLock() = default;
  /// Makes the directory. FAILED_PRECONDITION when another process, or another estimator of this one, trains there.
  static base::Result<ModelDirLock> take(const std::string &model_dir);

 private:
  explicit ModelDirLock(base::FileDescriptor file) : file_(std::move(file)) {}
  base::FileDescriptor file_;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_MODEL_DIR_LOCK_H_
