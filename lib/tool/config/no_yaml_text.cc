// SPDX-License-Identifier: Apache-2.0
//
// In place of yaml_text.cc where yaml-cpp was not there when this was built.
#include <stdexcept>

#include "tool/config/yaml_text.h"

namespace tutti::tool {

ConfigNode parse_yaml(const std::string &, const std::string &origin, bool) {
  throw std::runtime_error(origin + " cannot be read: this command was built without yaml-cpp");
}

}  // namespace tutti::tool
