// SPDX-License-Identifier: Apache-2.0
#include "tool/training/registry_entry.h"

#include <algorithm>

namespace tutti::tool {

const RegistryEntry *find_entry(const std::vector<std::string> &kinds, const std::string &name) {
  for (const std::string &kind : kinds) {
    for (const RegistryEntry &entry : registry_entries()) {
      if (entry.kind == kind && entry.name == name) return &entry;
    }
  }
  return nullptr;
}

std::vector<std::string> entry_names(const std::vector<std::string> &kinds) {
  std::vector<std::string> names;
  for (const std::string &kind : kinds) {
    for (const RegistryEntry &entry : registry_entries()) {
      if (entry.kind == kind && std::find(names.begin(), names.end(), entry.name) == names.end())
        names.push_back(entry.name);
    }
  }
  return names;
}

}  // namespace tutti::tool
