// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/text_file.h"
#include "tool/console/usage_error.h"
#include "tool/report/number_text.h"
#include "tool/report/report_page.h"
#include "tool/report/run_limits.h"

namespace tutti::tool {

namespace {

int write_report(const std::vector<std::string> &folders, const std::string &output) {
  if (folders.empty()) throw UsageError{"report needs the folder of a run"};
  const std::vector<RunRecord> runs = read_runs(folders);
  const std::string path = output.empty() ? folders.front() + "/report.html" : output;
  TextFile file(path);
  file.write(report_page(runs));
  file.close();
  std::printf("%s\n", path.c_str());
  return EXIT_SUCCESS;
}

int explain(const std::vector<std::string> &folders, bool as_json) {
  if (folders.size() != 1) throw UsageError{"explain needs the folder of one run"};
  const RunRecord run = read_run(folders.front());
  if (run.last_training().is_null())
    throw std::runtime_error("'" + run.folder +
                             "' has no training in a run.jsonl to explain: each training appends one when it ends");
  const RunLimits all = limits_of(run);
  if (as_json) {
    std::printf("%s\n", to_json(run, all).dump(1).c_str());
    return EXIT_SUCCESS;
  }
  std::printf("%s\n", all.summary.c_str());
  for (const Limit &limit : all.limits) {
    std::printf("\n%s (%s)\n  %s\n", limit.title.c_str(), name(limit.confidence), limit.explanation.c_str());
    for (const std::string &advice : limit.advice)
      std::printf("  - %s\n", advice.c_str());
  }
  return EXIT_SUCCESS;
}

constexpr const char *kFolder =
    "the folder of a run: its summary_dir, or its model_dir where that is empty, with run.jsonl and event files";

}  // namespace

Command report_command() {
  const auto output = std::make_shared<std::string>();
  Command command("report", "writes an HTML page about runs, or compares them");
  command.set_details(
      "The page is one HTML file that opens without a network. It shows loss, metrics, learning rate and speed by "
      "step, "
      "of training and evaluation; results, confusion matrices, the time of steps by device, the input pipeline by "
      "stage, memory, and options with their origin. Of several runs, curves are in one picture and tables side by "
      "side.\n\nIf the folder has a file profile.json, with what tutti_context_stop_profile gave, the page shows the "
      "time of each layer, too.");
  command.add_argument({"RUN_DIR...", kFolder});
  command.add_option(*output, {"-o, --output", "FILE", "the page", "report.html in the first folder"});
  command.set_example("tutti report runs/a runs/b -o comparison.html");
  command.set_run([output](const std::vector<std::string> &words) { return write_report(words, *output); });
  return command;
}

Command explain_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command("explain", "says what limits the speed of a run, and what to try");
  command.set_details(
      "It looks at the newest training in the record of the run: waits for input, with the stage that is slow, and for "
      "copies to devices; communication; slow devices; the host; programs that were built; small batches. Each finding "
      "comes with the figures that it is based on, and with how sure it is.");
  command.add_argument({"RUN_DIR", kFolder});
  command.add_flag(*as_json, {"--json", "", "print the same as JSON"});
  command.set_example("tutti explain runs/a");
  command.set_run([as_json](const std::vector<std::string> &words) { return explain(words, *as_json); });
  return command;
}

}  // namespace tutti::tool
