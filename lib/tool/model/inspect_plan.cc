// SPDX-License-Identifier: Apache-2.0
//
// Which kernels compute a trained model, in which layouts, how many bytes they touch, and how long they take.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct PlanRequest {
  std::string path;
  int64_t rows = 64;
  int64_t timed_runs = 0;
  int64_t threads = 1;
  std::string determinism = "fast";
  std::string precision = "f32";
  bool as_json = false;
};

std::string plan_of(const PlanRequest &request) {
  const Context context;
  const Strategy strategy = Strategy::one_device(context);
  Options options("predictor");
  options.set("determinism", request.determinism).set("precision", request.precision);
  options.set("threads_per_replica", request.threads);
  return Predictor(request.path, strategy, context, options).plan(request.rows, request.timed_runs);
}

std::string milliseconds(const json &object) {
  if (!object.contains("seconds")) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", object["seconds"].get<double>() * 1e3);
  return text;
}

std::string text_in(const json &kernel, const char *key) {
  const auto found = kernel.find(key);
  if (found == kernel.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

void print_table(const json &plan) {
  Table table({"node", "op", "kernel", "layout", ">bytes", plan.contains("seconds") ? ">ms" : ">"});
  int64_t bytes = 0;
  for (const json &kernel : plan["kernels"]) {
    table.add({text_in(kernel, "node"), text_in(kernel, "op"), text_in(kernel, "kernel"), text_in(kernel, "layout"),
               text_in(kernel, "bytes"), milliseconds(kernel)});
    bytes += kernel.value("bytes", int64_t{0});
  }
  table.add({"total", "", "", "", std::to_string(bytes), milliseconds(plan)});
  const std::string rows = text_in(plan, "rows"), computed = text_in(plan, "computed_rows");
  std::printf("step %s, %s rows%s on %s, %s bytes of workspace\n", text_in(plan, "step").c_str(), rows.c_str(),
              computed == rows ? "" : (", computed as " + computed + ",").c_str(), text_in(plan, "device").c_str(),
              text_in(plan, "workspace_bytes").c_str());
  table.print();
}

int inspect_plan(const PlanRequest &request) {
  const json plan = json::parse(plan_of(request));
  if (request.as_json) {
    std::printf("%s\n", plan.dump(1).c_str());
  } else {
    print_table(plan);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command inspect_plan_command() {
  const auto request = std::make_shared<PlanRequest>();
  Command command("inspect plan", "lists the kernels that compute a trained model");
  command.set_details(
      "Shown are each node's op, its kernel, the layout of its result and the bytes that it touches; with --time also "
      "how "
      "long it takes.");
  command.add_argument({"PATH", "a checkpoint, or a directory of checkpoints (the newest is used)"});
  command.add_option(request->rows, {"--rows", "N", "rows of the planned batch"});
  command.add_option(
      request->timed_runs,
      {"--time", "RUNS", "measure each kernel: milliseconds of the fastest of this many runs", "not measured"});
  command.add_option(request->threads, {"--threads", "N", "threads of the device"});
  command.add_option(
      request->determinism,
      {"--determinism", "LEVEL", "how reproducible results are", "", {"fast", "repeatable", "invariant"}});
  command.add_option(request->precision, {"--precision",
                                          "PRECISION",
                                          "type that products are computed in",
                                          "",
                                          {"f32", "bf16_where_faster", "tf32_where_faster", "f16_where_faster"}});
  command.add_flag(request->as_json, {"--json", "", "print the whole plan as JSON instead of a table"});
  command.set_example("tutti inspect plan model/ --rows 256 --time 10");
  command.set_run([request](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no checkpoint or model directory given"};
    request->path = words.front();
    return inspect_plan(*request);
  });
  return command;
}

}  // namespace tutti::tool
