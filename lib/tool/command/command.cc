// SPDX-License-Identifier: Apache-2.0
//
// The only source that sees the parser, which takes long to compile.
#include "tool/command/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using Words = std::vector<std::string>;

/// What begins like an option; single letters behind one dash are options of some commands only.
bool is_option(const std::string &word) { return word.compare(0, 2, "--") == 0; }

int64_t number_of(const std::string &option, const std::string &text, int64_t least) {
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0 || errno != 0)
    throw UsageError{option + " takes a number, got '" + text + "'"};
  if (value < least) throw UsageError{option + " takes a number above " + std::to_string(least - 1)};
  return value;
}

/// "--rows", "-h,--help": as the parser wants names.
std::string parser_names(const OptionText &text) {
  std::string names = text.names;
  names.erase(std::remove(names.begin(), names.end(), ' '), names.end());
  return names;
}

}  // namespace

std::vector<std::string> OptionText::all_names() const {
  Words all;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(", ", begin), names.size());
    all.push_back(names.substr(begin, end - begin));
    begin = end + 2;
  }
  return all;
}

std::string OptionText::long_name() const { return all_names().back(); }

Command::Command(std::string path, std::string summary) : parser_(std::make_unique<CLI::App>()) {
  text_.path = std::move(path);
  text_.summary = std::move(summary);
  // It is found before anything is parsed, in any place (asks_for_help).
  note({"-h, --help", "", "show this text"}, "");
  parser_->set_help_flag();
  // What is not known is told with its nearest match.
  parser_->allow_extras();
}

Command::~Command() = default;
Command::Command(Command &&) noexcept = default;
Command &Command::operator=(Command &&) noexcept = default;

OptionText &Command::note(OptionText text, std::string default_text) {
  text.section = section_;
  if (text.default_text.empty()) text.default_text = std::move(default_text);
  // Help stays the last one of its section.
  auto place = text_.options.end();
  if (!text_.options.empty() && section_ == text_.options.front().section) {
    place = std::find_if(text_.options.begin(), text_.options.end(),
                         [](const OptionText &option) { return option.long_name() == "--help"; });
  }
  return *text_.options.insert(place, std::move(text));
}

void Command::add_option(std::function<void(const std::string &value)> take, OptionText text) {
  const OptionText &noted = note(std::move(text), "");
  const auto take_all = [take = std::move(take)](const CLI::results_t &values) {
    for (const std::string &value : values)
      take(value);
    return true;
  };
  parser_->add_option(parser_names(noted), CLI::callback_t(take_all))
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Command::add_option(std::string &target, OptionText text) {
  if (text.default_text.empty()) text.default_text = target;
  add_option([&target](const std::string &value) { target = value; }, std::move(text));
}

void Command::add_option(int64_t &target, OptionText text, int64_t least) {
  if (text.default_text.empty() && target > 0) text.default_text = std::to_string(target);
  const std::string name = text.long_name();
  add_option([&target, name, least](const std::string &value) { target = number_of(name, value, least); },
             std::move(text));
}

void Command::add_option(std::vector<std::string> &target, OptionText text) {
  add_option([&target](const std::string &value) { target.push_back(value); }, std::move(text));
}

void Command::add_flag(bool &target, OptionText text) {
  const OptionText &noted = note(std::move(text), "");
  parser_->add_flag_callback(parser_names(noted), [&target] { target = true; })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Command::add_ignored(const std::string &name, bool has_value) {
  const auto ignore = [](const CLI::results_t &) { return true; };
  CLI::Option *option = parser_->add_option(name, CLI::callback_t(ignore));
  option->expected(has_value ? 1 : 0)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string Command::name() const { return text_.path.substr(text_.path.rfind(' ') + 1); }

std::string Command::title() const { return text_.path.empty() ? "tutti" : "tutti " + text_.path; }

std::string Command::usage() const {
  std::string line = title() + (commands_.empty() ? " [OPTION...]" : " COMMAND");
  for (const ArgumentText &argument : text_.arguments)
    line += " " + argument.name;
  return line;
}

std::vector<std::string> Command::command_names() const {
  Words names;
  for (const Command &command : commands_) {
    if (!command.text_.is_hidden) names.push_back(command.name());
  }
  return names;
}

Command::Place Command::find(const std::vector<std::string> &words) const {
  Place place{this, 0};
  while (place.words < words.size()) {
    const std::vector<Command> &among = place.command->commands_;
    const auto next = std::find_if(among.begin(), among.end(),
                                   [&](const Command &command) { return command.name() == words[place.words]; });
    if (next == among.end()) break;
    place = {&*next, place.words + 1};
  }
  return place;
}

const OptionText *Command::find_option(const std::string &name) const {
  for (const OptionText &option : text_.options) {
    const Words names = option.all_names();
    if (std::find(names.begin(), names.end(), name) != names.end()) return &option;
  }
  return nullptr;
}

/// Where the program's name is, or the "--" in front of it; the number of words where there is none of both, or the
/// command takes none.
size_t Command::program_begin(const std::vector<std::string> &words) const {
  size_t at = has_program_ ? 0 : words.size();
  while (at < words.size() && words[at] != "--" && words[at].compare(0, 1, "-") == 0) {
    const OptionText *option = find_option(words[at]);
    at += option != nullptr && !option->value.empty() ? 2 : 1;
  }
  return std::min(at, words.size());
}

bool Command::asks_for_help(const std::vector<std::string> &words) const {
  return std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(program_begin(words)),
                     [](const std::string &word) { return word == "--help" || word == "-h"; });
}

void Command::refuse_word(const std::string &word) const {
  Words names;
  for (const OptionText &option : text_.options)
    names.push_back(option.long_name());
  const std::string option = word.substr(0, word.find('='));
  throw UsageError{"unknown argument '" + word + "'" + (is_option(word) ? did_you_mean(option, names) : "")};
}

/// The words that are left of a command line, without "--", behind which nothing is an option.
std::vector<std::string> Command::without_options(const std::vector<std::string> &left) const {
  Words words;
  bool may_be_option = true;
  for (const std::string &word : left) {
    if (may_be_option && word == "--") {
      may_be_option = false;
      continue;
    }
    if (may_be_option && is_option(word)) refuse_word(word);
    words.push_back(word);
  }
  return words;
}

std::vector<std::string> Command::parse(const std::vector<std::string> &words) const {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(program_begin(words));
  Words reversed(words.begin(), begin);
  // The parser would end there, and say nothing.
  if (std::find(reversed.begin(), reversed.end(), "++") != reversed.end()) refuse_word("++");
  std::reverse(reversed.begin(), reversed.end());
  try {
    parser_->parse(reversed);
  } catch (const CLI::ArgumentMismatch &error) {
    const OptionText *last = words.empty() ? nullptr : find_option(words.back());
    throw UsageError{last != nullptr ? words.back() + " takes a value" : error.what()};
  } catch (const CLI::Error &error) {
    throw UsageError{error.what()};
  }
  Words rest = without_options(parser_->remaining());
  if (!has_program_) return rest;
  if (!rest.empty()) refuse_word(rest.front());
  rest.assign(begin != words.end() && *begin == "--" ? begin + 1 : begin, words.end());
  return rest;
}

void Command::refuse_command(const std::vector<std::string> &words) const {
  const Words names = command_names();
  const std::string got = words.empty() ? "" : words.front();
  if (is_option(got) || names.empty()) refuse_word(got);
  if (!text_.path.empty()) {
    throw UsageError{text_.path + " takes " + alternatives(names) +
                     (got.empty() ? "" : ", got '" + got + "'" + did_you_mean(got, names))};
  }
  if (got.empty()) throw UsageError{"no command given"};
  throw UsageError{"unknown command '" + got + "'" + did_you_mean(got, names)};
}

int Command::run(const std::vector<std::string> &words) const {
  if (!commands_.empty() && !words.empty() && !is_option(words.front())) refuse_command(words);
  const Words rest = parse(words);
  if (!run_) refuse_command(rest);
  const size_t most = text_.arguments.size();
  const bool is_list = std::any_of(text_.arguments.begin(), text_.arguments.end(), [](const ArgumentText &argument) {
    return argument.name.find("...") != std::string::npos;
  });
  if (!is_list && rest.size() > most) refuse_word(rest[most]);
  return run_(rest);
}

}  // namespace tutti::tool
