// SPDX-License-Identifier: Apache-2.0
//
// What ranks of an emulated communicator in several processes leave for each other: files in a folder, whose name is
// the unique id. As with the library, a rank whose process has ended never comes, and nobody is told.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_WORLD_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tutti_gpu_emulator {

class World {
 public:
  World(std::string folder, int ranks) : folder_(std::move(folder)), ranks_(ranks) {}
  /// A new folder, in the one that TUTTI_EMULATED_NCCL_FOLDER names, or as make_nccl_folder() has it.
  static std::string make_folder();

  /// Writes down that a rank has reached something.
  void reach(const char *what, int rank) const { write(std::string(what) + "." + std::to_string(rank), nullptr, 0); }
  bool all_have_reached(const char *what) const;

  /// The last to leave takes the folder along.
  void leave(int rank) const;

  /// What a rank brings to operation `number`.
  void give(int rank, int64_t number, const std::vector<char> &bytes) const;
  /// What all have brought, by rank; empty while some have not.
  std::vector<std::vector<char>> take(int64_t number) const;
  /// All have come to a later one.
  void forget(int rank, int64_t number) const;

 private:
  std::string path(const std::string &name) const { return folder_ + "/" + name; }
  void write(const std::string &name, const char *bytes, size_t count) const;

  const std::string folder_;
  const int ranks_;
};

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_WORLD_H_
