// SPDX-License-Identifier: Apache-2.0
#include "tool/command/command_list.h"

#include <cstdio>
#include <cstdlib>
#include <tutti/tutti.hpp>

#include "tool/command/command_help.h"
#include "tool/console/usage_error.h"
#include "tool/documentation/documentation.h"

namespace tutti::tool {

namespace {

Command inspect_command() {
  Command command("inspect", "shows what is in trained models and checkpoints");
  command.add(inspect_checkpoint_command());
  command.add(inspect_model_command());
  command.add(inspect_plan_command());
  return command;
}

int print_version() {
  std::printf("%s\n", tutti_version());
  return EXIT_SUCCESS;
}

Command version_command() {
  Command command("version", "prints the version of the library");
  command.set_example("tutti version");
  command.set_run([](const std::vector<std::string> &) { return print_version(); });
  return command;
}

/// All others are made anew for it.
Command help_command() {
  Command command("help", "describes a command, or lists all of them");
  command.add_argument({"[COMMAND...]", "the command, as in 'tutti help dataset convert'"});
  command.set_example("tutti help dataset convert");
  command.set_run([](const std::vector<std::string> &words) {
    const Command all = all_commands();
    const Command::Place place = all.find(words);
    if (place.words < words.size()) place.command->refuse_command({words.begin() + place.words, words.end()});
    std::fputs(help_text(*place.command).c_str(), stdout);
    return EXIT_SUCCESS;
  });
  return command;
}

/// For the build.
Command documentation_command() {
  Command command("documentation", "writes manual pages and completions of shells");
  command.set_hidden();
  command.add_argument(
      {"FILE...", "tutti.1, tutti-<command>.1 of each command, tutti (bash), _tutti (zsh), tutti.fish"});
  command.set_run([](const std::vector<std::string> &paths) {
    write_documentation(all_commands(), paths);
    return EXIT_SUCCESS;
  });
  return command;
}

}  // namespace

Command all_commands() {
  Command all("", "trains models, looks into them and into datasets, predicts, and starts workers");
  all.set_details(
      "The exit status is 0 when the command has done its work, 1 when it failed, and 2 when its arguments are wrong.");
  const auto is_version = std::make_shared<bool>(false);
  all.add_flag(*is_version, {"--version", "", "print the version of the library"});
  all.set_run([is_version](const std::vector<std::string> &) {
    if (!*is_version) throw UsageError{"no command given"};
    return print_version();
  });
  for (auto make : {bench_command, compile_command, dataset_command, devices_command, evaluate_command, explain_command,
                    export_command, inspect_command, options_command, predict_command, report_command, run_command,
                    train_command, version_command, help_command, documentation_command})
    all.add(make());
  return all;
}

}  // namespace tutti::tool
