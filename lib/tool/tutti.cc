// SPDX-License-Identifier: Apache-2.0
//
// The `tutti` command: looks into what tutti reads and wrote, predicts, and starts workers. Exit status 0 = done,
// 1 = it failed, 2 = wrong arguments.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/dataset_command.h"
#include "tool/inspect_plan.h"
#include "tool/predict_dataset.h"
#include "tool/run_workers.h"

namespace {

constexpr int kWrongArguments = 2;

void print_usage(std::FILE *to) {
  std::fprintf(to, "usage: tutti COMMAND\n\n%s%s%s%s  tutti version\n  tutti help\n",
               tutti::tool::dataset_usage().c_str(), tutti::tool::kInspectPlanUsage, tutti::tool::kPredictUsage,
               tutti::tool::kRunWorkersUsage);
}

// In any place, as people ask for it.
bool asks_for_help(const std::vector<std::string> &arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string &word) { return word == "--help" || word == "-h"; });
}

int run(const std::vector<std::string> &arguments) {
  const auto is = [&](size_t index, const char *word) { return index < arguments.size() && arguments[index] == word; };
  // What follows is another program's.
  if (is(0, "run") && !is(1, "--help") && !is(1, "-h"))
    return tutti::tool::run_workers({arguments.begin() + 1, arguments.end()});
  if (is(0, "help") || asks_for_help(arguments)) {
    print_usage(stdout);
    return EXIT_SUCCESS;
  }
  if (is(0, "inspect") && is(1, "plan")) return tutti::tool::inspect_plan({arguments.begin() + 2, arguments.end()});
  if (is(0, "dataset")) return tutti::tool::dataset_command({arguments.begin() + 1, arguments.end()});
  if (is(0, "predict")) return tutti::tool::predict_dataset({arguments.begin() + 1, arguments.end()});
  if (is(0, "version") || is(0, "--version")) {
    std::printf("%s\n", tutti_version());
    return EXIT_SUCCESS;
  }
  if (arguments.empty()) throw tutti::tool::UsageError{"no command given"};
  throw tutti::tool::UsageError{"unknown command '" + arguments[0] + "'"};
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const tutti::tool::UsageError &error) {
    std::fprintf(stderr, "tutti: %s\n", error.text.c_str());
    if (error.wants_usage) {
      std::fputc('\n', stderr);
      print_usage(stderr);
    }
    return kWrongArguments;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tutti: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
