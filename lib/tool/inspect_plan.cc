// SPDX-License-Identifier: Apache-2.0
#include "tool/inspect_plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tutti/tutti.hpp>

namespace tutti::tool {

using json = nlohmann::ordered_json;

const char *const kInspectPlanUsage =
    "  tutti inspect plan PATH [--rows N] [--time RUNS] [--threads N] [--determinism LEVEL]\n"
    "                     [--precision PRECISION] [--json]\n"
    "      PATH          a checkpoint, or a directory of them (the newest)\n"
    "      --rows        rows of the batch that is planned for (64)\n"
    "      --time        measures every kernel: milliseconds of the fastest of so many runs\n"
    "      --threads     threads of the device (1)\n"
    "      --determinism fast, repeatable or invariant (fast)\n"
    "      --precision   f32 or bf16_where_faster (f32)\n"
    "      --json        the whole plan as JSON instead of a table\n";

namespace {

struct Request {
  std::string path;
  int64_t rows = 64;
  int64_t timed_runs = 0;
  int64_t threads = 1;
  std::string determinism = "fast";
  std::string precision = "f32";
  bool as_json = false;
};

int64_t number(const std::string &name, const std::string &text) {
  char *end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) throw UsageError{name + " takes a number, got '" + text + "'"};
  return value;
}

Request parse(const std::vector<std::string> &arguments) {
  Request request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &one = arguments[i];
    const auto value = [&]() -> const std::string & {
      if (i + 1 == arguments.size()) throw UsageError{one + " takes a value"};
      return arguments[++i];
    };
    if (one == "--rows") {
      request.rows = number(one, value());
    } else if (one == "--time") {
      request.timed_runs = number(one, value());
    } else if (one == "--threads") {
      request.threads = number(one, value());
    } else if (one == "--determinism") {
      request.determinism = value();
    } else if (one == "--precision") {
      request.precision = value();
    } else if (one == "--json") {
      request.as_json = true;
    } else if (one.compare(0, 2, "--") == 0 || !request.path.empty()) {
      throw UsageError{"unknown argument '" + one + "'"};
    } else {
      request.path = one;
    }
  }
  if (request.path.empty()) throw UsageError{"which checkpoint or model directory?"};
  return request;
}

std::string plan_of(const Request &request) {
  const Context context;
  const Strategy strategy = Strategy::one_device(context);
  Options options("predictor");
  options.set("determinism", request.determinism).set("precision", request.precision);
  options.set("threads_per_replica", request.threads);
  return Predictor(request.path, strategy, context, options).plan(request.rows, request.timed_runs);
}

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

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

void print_rows(const std::vector<Row> &rows) {
  std::array<size_t, kColumns> widths{};
  for (const Row &row : rows) {
    for (size_t i = 0; i < kColumns; ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row &row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      if (widths[i] == 0) continue;
      const std::string padding(widths[i] - row[i].size(), ' ');
      // Numbers end where their column ends.
      line += (i >= 4 ? padding + row[i] : row[i] + padding) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

void print_table(const json &plan) {
  std::vector<Row> rows = {{"node", "op", "kernel", "layout", "bytes", plan.contains("seconds") ? "ms" : ""}};
  int64_t bytes = 0;
  for (const json &kernel : plan["kernels"]) {
    rows.push_back({text_in(kernel, "node"), text_in(kernel, "op"), text_in(kernel, "kernel"),
                    text_in(kernel, "layout"), text_in(kernel, "bytes"), milliseconds(kernel)});
    bytes += kernel.value("bytes", int64_t{0});
  }
  rows.push_back({"total", "", "", "", std::to_string(bytes), milliseconds(plan)});
  std::printf("step %s, %s rows on %s, %s bytes of workspace\n", text_in(plan, "step").c_str(),
              text_in(plan, "rows").c_str(), text_in(plan, "device").c_str(), text_in(plan, "workspace_bytes").c_str());
  print_rows(rows);
}

}  // namespace

int inspect_plan(const std::vector<std::string> &arguments) {
  const Request request = parse(arguments);
  const json plan = json::parse(plan_of(request));
  if (request.as_json) {
    std::printf("%s\n", plan.dump(1).c_str());
  } else {
    print_table(plan);
  }
  return EXIT_SUCCESS;
}

}  // namespace tutti::tool
