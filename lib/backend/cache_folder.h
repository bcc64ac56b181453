// SPDX-License-Identifier: Apache-2.0
//
// Where backends keep what is worth keeping between processes: times of kernels, machine code. A private folder of the
// user's.
//
// Threads: any.
#ifndef TUTTI_BACKEND_CACHE_FOLDER_H_
#define TUTTI_BACKEND_CACHE_FOLDER_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend {

/// From the backend's option "plan_cache": an absolute path, "off" = "", or "" = as the environment says.
base::Result<std::string> plan_cache_folder(std::string_view option);
/// $TUTTI_CACHE_DIR ("off" or not absolute = none), $XDG_CACHE_HOME/tutti, $HOME/.cache/tutti, or "".
std::string plan_cache_folder_from_environment();

/// Makes the folder, if it is not there, for its owner alone.
base::Status make_private_folder(const std::string &folder);
/// The file is for its owner alone from now on.
base::Status make_private_file(const std::string &path);
/// Ok where nobody but this user can have written the file.
base::Status check_private_file(const std::string &path);

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_CACHE_FOLDER_H_
