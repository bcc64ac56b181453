// SPDX-License-Identifier: Apache-2.0
//
// While it lives, the emulated NCCLs of this process and of those that it starts meet in a folder of their own; what
// communicators that nobody could take along have left there goes with it.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace tutti::testing {

class NcclFolder {
 public:
  NcclFolder() {
    char name[] = "/tmp/tutti-nccl-XXXXXX";
    if (mkdtemp(name) == nullptr) abort();
    path_ = name;
    setenv("TUTTI_EMULATED_NCCL_FOLDER", name, 1);
  }
  ~NcclFolder() { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_
