// SPDX-License-Identifier: Apache-2.0
//
// While it lives, the emulated NCCLs of this process and of those that it starts meet in a folder of their own; what
// communicators that nobody could take along have left there goes with it.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace tutti_gpu_emulator {

/// A new folder in `parent`. Where that is null: in memory if the machine has such a file system, or else in /tmp. Each
/// operation makes files and takes them away, for which a disk's file system takes longer than all the rest.
inline std::string make_nccl_folder(const char *parent) {
  if (parent == nullptr) parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  std::string name = std::string(parent) + "/tutti-nccl-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    std::fprintf(stderr, "emulated NCCL: no folder %s\n", name.c_str());
    abort();
  }
  return name;
}

}  // namespace tutti_gpu_emulator

namespace tutti::testing {

class NcclFolder {
 public:
  NcclFolder() : path_(tutti_gpu_emulator::make_nccl_folder(nullptr)) {
    setenv("TUTTI_EMULATED_NCCL_FOLDER", path_.c_str(), 1);
  }
  ~NcclFolder() { std::filesystem::remove_all(path_); }

 private:
  const std::string path_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_FOLDER_H_
