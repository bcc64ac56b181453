// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tutti::impl::distribute {

namespace {

int64_t percent(double share) { return std::llround(100 * share); }

/// Of steps that took so many nanoseconds in all, and the slowest so many to compute.
DeviceShares device_shares_of(const StepTimes &times, const std::string &device, double total_ns,
                              int64_t most_compute_ns) {
  const double input = static_cast<double>(times.input_ns) / total_ns;
  const double compute = static_cast<double>(times.compute_ns()) / total_ns;
  const double for_others = std::max(0.0, 1 - compute - input);
  const double imbalance = std::min(for_others, static_cast<double>(most_compute_ns) / total_ns - compute);
  return {device, input, for_others - imbalance, imbalance};
}

}  // namespace

int64_t StepTimes::compute_ns() const { return std::max<int64_t>(0, total_ns - input_ns - communication_ns); }

StepTimes &StepTimes::operator+=(const StepTimes &more) {
  steps += more.steps;
  total_ns += more.total_ns;
  input_ns += more.input_ns;
  communication_ns += more.communication_ns;
  return *this;
}

void add_times(std::vector<StepTimes> &sums, std::span<const StepTimes> more) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (size_t r = 0; r < more.size(); ++r)
    sums[r] += more[r];
}

StepShares shares_of(std::span<const StepTimes> replicas, std::span<const std::string> devices, int64_t in_all) {
  StepTimes sum, slowest;
  int64_t most_compute = 0;
  for (const StepTimes &times : replicas) {
    sum += times;
    if (times.total_ns > slowest.total_ns) slowest = times;
    most_compute = std::max(most_compute, times.compute_ns());
  }
  StepShares shares;
  shares.replicas = static_cast<int64_t>(replicas.size());
  if (slowest.steps == 0 || slowest.total_ns == 0) return shares;
  shares.replicas = std::max(shares.replicas, in_all);
  const auto total = static_cast<double>(slowest.total_ns), count = static_cast<double>(replicas.size());
  double compute = 0;
  for (const StepTimes &times : replicas)
    compute += static_cast<double>(times.compute_ns()) / count;
  shares.steps = slowest.steps;
  shares.step_seconds = total * 1e-9 / static_cast<double>(slowest.steps);
  shares.compute = compute / total;
  shares.input = static_cast<double>(sum.input_ns) / count / total;
  shares.imbalance = (static_cast<double>(most_compute) - compute) / total;
  shares.communication = std::max(0.0, 1 - shares.compute - shares.input - shares.imbalance);
  for (size_t r = 0; r < std::min(replicas.size(), devices.size()); ++r)
    shares.devices.push_back(device_shares_of(replicas[r], devices[r], total, most_compute));
  return shares;
}

base::Json DeviceShares::to_json() const {
  return base::JsonObject{{"device", device}, {"utilisation", 1 - idle()},      {"idle", idle()},
                          {"input", input},   {"communication", communication}, {"imbalance", imbalance}};
}

base::Json StepShares::to_json() const {
  base::Json json = base::JsonObject{
      {"steps", steps},     {"replicas", replicas}, {"programs", programs},           {"step_seconds", step_seconds},
      {"compute", compute}, {"input", input},       {"communication", communication}, {"imbalance", imbalance}};
  if (replicas > 1) json.set("efficiency", compute);
  base::JsonArray each;
  for (const DeviceShares &one : devices)
    each.push_back(one.to_json());
  json.set("devices", std::move(each));
  return json;
}

std::string StepShares::text() const {
  std::string text = base::concat("compute ", percent(compute), " %, input ", percent(input), " %");
  if (replicas > 1)
    text += base::concat(", communication ", percent(communication), " %, imbalance ", percent(imbalance), " %");
  for (size_t d = 0; d < devices.size(); ++d)
    text += base::concat(d == 0 ? "; idle: " : ", ", devices[d].device, " ", percent(devices[d].idle()), " %");
  return text;
}

std::string StepShares::warning() const {
  if (replicas < 2 || steps == 0 || compute >= 0.5) return "";
  std::string cause;
  if (input >= communication && input >= imbalance) {
    cause =
        base::concat(percent(input), " % of their time is spent waiting for input: speed up the input pipeline, whose ",
                     "report names the limiting stage");
  } else if (communication >= imbalance) {
    cause =
        base::concat(percent(communication), " % of their time is spent on communication: use larger batches, more ",
                     "accumulation_steps or fewer devices");
  } else {
    cause = base::concat(percent(imbalance),
                         " % of their time is spent waiting for the slowest of them: use devices of equal ",
                         "speed without other load");
  }
  return base::concat(replicas, " replicas train at ", percent(compute), " % of ", replicas,
                      " times the speed of one; ", cause);
}

}  // namespace tutti::impl::distribute
