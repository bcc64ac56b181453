// SPDX-License-Identifier: Apache-2.0
#include "tool/report/input_advice.h"

#include <string_view>

#include "tool/report/run_record.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

/// The kind of a stage: "map #2 of 3" and "flat_map/map" are maps.
std::string stage_kind(const std::string &stage) {
  const std::string name = stage.substr(0, stage.find(" #"));
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

bool has_kind(const json &report, std::string_view kind) {
  for (const json &stage : value_at(report, {"stages"}))
    if (stage_kind(text_at(stage, {"stage"})) == kind) return true;
  return false;
}

/// Is the stage in front of a batch, so that it gets single rows?
bool is_before_batch(const json &report, const std::string &name) {
  bool has_batch = false;
  for (const json &stage : value_at(report, {"stages"})) {  // from the last transform to the sources
    const std::string kind = stage_kind(text_at(stage, {"stage"}));
    if (text_at(stage, {"stage"}) == name) return has_batch;
    has_batch = has_batch || kind == "batch" || kind == "padded_batch";
  }
  return false;
}

double threads_of(const json &report, const std::string &name) {
  for (const json &stage : value_at(report, {"stages"}))
    if (text_at(stage, {"stage"}) == name) return number_at(stage, {"threads"});
  return 0;
}

void add_map_advice(const json &report, const std::string &stage, std::vector<std::string> &advice) {
  if (threads_of(report, stage) <= 1)
    advice.push_back("let " + stage + " make several elements at a time: parallelism 0 (automatic) or a number");
  else
    advice.push_back("give the process more cores (context option threads), or make " + stage +
                     " cheaper: it has several threads already");
  if (is_before_batch(report, stage))
    advice.push_back("vectorise: put " + stage + " behind batch, where one call serves all rows of a batch");
}

}  // namespace

std::vector<std::string> input_advice(const json &report, const std::string &stage) {
  const std::string kind = stage_kind(stage);
  std::vector<std::string> advice;
  const bool is_map =
      kind == "map" || kind == "map_callback" || kind == "map_process" || kind == "filter" || kind == "flat_map";
  if (kind == "feed") {
    advice.emplace_back(
        "push faster: the pipeline waits for what the program pushes into the feed; push from more threads, or batches "
        "in place of single rows");
    return advice;
  }
  if (is_map) add_map_advice(report, stage, advice);
  if (!has_kind(report, "prefetch"))
    advice.emplace_back("end the pipeline with prefetch: the next batches are then made while a step runs");
  if (!has_kind(report, "cache") && !has_kind(report, "snapshot"))
    advice.push_back(is_map
                         ? "cache (or snapshot, in files) what " + stage + " gives, if it is the same in each pass"
                         : std::string("cache the elements if they fit into memory: later passes then read no files"));
  if (!is_map && !has_kind(report, "interleave"))
    advice.emplace_back("read several files at a time (interleave), from a faster disk or in a faster format");
  return advice;
}

std::string input_sentence(const json &report) {
  const std::string stage = text_at(report, {"limit", "stage"}), reason = text_at(report, {"limit", "reason"});
  if (stage.empty()) return "";
  if (stage == "consumer") return "The pipeline keeps up with training: " + reason + ".";
  return "Stage " + stage + " limits the pipeline: " + reason + ".";
}

}  // namespace tutti::tool
