// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl/cpu_fingerprint.h"

#include <fstream>
#include <utility>

#include "backend/build_id.h"
#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

namespace {

std::string processor_model() {
  std::string text;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (std::string_view key : {"vendor_id", "cpu family", "model\t", "model name", "stepping"}) {
      if (!line.starts_with(key)) continue;
      const size_t colon = line.find(": ");
      text += (text.empty() ? "" : " / ") + (colon == std::string::npos ? line : line.substr(colon + 2));
    }
  }
  return base::concat(text, " / ", dnnl_instruction_set());
}

}  // namespace

const DeviceFingerprint &cpu_fingerprint() {
  static const auto *const made =
      new DeviceFingerprint{"cpu", processor_model(), base::concat(kBuildId, " / ", dnnl_version_text())};
  return *made;
}

PlanCache cpu_plan_cache(std::string folder) { return {std::move(folder), cpu_fingerprint()}; }

}  // namespace tutti::impl::backend::cpu
