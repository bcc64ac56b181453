// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tool/command/command_help.h"
#include "tool/documentation/completion.h"

namespace tutti::tool {

namespace {

/// Inside of single quotes; `special` letters get a backslash in front.
std::string zsh_text(const std::string &text, const std::string &special) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

/// "_tutti_dataset_convert".
std::string function_of(const Command &command) {
  std::string name = "_" + command.title();
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// '*--rows[rows of the batch]:N:' as _arguments takes it.
std::string specification(const OptionText &option, const std::string &name) {
  std::string text = "'*" + name + "[" + zsh_text(short_description(option.description), "[]\\") + "]";
  if (!option.value.empty()) {
    text += ":" + zsh_text(option.value, ":\\") + ":";
    text += takes_file(option) ? "_files" : option.words.empty() ? " " : "(" + word_list(option.words) + ")";
  }
  return text + "'";
}

std::string zsh_options(const Command &command) {
  std::string lines;
  for (const OptionText &option : command.text().options) {
    for (const std::string &name : option.all_names())
      lines += " \\\n    " + specification(option, name);
  }
  return lines;
}

/// Completes words of a command that has no others.
std::string leaf_function(const Command &command) {
  std::string rest = command.text().arguments.empty() ? "" : " \\\n    '*:file:_files'";
  if (command.name() == "run") rest = " \\\n    '(-)1:program:_command_names -e' \\\n    '*::argument:_normal'";
  return function_of(command) + "() {\n  _arguments" + zsh_options(command) + rest + "\n}\n\n";
}

std::string group_function(const Command &command) {
  std::string described_names, cases;
  for (const Command &one : command.commands()) {
    if (one.text().is_hidden) continue;
    described_names += "        '" + one.name() + ":" + zsh_text(one.text().summary, ":\\") + "'\n";
    cases += "        " + one.name() + ") " + function_of(one) + " ;;\n";
  }
  return function_of(command) +
         "() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a commands\n" +
         "  _arguments -C" + zsh_options(command) + " \\\n    '1: :->command' \\\n    '*:: :->rest'\n" +
         "  case $state in\n    command)\n      commands=(\n" + described_names +
         "      )\n      _describe -t commands '" + command.title() + " command' commands\n      ;;\n" +
         "    rest)\n      case $words[1] in\n" + cases + "      esac\n      ;;\n  esac\n}\n\n";
}

void add_functions(const Command &command, std::string &functions) {
  if (command.text().is_hidden) return;
  functions += command.commands().empty() ? leaf_function(command) : group_function(command);
  for (const Command &one : command.commands())
    add_functions(one, functions);
}

}  // namespace

std::string zsh_completion(const Command &all) {
  std::string functions;
  add_functions(all, functions);
  return "#compdef tutti\n# SPDX-License-Identifier: Apache-2.0\n# Completion of tutti for zsh.\n\n" + functions +
         "_tutti \"$@\"\n";
}

}  // namespace tutti::tool
