// SPDX-License-Identifier: Apache-2.0
//
// Patterns in paths, over any file system.
#include <algorithm>
#include <utility>

#include "data/file/file_system.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;

namespace {

constexpr int kDeepestTree = 64;  // that "**" goes down

// Whether a set "[...]" at the pattern's beginning has `c`; moves the pattern behind it. A set that does not end is an
// ordinary bracket.
bool matches_set(std::string_view &pattern, char c) {
  size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool found = false;
  for (const size_t first = at; at < pattern.size() && (pattern[at] != ']' || at == first); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    const auto low = static_cast<unsigned char>(pattern[at]);
    auto high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      at += 2;
      high = static_cast<unsigned char>(pattern[at]);
    }
    const auto byte = static_cast<unsigned char>(c);
    found = found || (low <= byte && byte <= high);
  }
  if (at >= pattern.size()) {
    const bool same = pattern[0] == c;
    pattern.remove_prefix(1);
    return same;
  }
  pattern.remove_prefix(at + 1);
  return found != negated;
}

// Whether the pattern's first piece, which is no "*", matches `c`; moves the pattern behind it.
bool matches_one(std::string_view &pattern, char c) {
  if (pattern[0] == '[') return matches_set(pattern, c);
  const bool any = pattern[0] == '?';
  if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
  const bool same = pattern[0] == c;
  pattern.remove_prefix(1);
  return any || same;
}

std::string without_backslashes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain.push_back(text[i]);
  }
  return plain;
}

class Expansion {
 public:
  Expansion(const FileSystem &system, const Ref<CancelToken> &cancel) : system_(system), cancel_(cancel) {}

  // Matches parts[at..] below a directory ("" = where relative paths begin).
  Status walk(const std::string &directory, std::span<const std::string_view> parts, int depth) {
    // Names without patterns are not looked at, so directories that cannot be listed do not matter.
    std::string here = directory;
    while (parts.size() > 1 && !is_pattern(parts[0])) {
      here = join_path(here, without_backslashes(parts[0]));
      parts = parts.subspan(1);
    }
    const bool any_depth = parts[0] == "**" && parts.size() > 1;
    if (any_depth) TUTTI_TRY(walk(here, parts.subspan(1), depth));
    const Result<std::vector<FileSystem::Entry>> entries = system_.list(here.empty() ? "." : here, cancel_);
    TUTTI_TRY(base::check(cancel_.get()));
    // What is not there matches nothing.
    if (entries.code() == base::Code::not_found || entries.code() == base::Code::failed_precondition) return Status();
    TUTTI_TRY(entries);
    if (any_depth) return walk_deeper(here, *entries, parts, depth);
    // A name with brackets that is there as it stands is meant itself.
    const size_t found = found_.size();
    for (const FileSystem::Entry &entry : *entries) {
      if (entry.name == parts[0] && !matches_pattern(parts[0], entry.name)) TUTTI_TRY(take(here, entry, parts, depth));
    }
    if (found_.size() > found) return Status();
    for (const FileSystem::Entry &entry : *entries) {
      if (matches_pattern(parts[0], entry.name)) TUTTI_TRY(take(here, entry, parts, depth));
    }
    return Status();
  }

  std::vector<std::string> found() {
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

 private:
  // The entry stands for parts[0].
  Status take(const std::string &directory, const FileSystem::Entry &entry, std::span<const std::string_view> parts,
              int depth) {
    const std::string path = join_path(directory, entry.name);
    if (parts.size() > 1 && entry.is_directory) return walk(path, parts.subspan(1), depth + 1);
    if (parts.size() == 1 && !entry.is_directory) found_.push_back(path);
    return Status();
  }
  // parts[0] is "**".
  Status walk_deeper(const std::string &directory, const std::vector<FileSystem::Entry> &entries,
                     std::span<const std::string_view> parts, int depth) {
    for (const FileSystem::Entry &entry : entries) {
      const bool goes_down = entry.is_directory && entry.name[0] != '.' && depth < kDeepestTree;
      if (goes_down) TUTTI_TRY(walk(join_path(directory, entry.name), parts, depth + 1));
    }
    return Status();
  }

  const FileSystem &system_;
  const Ref<CancelToken> &cancel_;
  std::vector<std::string> found_;
};

Result<std::vector<std::string>> expand(const FileSystem &system, const std::string &pattern,
                                        const Ref<CancelToken> &cancel) {
  std::vector<std::string_view> parts;
  std::string_view left = pattern;
  const std::string_view scheme = scheme_of(pattern);
  std::string root;
  if (!scheme.empty()) root = base::concat(scheme, "://");
  left.remove_prefix(root.size());
  if (left.starts_with('/')) root += '/';
  while (!left.empty()) {
    const size_t end = std::min(left.find('/'), left.size());
    if (end > 0) parts.push_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  Expansion expansion(system, cancel);
  TUTTI_TRY(expansion.walk(root, parts, 0));
  std::vector<std::string> found = expansion.found();
  if (found.empty()) return base::not_found("no file matches the pattern ", base::quoted(pattern, 400));
  return found;
}

}  // namespace

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return base::concat(directory, directory.back() == '/' ? "" : "/", name);
}

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char &c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

bool is_pattern(std::string_view path) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\') {
      ++i;
    } else if (path[i] == '*' || path[i] == '?' || path[i] == '[') {
      return true;
    }
  }
  return false;
}

// Goes back to the last "*" only, so the time is the product of both lengths at most.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  std::string_view after_star, name_there;
  bool starred = false;
  while (!name.empty()) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      name_there = name;
      starred = true;
      continue;
    }
    std::string_view rest = pattern;
    if (!pattern.empty() && matches_one(rest, name[0])) {
      pattern = rest;
      name.remove_prefix(1);
      continue;
    }
    if (!starred) return false;
    name_there.remove_prefix(1);
    name = name_there;
    pattern = after_star;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

Result<std::vector<std::string>> expand_paths(const std::vector<std::string> &paths, const FileSystems *systems,
                                              const Ref<CancelToken> &cancel) {
  std::vector<std::string> all;
  for (const std::string &path : paths) {
    if (path.empty()) return base::invalid_argument("expected paths of files, got an empty text");
    TUTTI_ASSIGN(const std::shared_ptr<const FileSystem> system, file_system_of(path, systems));
    if (!system->can_list()) {
      all.push_back(path);
      continue;
    }
    if (!is_pattern(path)) {
      all.push_back(without_backslashes(path));
      continue;
    }
    TUTTI_ASSIGN(std::vector<std::string> found, expand(*system, path, cancel));
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  if (all.empty()) return base::invalid_argument("expected paths of files, got none");
  return all;
}

}  // namespace tutti::impl::data
