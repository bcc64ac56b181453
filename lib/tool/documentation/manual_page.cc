// SPDX-License-Identifier: Apache-2.0
#include "tool/documentation/manual_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/command/command_help.h"

namespace tutti::tool {

namespace {

const std::string kExitStatus =
    "0 when the command has done its work, 1 when it failed, 2 when its arguments are wrong";

/// Text as roff shows it letter by letter: a dash stays one that can be copied, and no line begins with a command.
std::string roff_text(const std::string &text) {
  std::string result;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\'') {
      result += "\\(aq";
    } else {
      result += c;
    }
    begins_line = c == '\n';
  }
  return result;
}

/// As an argument of a macro.
std::string roff_argument(const std::string &text) {
  std::string result = "\"";
  for (const char c : roff_text(text))
    result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

constexpr int kIndent = 4, kEntryIndent = 11;

/// A paragraph without the two blanks in front of its lines, moved to the right of the text around it.
std::string verbatim_lines(const std::string &paragraph, int indent) {
  std::string lines;
  std::istringstream text(paragraph);
  for (std::string line; std::getline(text, line);)
    lines += roff_text(line.substr(std::min<size_t>(2, line.size()))) + "\n";
  return ".RS " + std::to_string(indent) + "\n.nf\n" + lines + ".fi\n.RE\n";
}

/// `between`: the macro that stands between two paragraphs; `indent` of those that are shown as they are.
std::string roff_paragraphs(const std::string &text, const char *between, int indent) {
  std::string page;
  bool is_first = true;
  for (const std::string &paragraph : paragraphs_of(text)) {
    if (!is_first) page += std::string(between) + "\n";
    page += is_verbatim(paragraph) ? verbatim_lines(paragraph, indent) : roff_text(paragraph) + "\n";
    is_first = false;
  }
  return page;
}

std::string roff_heading(const std::string &title) { return ".SH " + roff_argument(upper(title)) + "\n"; }

/// ".TP", what it is called, and what it is. Either name may be missing.
std::string roff_entry(const std::string &name, const std::string &value, const std::string &description) {
  const std::string bold = name.empty() ? "" : "\\fB" + roff_text(name) + "\\fR";
  const std::string italic = value.empty() ? "" : "\\fI" + roff_text(value) + "\\fR";
  const std::string between = bold.empty() || italic.empty() ? "" : " ";
  return ".TP\n" + bold + between + italic + "\n" + roff_paragraphs(description, ".IP", kEntryIndent);
}

std::string roff_options(const Command &command) {
  std::string page;
  if (!command.text().arguments.empty()) page += roff_heading("Arguments");
  for (const ArgumentText &argument : command.text().arguments)
    page += roff_entry("", argument.name, argument.description);
  for (const std::string &title : section_titles(command)) {
    page += roff_heading(title);
    for (const OptionText &option : command.text().options) {
      if (option.section == title) page += roff_entry(option.names, option.value, described(option));
    }
  }
  return page;
}

std::string roff_commands(const Command &command) {
  std::string page;
  for (const Command &one : command.commands()) {
    if (one.text().is_hidden) continue;
    if (one.commands().empty()) page += roff_entry(one.title(), "", one.text().summary);
    page += roff_commands(one);
  }
  return page;
}

/// The page of the command above it, of all, and of those that it has.
std::vector<std::string> related(const Command &command, const Command &all) {
  std::vector<std::string> names;
  if (&command != &all) names.push_back(manual_name(all));
  for (const Command &group : all.commands()) {
    const std::vector<Command> &inside = group.commands();
    const bool is_inside =
        std::any_of(inside.begin(), inside.end(), [&](const Command &one) { return &one == &command; });
    if (is_inside) names.push_back(manual_name(group));
  }
  for (const Command &one : command.commands()) {
    if (!one.text().is_hidden) names.push_back(manual_name(one));
  }
  return names;
}

std::string see_also(const Command &command, const Command &all) {
  const std::vector<std::string> names = related(command, all);
  std::string page = names.empty() ? "" : roff_heading("See also");
  for (size_t i = 0; i < names.size(); ++i)
    page += ".BR " + roff_text(names[i]) + " (1)" + (i + 1 < names.size() ? "," : "") + "\n";
  return page;
}

}  // namespace

std::string manual_name(const Command &command) {
  std::string name = command.title();
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manual_page(const Command &command, const Command &all) {
  const CommandText &text = command.text();
  const std::string name = manual_name(command);
  std::string page = ".\\\" SPDX-License-Identifier: Apache-2.0\n.TH " + roff_argument(upper(name)) + " 1 \"\" " +
                     roff_argument(std::string("tutti ") + tutti_version()) + " \"User commands\"\n";
  page += roff_heading("Name") + roff_text(name) + " \\- " + roff_text(text.summary) + "\n";
  page += roff_heading("Synopsis") + "\\fB" + roff_text(command.title()) + "\\fR" +
          roff_text(command.usage().substr(command.title().size())) + "\n";
  if (!text.details.empty()) page += roff_heading("Description") + roff_paragraphs(text.details, ".PP", kIndent);
  if (!command.commands().empty()) page += roff_heading("Commands") + roff_commands(command);
  page += roff_options(command);
  page += roff_heading("Exit status") + roff_text(text.exit_status.empty() ? kExitStatus : text.exit_status) + ".\n";
  if (!text.example.empty()) page += roff_heading("Example") + verbatim_lines("  " + text.example, kIndent);
  return page + see_also(command, all);
}

}  // namespace tutti::tool
