// SPDX-License-Identifier: Apache-2.0
#include "backend/plan_cache.h"

#include <cmath>
#include <utility>

#include "backend/cache_folder.h"
#include "base/file.h"
#include "base/hash/checksum.h"
#include "base/json.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kFormat = 2;
constexpr int64_t kMaximumBytes = int64_t{8} << 20;
constexpr size_t kMaximumShapes = 8192;
constexpr size_t kMaximumVersions = 8;
constexpr double kMaximumSeconds = 1e3;

Result<TimesByCandidate> parse_candidates(const JsonReader &reader) {
  TimesByCandidate times;
  TUTTI_ASSIGN(const auto members, reader.members());
  for (const auto &[name, value] : members) {
    if (value.json().is_null()) {
      times[name] = std::nullopt;
      continue;
    }
    TUTTI_ASSIGN(const std::vector<double> numbers, value.as_doubles());
    const bool good = numbers.size() == 2 && numbers[0] > 0 && numbers[0] < kMaximumSeconds && numbers[1] >= 0 &&
                      numbers[1] <= numbers[0];
    if (!good) return value.wrong("seconds");
    times[name] = RunTime{numbers[0], numbers[1]};
  }
  return times;
}

Result<TimesByShape> parse_times(const JsonReader &reader) {
  TimesByShape times;
  TUTTI_ASSIGN(const auto members, reader.members());
  if (members.size() > kMaximumShapes) return reader.wrong("fewer shapes");
  for (const auto &[shape, value] : members) {
    TUTTI_ASSIGN(times[shape], parse_candidates(value));
  }
  return times;
}

Json to_json(const TimesByShape &times) {
  JsonObject shapes;
  for (const auto &[shape, candidates] : times) {
    JsonObject one;
    for (const auto &[name, time] : candidates)
      one.emplace_back(name, time.has_value() ? Json(base::JsonArray{time->seconds, time->fixed}) : Json());
    shapes.emplace_back(shape, Json(std::move(one)));
  }
  return shapes;
}

/// The "times" of a file that is whole and of this processor.
Result<Json> read_times(const std::string &path, const std::string &processor) {
  TUTTI_ASSIGN(const std::string text, base::read_file(path, kMaximumBytes));
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  const JsonReader root(json, "plan cache");
  TUTTI_ASSIGN(const int64_t format, root.get_integer("format"));
  if (format != kFormat) return base::failed_precondition("plan cache: format is ", format, ", expected ", kFormat);
  TUTTI_ASSIGN(const std::string of, root.get_string("processor"));
  if (of != processor) return base::failed_precondition("plan cache: it was written for another processor, '", of, "'");
  TUTTI_ASSIGN(const JsonReader times, root.get("times"));
  TUTTI_ASSIGN(const int64_t checksum, root.get_integer("checksum"));
  if (checksum != static_cast<int64_t>(base::crc32c(times.json().dump()))) {
    return base::data_loss("plan cache: the checksum is wrong");
  }
  if (!times.json().is_object()) return times.wrong("object");
  return times.json();
}

}  // namespace

std::string PlanCache::path() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = fingerprint_.kind + "-";
  for (uint64_t hash = base::fnv1a64(fingerprint_.model), i = 0; i < 16; ++i, hash <<= 4)
    name += kDigits[hash >> 60];
  return base::concat(folder_, "/", name, ".json");
}

Result<TimesByShape> PlanCache::load() const {
  if (is_off() || !base::path_exists(path())) return TimesByShape();
  TUTTI_ASSIGN(const Json times, read_times(path(), fingerprint_.model));
  const Json *own = times.find(fingerprint_.version);
  if (own == nullptr) return TimesByShape();
  return parse_times(JsonReader(*own, "times"));
}

TimesByShape PlanCache::load_once(std::set<std::string> &loaded,
                                  const std::function<void(const std::string &line)> &log) const {
  if (is_off() || !loaded.insert(path()).second) return {};
  Result<TimesByShape> times = load();
  if (times.ok()) return std::move(*times);
  log(base::concat("the plan cache '", path(), "' is not used: ", times.status().message()));
  return {};
}

Status PlanCache::store(const TimesByShape &times) const {
  if (is_off()) return Status();
  TUTTI_TRY(make_private_folder(folder_));
  TimesByShape all = times;
  Json versions = JsonObject{};
  const Result<Json> before = base::path_exists(path()) ? read_times(path(), fingerprint_.model) : Json(JsonObject{});
  if (before.ok()) {
    const Result<TimesByShape> known = load();
    if (known.ok() && known->size() + times.size() <= kMaximumShapes) all.insert(known->begin(), known->end());
    if (before->size() < kMaximumVersions) versions = *before;
  }
  versions.set(fingerprint_.version, to_json(all));
  const auto checksum = static_cast<int64_t>(base::crc32c(versions.dump()));
  const Json root = JsonObject{
      {"format", kFormat}, {"processor", fingerprint_.model}, {"times", std::move(versions)}, {"checksum", checksum}};
  return base::write_file_atomically(path(), root.dump(1));
}

}  // namespace tutti::impl::backend
