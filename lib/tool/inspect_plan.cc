// SPDX-License-Identifier: Apache-2.0
#include "tool/inspect_plan.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "tool/table.h"

namespace tutti::tool {

using json = nlohmann::ordered_json;

const char *const kInspectPlanUsage =
    "  tutti inspect plan PATH [--rows N] [--time RUNS] [--threads N] [--determinism LEVEL]\n"
    "                     [--precision PRECISION] [--json]\n"
    "      PATH          a checkpoint, or a directory of checkpoints (the newest is used)\n"
    "      --rows        rows of the planned batch (64)\n"
    "      --time        times every kernel, in milliseconds: the fastest of RUNS runs\n"
    "      --threads     threads of the device (1)\n"
    "      --determinism fast, repeatable or invariant (fast)\n"
    "      --precision   f32, bf16_where_faster, tf32_where_faster or f16_where_faster (f32)\n"
    "      --json        the whole plan as JSON instead of a table\n";

namespace {

struct InspectRequest {
  std::string path;
  int64_t rows = 64;
  int64_t timed_runs = 0;
  int64_t threads = 1;
  std::string determinism = "fast";
  std::string precision = "f32";
  bool as_json = false;
};

InspectRequest parse_inspect(const std::vector<std::string> &words) {
  InspectRequest request;
  for (Arguments arguments(words); !arguments.done();) {
    const std::string word = arguments.take();
    if (word == "--rows") {
      request.rows = arguments.number_after(word);
    } else if (word == "--time") {
      request.timed_runs = arguments.number_after(word);
    } else if (word == "--threads") {
      request.threads = arguments.number_after(word);
    } else if (word == "--determinism") {
      request.determinism = arguments.value_after(word);
    } else if (word == "--precision") {
      request.precision = arguments.value_after(word);
    } else if (word == "--json") {
      request.as_json = true;
    } else if (is_option(word) || !request.path.empty()) {
      throw UsageError{"unknown argument '" + word + "'"};
    } else {
      request.path = word;
    }
  }
  if (request.path.empty()) throw UsageError{"no checkpoint or model directory given"};
  return request;
}

std::string plan_of(const InspectRequest &request) {
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

}  // namespace

int inspect_plan(const std::vector<std::string> &arguments) {
  const InspectRequest request = parse_inspect(arguments);
  const json plan = json::parse(plan_of(request));
  if (request.as_json) {
    std::printf("%s\n", plan.dump(1).c_str());
  } else {
    print_table(plan);
  }
  return EXIT_SUCCESS;
}

}  // namespace tutti::tool
