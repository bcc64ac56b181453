// SPDX-License-Identifier: Apache-2.0
#include "estimator/model_dir_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

namespace tutti::impl::estimator {

using base::Result;
using base::Status;

namespace {

Result<base::FileDescriptor> open_locked(const std::string &model_dir) {
  TUTTI_TRY(base::make_directories(model_dir));
  const std::string path = model_dir + "/training.lock";
  TUTTI_ASSIGN(base::FileDescriptor file, base::open_regular_file(path, O_RDWR | O_CREAT, "cannot open"));
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return base::status_from_errno(errno, base::concat("cannot lock '", path, "'"));
  return base::failed_precondition("another training run uses '", path, "'");
}

}  // namespace

Result<ModelDirLock> ModelDirLock::take(const std::string &model_dir) {
  Result<base::FileDescriptor> file = open_locked(model_dir);
  if (file.ok()) return ModelDirLock(file.take());
  return file.status().wrap(base::concat("cannot train in model_dir '", model_dir, "'"));
}

}  // namespace tutti::impl::estimator
