// SPDX-License-Identifier: Apache-2.0
#include "tool/command/command_help.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "tool/console/name_suggestions.h"

namespace tutti::tool {

namespace {

constexpr size_t kColumns = 80, kNameIndent = 2, kTextIndent = 22;

/// Words in lines that are no longer than the terminal, each with `indent` blanks in front; the first one begins behind
/// what stands there already.
std::string wrapped(const std::string &text, size_t indent, size_t first_column) {
  std::string lines;
  size_t column = first_column;
  bool is_line_empty = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!is_line_empty && column + 1 + word.size() > kColumns) {
      lines += "\n";
      column = 0;
      is_line_empty = true;
    }
    if (is_line_empty) {
      lines += std::string(indent > column ? indent - column : 0, ' ');
      column = std::max(indent, column);
    } else {
      lines += " ";
      ++column;
    }
    lines += word;
    column += word.size();
    is_line_empty = false;
  }
  return lines + "\n";
}

/// A paragraph as it is, moved to the right.
std::string indented(const std::string &paragraph, size_t indent) {
  std::string lines;
  std::istringstream text(paragraph);
  for (std::string line; std::getline(text, line);)
    lines += std::string(indent, ' ') + line + "\n";
  return lines;
}

std::string paragraph_lines(const std::string &paragraph, size_t indent) {
  return is_verbatim(paragraph) ? indented(paragraph, indent) : wrapped(paragraph, indent, 0);
}

std::string help_options(const Command &command) {
  std::string lines;
  if (!command.text().arguments.empty()) lines += "\nArguments:\n";
  for (const ArgumentText &argument : command.text().arguments)
    lines += help_entry(argument.name, argument.description);
  for (const std::string &title : section_titles(command)) {
    lines += "\n" + title + ":\n";
    for (const OptionText &option : command.text().options) {
      if (option.section != title) continue;
      lines += help_entry(option.names + (option.value.empty() ? "" : " " + option.value), described(option));
    }
  }
  return lines;
}

std::string help_commands(const Command &command) {
  std::string lines;
  for (const Command &one : command.commands()) {
    if (one.text().is_hidden) continue;
    if (one.commands().empty()) lines += help_entry(one.text().path, one.text().summary);
    lines += help_commands(one);
  }
  return lines;
}

}  // namespace

std::string help_entry(const std::string &names, const std::string &description) {
  std::string lines = std::string(kNameIndent, ' ') + names;
  const std::vector<std::string> paragraphs = paragraphs_of(description);
  if (lines.size() + 2 > kTextIndent) lines += "\n";
  const size_t column = lines.back() == '\n' ? 0 : lines.size();
  for (size_t i = 0; i < paragraphs.size(); ++i)
    lines += i == 0 ? wrapped(paragraphs[i], kTextIndent, column) : paragraph_lines(paragraphs[i], kTextIndent);
  return lines;
}

std::vector<std::string> paragraphs_of(const std::string &text) {
  std::vector<std::string> paragraphs;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("\n\n", begin), text.size());
    paragraphs.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return paragraphs;
}

bool is_verbatim(const std::string &paragraph) { return paragraph.compare(0, 2, "  ") == 0; }

std::vector<std::string> section_titles(const Command &command) {
  std::vector<std::string> titles;
  for (const OptionText &option : command.text().options) {
    if (std::find(titles.begin(), titles.end(), option.section) == titles.end()) titles.push_back(option.section);
  }
  return titles;
}

std::string described(const OptionText &option) {
  std::string text = option.description;
  std::string more = option.words.empty() ? "" : ": " + alternatives(option.words);
  if (!option.default_text.empty()) more += " (default: " + option.default_text + ")";
  // They belong to the first paragraph, which says what the option is.
  const size_t end = std::min(text.find("\n\n"), text.size());
  return text.insert(end, more);
}

std::string help_text(const Command &command) {
  const CommandText &text = command.text();
  std::string summary = text.summary + ".";
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  std::string lines = "usage: " + command.usage() + "\n\n" + wrapped(summary, 0, 0);
  for (const std::string &paragraph : paragraphs_of(text.details))
    lines += "\n" + paragraph_lines(paragraph, 0);
  if (!command.commands().empty()) lines += "\nCommands:\n" + help_commands(command);
  lines += help_options(command);
  if (!command.commands().empty()) lines += "\n'" + command.title() + " COMMAND --help' describes one of them.\n";
  if (!text.exit_status.empty()) lines += "\n" + wrapped("The exit status is " + text.exit_status + ".", 0, 0);
  if (!text.example.empty()) lines += "\nExample:\n" + indented(text.example, kNameIndent);
  return lines;
}

}  // namespace tutti::tool
