// SPDX-License-Identifier: Apache-2.0
//
// The `tutti` command: looks into what tutti reads and wrote, predicts, and starts workers. Exit status 0 = done,
// 1 = it failed, 2 = wrong arguments.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "tool/command/command_help.h"
#include "tool/command/command_list.h"
#include "tool/console/usage_error.h"

namespace {

using tutti::tool::Command;

constexpr int kWrongArguments = 2;

int run(const Command &command, const std::vector<std::string> &words) {
  if (!command.asks_for_help(words)) return command.run(words);
  std::fputs(tutti::tool::help_text(command).c_str(), stdout);
  return EXIT_SUCCESS;
}

void print_usage_error(const Command &command, const tutti::tool::UsageError &error) {
  std::fprintf(stderr, "tutti: %s\n", error.text.c_str());
  if (!error.wants_usage) return;
  const std::string title = command.title();
  std::fprintf(stderr, "\nusage: %s\n'%s --help' tells more.\n", command.usage().c_str(), title.c_str());
}

}  // namespace

int main(int argc, char **argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const Command all = tutti::tool::all_commands();
    const Command::Place place = all.find(words);
    try {
      return run(*place.command, {words.begin() + static_cast<std::ptrdiff_t>(place.words), words.end()});
    } catch (const tutti::tool::UsageError &error) {
      print_usage_error(*place.command, error);
      return kWrongArguments;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tutti: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
