// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tool/documentation/completion.h"

namespace tutti::tool {

namespace {

/// In single quotes.
std::string fish_text(const std::string &text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

/// The beginning of a line about this command.
std::string line_for(const Command &command) {
  const std::string condition = command.commands().empty() ? "__tutti_in " : "__tutti_at ";
  return "complete -c tutti -n " + fish_text(condition + command.text().path);
}

/// " -s h", " -l help".
std::string switches(const OptionText &option) {
  std::string text;
  for (const std::string &name : option.all_names())
    text += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return text;
}

std::string option_line(const Command &command, const OptionText &option) {
  std::string line = line_for(command) + switches(option);
  if (!option.words.empty()) {
    line += " -x -a " + fish_text(word_list(option.words));
  } else if (!option.value.empty()) {
    line += takes_file(option) ? " -r" : " -x";
  }
  return line + " -d " + fish_text(short_description(option.description)) + "\n";
}

void add_fish_lines(const Command &command, std::string &lines) {
  if (command.text().is_hidden) return;
  for (const Command &one : command.commands()) {
    if (one.text().is_hidden) continue;
    lines +=
        line_for(command) + " -f -a " + one.name() + " -d " + fish_text(short_description(one.text().summary)) + "\n";
  }
  for (const OptionText &option : command.text().options)
    lines += option_line(command, option);
  for (const Command &one : command.commands())
    add_fish_lines(one, lines);
}

constexpr char kConditions[] = R"(# SPDX-License-Identifier: Apache-2.0
# Completion of tutti for fish.

# The words in front of the cursor that are no options, without the command's own name.
function __tutti_words
    set -l words (commandline -opc)
    string match -v -- '-*' $words[2..-1]
end

# Whether these words, and no others, stand there.
function __tutti_at
    set -l words (__tutti_words)
    test "$words" = "$argv"
end

# Whether it begins with these words.
function __tutti_in
    set -l words (__tutti_words)
    set -l begin $words[1..(count $argv)]
    test "$begin" = "$argv"
end

)";

}  // namespace

std::string fish_completion(const Command &all) {
  std::string lines;
  add_fish_lines(all, lines);
  return kConditions + lines;
}

}  // namespace tutti::tool
