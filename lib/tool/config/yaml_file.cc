// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "tool/config/yaml_text.h"

namespace tutti::tool {

namespace {

/// More is no configuration.
constexpr uintmax_t kMostBytes = 10'000'000;

}  // namespace

ConfigNode read_yaml(const std::string &path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // A pipe is read to its end.
  if (std::filesystem::is_directory(status)) throw std::runtime_error("'" + path + "': is a directory");
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(path, error) > kMostBytes)
    throw std::runtime_error("'" + path + "': is too large for a configuration");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("'" + path + "': " + std::generic_category().message(errno));
  return parse_yaml(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

}  // namespace tutti::tool
