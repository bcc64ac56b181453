// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/tpu_cluster.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

constexpr std::string_view kScheme = "grpc://";
constexpr size_t kLongestMetadata = 1 << 20;

/// "2,2,1" -> 4.
Result<int32_t> product_of_bounds(std::string_view key, std::string_view text) {
  int64_t product = 1;
  for (const std::string &part : base::split(text, ',')) {
    const auto bound = base::parse_integer(base::trim(part));
    if (!bound || *bound < 1 || *bound > 4096 || product * *bound > 1 << 20)
      return base::invalid_argument(key, " is ", base::quoted(text), ", expected bounds such as \"2,2,1\"");
    product *= *bound;
  }
  return static_cast<int32_t>(product);
}

Result<int64_t> number_of(std::string_view key, std::string_view text) {
  const auto number = base::parse_integer(text);
  if (number) return *number;
  return base::invalid_argument(key, " is ", base::quoted(text), ", expected a whole number");
}

/// The port of one of several processes on a machine: each has the next one.
std::vector<std::string> with_ports(const std::vector<std::string> &hosts, int64_t port) {
  std::map<std::string, int64_t> next;
  std::vector<std::string> addresses;
  for (const std::string &host : hosts)
    addresses.push_back(with_port(host, port + next[host]++));
  return addresses;
}

/// "host:8476" -> "host"; an IPv6 address may have brackets.
std::string without_port(std::string_view address) {
  const size_t colon = address.rfind(':');
  const bool is_bare_ipv6 = !address.starts_with('[') && address.find(':') != colon;
  const bool ends_with_host = colon == std::string_view::npos || is_bare_ipv6 || address.ends_with(']');
  return std::string(ends_with_host ? address : address.substr(0, colon));
}

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string &part : base::split(text, ','))
    parts.emplace_back(base::trim(part));
  return parts;
}

/// The number of this worker among so many, by a key or variable that only several need.
Result<int32_t> index_among(size_t count, std::string_view key, std::optional<std::string_view> text) {
  if (!text && count == 1) return 0;
  if (!text) return base::invalid_argument("there are ", count, " workers, but ", key, " is not set");
  TUTTI_ASSIGN(const int64_t index, number_of(key, *text));
  if (index < 0 || index >= static_cast<int64_t>(count))
    return base::invalid_argument(key, " is ", index, ", expected 0 to ", count - 1, ": there are ", count, " workers");
  return static_cast<int32_t>(index);
}

std::optional<std::string_view> value_of(const Cluster::Variables &variables, const char *key) {
  const char *const text = variables(key);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

// ---- metadata ----

using MetadataValues = std::map<std::string, std::string, std::less<>>;

/// "KEY: 'value'", "KEY=value".
Status read_line(std::string_view line, int64_t number, MetadataValues &values) {
  const size_t cut = line.find_first_of(":=");
  const std::string_view key = base::trim(line.substr(0, cut));
  if (cut == std::string_view::npos || key.empty())
    return base::invalid_argument("line ", number, " of the metadata is ", base::quoted(line),
                                  ", expected a key and a value such as WORKER_ID: '0'");
  std::string_view value = base::trim(line.substr(cut + 1));
  const bool is_quoted = value.size() >= 2 && (value.front() == '\'' || value.front() == '"');
  if (is_quoted && value.back() == value.front()) value = value.substr(1, value.size() - 2);
  values.insert_or_assign(std::string(key), std::string(value));
  return Status();
}

Result<MetadataValues> read_metadata(std::string_view text) {
  if (text.size() > kLongestMetadata)
    return base::invalid_argument("the metadata have ", text.size(), " bytes, expected ", kLongestMetadata, " at most");
  MetadataValues values;
  int64_t number = 0;
  for (const std::string &line : base::split(text, '\n')) {
    ++number;
    if (!base::trim(line).empty()) TUTTI_TRY(read_line(base::trim(line), number, values));
  }
  return values;
}

/// The first of these keys that is there.
std::optional<std::string_view> find(const MetadataValues &values, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto found = values.find(key); found != values.end() && !found->second.empty())
      return std::string_view(found->second);
  }
  return std::nullopt;
}

struct Accelerator {
  std::string type;
  int32_t chips_per_worker = 0;
};

Result<Accelerator> read_accelerator(const MetadataValues &values) {
  Accelerator found;
  found.type = find(values, {"ACCELERATOR_TYPE", "accelerator-type"}).value_or("");
  if (const auto bounds = find(values, {"CHIPS_PER_HOST_BOUNDS"})) {
    TUTTI_ASSIGN(found.chips_per_worker, product_of_bounds("the metadata's CHIPS_PER_HOST_BOUNDS", *bounds));
  }
  return found;
}

/// "unknown:unknown:192.0.2.2,..." or host names.
std::vector<std::string> endpoint_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string &part : listed(text)) {
    const std::vector<std::string> fields = base::split(part, ':');
    hosts.push_back(fields.size() == 3 ? fields[2] : part);
  }
  return hosts;
}

Result<std::vector<std::string>> metadata_hosts(const MetadataValues &values) {
  if (const auto endpoints = find(values, {"worker-network-endpoints"})) return endpoint_hosts(*endpoints);
  int32_t count = 1;
  if (const auto bounds = find(values, {"HOST_BOUNDS"})) {
    TUTTI_ASSIGN(count, product_of_bounds("the metadata's HOST_BOUNDS", *bounds));
  }
  if (count == 1) return std::vector<std::string>{"localhost"};
  return base::invalid_argument("the metadata's HOST_BOUNDS tell of ", count,
                                " workers, but the attribute worker-network-endpoints is missing, which lists them");
}

Result<int32_t> metadata_index(const MetadataValues &values, size_t count) {
  return index_among(count, "the metadata's WORKER_ID", find(values, {"WORKER_ID", "agent-worker-number"}));
}

// ---- what `tpu` may say ----

Result<Cluster> from_addresses(std::string_view text, const MetadataValues &values) {
  std::vector<std::string> addresses;
  for (const std::string &address : listed(text)) {
    const std::string_view bare = std::string_view(address).starts_with(kScheme)
                                      ? std::string_view(address).substr(kScheme.size())
                                      : std::string_view(address);
    addresses.emplace_back(bare);
  }
  TUTTI_ASSIGN(const Accelerator accelerator, read_accelerator(values));
  TUTTI_ASSIGN(const int32_t index, metadata_index(values, addresses.size()));
  return Cluster::of_tpus(std::move(addresses), index, "explicit", accelerator.type, accelerator.chips_per_worker);
}

Result<Cluster> from_name(std::string_view name, const MetadataValues &values) {
  if (values.empty()) {
    return base::invalid_argument(
        "the TPU ", base::quoted(name), " is a name, and its workers are in the metadata of their machines: pass ",
        "their text, or an address such as \"grpc://192.0.2.2:8470\", or \"local\" for the chips of this machine");
  }
  if (const auto own = find(values, {"NODE_ID"}); own && *own != name)
    return base::not_found("this machine belongs to the TPU ", base::quoted(*own), ", not to ", base::quoted(name),
                           ": NODE_ID of the metadata");
  TUTTI_ASSIGN(const std::vector<std::string> hosts, metadata_hosts(values));
  TUTTI_ASSIGN(const int32_t index, metadata_index(values, hosts.size()));
  TUTTI_ASSIGN(const Accelerator accelerator, read_accelerator(values));
  return Cluster::of_tpus(with_ports(hosts, kTpuPort), index, "metadata", accelerator.type,
                          accelerator.chips_per_worker);
}

}  // namespace

Result<Cluster> tpu_cluster_from_variables(const Cluster::Variables &variables) {
  const auto processes = value_of(variables, "TPU_PROCESS_ADDRESSES");
  const auto machines = value_of(variables, "TPU_WORKER_HOSTNAMES");
  std::vector<std::string> hosts;
  for (const std::string &address : listed(processes.value_or(machines.value_or(""))))
    hosts.push_back(without_port(address));
  const char *const index_key = processes ? "CLOUD_TPU_TASK_ID" : "TPU_WORKER_ID";
  TUTTI_ASSIGN(const int32_t index, index_among(hosts.size(), base::concat("the environment variable ", index_key),
                                                value_of(variables, index_key)));
  int64_t port = kTpuPort;
  if (const auto other = value_of(variables, "MASTER_PORT")) {
    TUTTI_ASSIGN(port, number_of("the environment variable MASTER_PORT", *other));
  }
  int32_t chips = 0;
  if (const auto bounds = value_of(variables, "TPU_CHIPS_PER_HOST_BOUNDS"); bounds && !processes) {
    TUTTI_ASSIGN(chips, product_of_bounds("the environment variable TPU_CHIPS_PER_HOST_BOUNDS", *bounds));
  }
  auto made = Cluster::of_tpus(with_ports(hosts, port), index, "GKE",
                               std::string(value_of(variables, "TPU_ACCELERATOR_TYPE").value_or("")), chips);
  if (made.ok()) return made;
  return made.status().wrap(base::concat(
      "the environment variable ", processes ? "TPU_PROCESS_ADDRESSES" : "TPU_WORKER_HOSTNAMES", " cannot be used"));
}

Result<Cluster> tpu_cluster(std::string_view tpu, std::string_view metadata) {
  TUTTI_ASSIGN(const MetadataValues values, read_metadata(metadata));
  if (tpu.empty())
    return base::invalid_argument(
        "no TPU is named: expected \"local\", an address such as \"grpc://192.0.2.2:8470\", or a name with metadata");
  if (tpu == "local") {
    TUTTI_ASSIGN(const Accelerator accelerator, read_accelerator(values));
    return Cluster::of_tpus({with_port("localhost", kTpuPort)}, 0, "local", accelerator.type,
                            accelerator.chips_per_worker);
  }
  if (tpu.find(':') != std::string_view::npos) return from_addresses(tpu, values);
  return from_name(tpu, values);
}

}  // namespace tutti::impl::distribute
