// SPDX-License-Identifier: Apache-2.0
//
// A command of the command line: what it takes, in words for people and for the parser, and what it does. Its help, its
// manual page and the completion of shells are made of the same texts (command_help.h, manual_page.h, completion.h).
//
//   auto request = std::make_shared<PlanRequest>();
//   Command command("inspect plan", "lists the kernels that compute a model");
//   command.add_argument({"PATH", "a checkpoint, or a directory of them"});
//   command.add_option(request->rows, {"--rows", "N", "rows of the batch"});
//   command.set_run([request](const std::vector<std::string> &words) { return inspect_plan(words[0], *request); });
//
// Texts are in paragraphs, with an empty line between them; one that begins with two spaces is shown as it is. In
// descriptions an option is a noun or a clause without a full stop at its end.
//
// One thread.
#ifndef TUTTI_TOOL_COMMAND_COMMAND_H_
#define TUTTI_TOOL_COMMAND_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tutti::tool {

struct ArgumentText {
  std::string name;  // "PATH"; "SOURCE..." for one or more
  std::string description;
};

struct OptionText {
  std::string names;  // "--rows", or "-h, --help"
  std::string value;  // what it takes, as "N"; "" = nothing
  std::string description;
  std::string default_text{};        // "" = none that is worth telling
  std::vector<std::string> words{};  // what its value may be, where these are few
  std::string section{};             // set by Command

  /// "--rows" and the like; the last one of `names`.
  std::string long_name() const;
  std::vector<std::string> all_names() const;
};

struct CommandText {
  std::string path;     // "dataset convert"; "" for the command that has all others
  std::string summary;  // what it does, as "converts a dataset to other files"
  std::string details;
  std::string example;
  std::string exit_status;  // "" = 0, 1 and 2, as for most
  std::vector<ArgumentText> arguments;
  std::vector<OptionText> options;
  bool is_hidden = false;  // from help, manual pages and completion
};

class Command {
 public:
  /// Gets the words that are no options; the exit status. Throws UsageError and std::exception.
  using Run = std::function<int(const std::vector<std::string> &words)>;

  Command(std::string path, std::string summary);
  ~Command();
  Command(Command &&) noexcept;
  Command &operator=(Command &&) noexcept;

  void set_details(std::string text) { text_.details = std::move(text); }
  void set_example(std::string line) { text_.example = std::move(line); }
  void set_exit_status(std::string text) { text_.exit_status = std::move(text); }
  void set_hidden() { text_.is_hidden = true; }
  void set_run(Run run) { run_ = std::move(run); }

  /// Options that follow are listed under this title.
  void begin_section(std::string title) { section_ = std::move(title); }
  void add_argument(ArgumentText text) { text_.arguments.push_back(std::move(text)); }
  /// What is behind the options is another program's: nothing there is an option of this command.
  void add_program() { has_program_ = true; }

  /// Targets hold the defaults, and live as long as the command. An option that comes twice has its last value.
  void add_option(std::string &target, OptionText text);
  /// A number, at least `least`.
  void add_option(int64_t &target, OptionText text, int64_t least = 0);
  /// For every time that the option comes.
  void add_option(std::vector<std::string> &target, OptionText text);
  /// `take` gets each value; it may throw UsageError.
  void add_option(std::function<void(const std::string &value)> take, OptionText text);
  void add_flag(bool &target, OptionText text);
  /// An option that does nothing here, and that command lines of earlier releases may have: no text tells of it.
  void add_ignored(const std::string &name, bool has_value);

  /// One of the commands that this one has; its path begins with that of this one.
  void add(Command command) { commands_.push_back(std::move(command)); }

  const CommandText &text() const { return text_; }
  const std::vector<Command> &commands() const { return commands_; }
  /// The last word of the path.
  std::string name() const;
  /// "tutti dataset convert".
  std::string title() const;
  /// "tutti dataset convert [OPTION...] SOURCE... TARGET".
  std::string usage() const;
  bool has_option(const std::string &name) const { return find_option(name) != nullptr; }
  /// Those that are not hidden.
  std::vector<std::string> command_names() const;

  /// The command that the first of the words name, as far as they do, and how many do.
  struct Place {
    const Command *command;
    size_t words;
  };
  Place find(const std::vector<std::string> &words) const;

  /// Whether --help or -h is in any place among the words, as people ask for it.
  bool asks_for_help(const std::vector<std::string> &words) const;
  /// `words`: those behind the command's name. The exit status. Throws as Run.
  int run(const std::vector<std::string> &words) const;
  /// Of a command that has others, or of one that has none: throws a UsageError, as the words name no command in it.
  [[noreturn]] void refuse_command(const std::vector<std::string> &words) const;

 private:
  OptionText &note(OptionText text, std::string default_text);
  const OptionText *find_option(const std::string &name) const;
  size_t program_begin(const std::vector<std::string> &words) const;
  std::vector<std::string> parse(const std::vector<std::string> &words) const;
  std::vector<std::string> without_options(const std::vector<std::string> &left) const;
  [[noreturn]] void refuse_word(const std::string &word) const;

  CommandText text_;
  std::string section_ = "Options";
  bool has_program_ = false;
  std::unique_ptr<CLI::App> parser_;
  Run run_;
  std::vector<Command> commands_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_COMMAND_COMMAND_H_
