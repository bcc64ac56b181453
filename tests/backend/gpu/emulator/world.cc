// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "nccl_folder.h"

namespace tutti_gpu_emulator {

std::string World::make_folder() { return make_nccl_folder(std::getenv("TUTTI_EMULATED_NCCL_FOLDER")); }

void World::write(const std::string &name, const char *bytes, size_t count) const {
  // Whole or absent.
  const std::string hidden = path("." + name);
  std::ofstream(hidden, std::ios::binary).write(bytes, static_cast<std::streamsize>(count));
  if (std::rename(hidden.c_str(), path(name).c_str()) != 0) std::perror("emulated NCCL");
}

bool World::all_have_reached(const char *what) const {
  for (int r = 0; r < ranks_; ++r) {
    if (access(path(std::string(what) + "." + std::to_string(r)).c_str(), F_OK) != 0) return false;
  }
  return true;
}

void World::leave(int rank) const {
  reach("left", rank);
  std::error_code ignored;
  if (all_have_reached("left")) std::filesystem::remove_all(folder_, ignored);
}

void World::give(int rank, int64_t number, const std::vector<char> &bytes) const {
  write(std::to_string(number) + "." + std::to_string(rank), bytes.data(), bytes.size());
}

std::vector<std::vector<char>> World::take(int64_t number) const {
  if (!all_have_reached(std::to_string(number).c_str())) return {};
  std::vector<std::vector<char>> all;
  for (int r = 0; r < ranks_; ++r) {
    std::ifstream file(path(std::to_string(number) + "." + std::to_string(r)), std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

void World::forget(int rank, int64_t number) const {
  (void)unlink(path(std::to_string(number) + "." + std::to_string(rank)).c_str());
}

}  // namespace tutti_gpu_emulator
