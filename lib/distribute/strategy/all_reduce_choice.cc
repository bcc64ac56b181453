// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/all_reduce_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using collective::local::AllReduce;
using collective::local::LocalGroupOptions;

namespace {

constexpr std::array<std::string_view, 6> kNames = {"automatic", "device",       "host",
                                                    "ring",      "hierarchical", "reduce_to_one"};

bool are_near(const backend::DeviceDescription &a, const backend::DeviceDescription &b) {
  return a.memory == b.memory || std::ranges::find(a.reaches, b.name) != a.reaches.end() ||
         std::ranges::find(b.reaches, a.name) != b.reaches.end();
}

/// "gpu:0 gpu:1 | gpu:2"
std::string list_nodes(const std::vector<int32_t> &nodes, std::span<const backend::DeviceDescription> devices) {
  std::string text;
  const int32_t count = *std::ranges::max_element(nodes) + 1;
  for (int32_t node = 0; node < count; ++node) {
    if (node > 0) text += " |";
    for (size_t d = 0; d < nodes.size(); ++d) {
      if (nodes[d] == node) text += base::concat(text.empty() ? "" : " ", devices[d].name);
    }
  }
  return text;
}

}  // namespace

std::string_view name(AllReduceChoice choice) { return kNames[static_cast<size_t>(choice)]; }

Result<AllReduceChoice> all_reduce_choice(std::string_view text) {
  const auto found = std::ranges::find(kNames, text);
  if (found != kNames.end()) return static_cast<AllReduceChoice>(found - kNames.begin());
  return base::invalid_argument("all_reduce is ", base::quoted(text), ", expected ", base::join(kNames, ", "));
}

Status check_all_reduce(AllReduceChoice choice, backend::Level level) {
  const bool keeps_order = choice == AllReduceChoice::automatic || choice == AllReduceChoice::host ||
                           choice == AllReduceChoice::reduce_to_one;
  if (level != backend::Level::invariant || keeps_order) return Status();
  return base::invalid_argument("all_reduce is ", name(choice),
                                ", whose order of additions depends on the number of devices, which determinism ",
                                "invariant does not allow: expected automatic, host or reduce_to_one");
}

Result<std::string> group_from_environment() {
  const char *const value = secure_getenv("TUTTI_GROUP");
  const std::string group = value == nullptr ? "" : value;
  if (group.empty() || group == "staged" || group == "device") return group;
  return base::invalid_argument("the environment variable TUTTI_GROUP is ", base::quoted(group),
                                ", expected \"staged\" or \"device\"");
}

Result<ConnectionWish> connection_wish(AllReduceChoice choice, backend::Level level) {
  ConnectionWish wish;
  wish.whose = "all_reduce";
  wish.is_demanded = choice == AllReduceChoice::device;
  if (choice != AllReduceChoice::automatic && !wish.is_demanded)
    wish.may = base::unavailable("all_reduce is ", name(choice));
  if (choice == AllReduceChoice::automatic) {
    TUTTI_ASSIGN(const std::string group, group_from_environment());
    wish.is_demanded = group == "device";
    if (wish.is_demanded) wish.whose = "the environment variable TUTTI_GROUP";
    if (group == "staged") wish.may = base::unavailable("the environment variable TUTTI_GROUP is staged");
  }
  if (wish.may.ok() && level == backend::Level::invariant)
    wish.may = base::unimplemented("level invariant adds in the order of the logical replicas");
  return wish;
}

std::vector<int32_t> nodes_of(std::span<const backend::DeviceDescription> devices) {
  const auto count = static_cast<int32_t>(devices.size());
  std::vector<int32_t> nodes(devices.size(), -1);
  int32_t next = 0;
  for (size_t first = 0; first < devices.size(); ++first) {
    if (nodes[first] >= 0) continue;
    std::vector<size_t> found{first};
    nodes[first] = next;
    for (size_t i = 0; i < found.size(); ++i) {
      for (size_t other = 0; other < devices.size(); ++other) {
        if (nodes[other] >= 0 || !are_near(devices[found[i]], devices[other])) continue;
        nodes[other] = next;
        found.push_back(other);
      }
    }
    ++next;
  }
  if (next > 1 && next < count) return nodes;
  const auto size = static_cast<int32_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  for (int32_t d = 0; d < count; ++d)
    nodes[static_cast<size_t>(d)] = d / size;
  return nodes;
}

Result<LocalGroupOptions> on_host(AllReduceChoice choice, std::span<const backend::DeviceRef> devices,
                                  std::string &text) {
  LocalGroupOptions options;
  text = name(choice);
  if (choice == AllReduceChoice::ring) options.all_reduce = AllReduce::ring;
  if (choice == AllReduceChoice::reduce_to_one) options.all_reduce = AllReduce::to_one;
  if (choice != AllReduceChoice::hierarchical) return options;
  std::vector<backend::DeviceDescription> described;
  for (const backend::DeviceRef &device : devices)
    described.push_back(device->description());
  options.all_reduce = AllReduce::hierarchical;
  options.nodes = nodes_of(described);
  text += base::concat(", nodes ", list_nodes(options.nodes, described));
  return options;
}

}  // namespace tutti::impl::distribute
