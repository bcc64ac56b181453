// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tool/documentation/completion.h"

namespace tutti::tool {

namespace {

std::vector<std::string> completed_words(const Command &command) {
  std::vector<std::string> words = command.command_names();
  for (const OptionText &option : command.text().options)
    words.push_back(option.long_name());
  return words;
}

/// A case for each command: which words it has.
void add_word_cases(const Command &command, std::string &cases) {
  if (command.text().is_hidden) return;
  cases += "    '" + command.text().path + "') echo '" + word_list(completed_words(command)) + "' ;;\n";
  for (const Command &one : command.commands())
    add_word_cases(one, cases);
}

/// A case for each option with a value that is no file: what it may be.
void add_value_cases(const Command &command, std::string &cases) {
  if (command.text().is_hidden) return;
  for (const OptionText &option : command.text().options) {
    if (option.value.empty() || takes_file(option)) continue;
    for (const std::string &name : option.all_names())
      cases += "    '" + command.text().path + " " + name + "') echo '" + word_list(option.words) + "' ;;\n";
  }
  for (const Command &one : command.commands())
    add_value_cases(one, cases);
}

/// Patterns of the paths of commands.
void add_path_patterns(const Command &command, std::string &patterns) {
  if (command.text().is_hidden) return;
  if (!command.text().path.empty()) patterns += (patterns.empty() ? "" : " | ") + ("'" + command.text().path + "'");
  for (const Command &one : command.commands())
    add_path_patterns(one, patterns);
}

// Where there is nothing to offer, files are (-o default).
constexpr char kComplete[] = R"(
_tutti() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' longer word values
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ -z $command && $word == help ]] && continue
    [[ $command == run && $word != -* && $word != [0-9]* ]] && return
    longer="${command:+$command }$word"
    _tutti_is_command "$longer" && command=$longer
  done
  if values=$(_tutti_values "$command $previous"); then
    compopt +o default 2>/dev/null
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  word=$(_tutti_words "$command")
  # A list of commands, or options where one is begun; names of files otherwise.
  if [[ $current == -* || $word != -* ]]; then
    COMPREPLY=($(compgen -W "$word" -- "$current"))
  fi
}
complete -o default -F _tutti tutti
)";

}  // namespace

std::string bash_completion(const Command &all) {
  std::string words, values, paths;
  add_word_cases(all, words);
  add_value_cases(all, values);
  add_path_patterns(all, paths);
  return "# SPDX-License-Identifier: Apache-2.0\n"
         "# Completion of tutti for bash.\n\n"
         "# Commands and options of the command \"$1\".\n"
         "_tutti_words() {\n  case $1 in\n" +
         words +
         "  esac\n}\n\n"
         "# Values of \"COMMAND OPTION\"; fails where the option takes none, or a file.\n"
         "_tutti_values() {\n  case $1 in\n" +
         values +
         "    *) return 1 ;;\n  esac\n}\n\n"
         "_tutti_is_command() {\n  case $1 in\n    " +
         paths + ") return 0 ;;\n  esac\n  return 1\n}\n" + kComplete;
}

}  // namespace tutti::tool
