// SPDX-License-Identifier: Apache-2.0
//
// How sources get at files: a small interface, so that file systems other than the machine's own can be added. Paths
// are handed on as they are; one with a scheme ("store://bucket/key") belongs to a file system registered for it, of
// which there is none yet.
//
//   TUTTI_ASSIGN(std::vector<std::string> paths, expand_paths(std::vector<std::string>{"data/part-*.tfrecord"}));
//   TUTTI_ASSIGN(Ref<const ReadableFile> file, open_file(paths[0]));
//
// Threads: all functions may be called from any thread, those of one object too.
#ifndef TUTTI_DATA_FILE_SYSTEM_H_
#define TUTTI_DATA_FILE_SYSTEM_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "tensor/buffer.h"

namespace tutti::impl::data {

/// An open file, read by position.
class ReadableFile : public base::Object {
 public:
  explicit ReadableFile(std::string path) : path_(std::move(path)) {}

  const std::string &path() const { return path_; }
  /// As it was when the file was opened.
  virtual int64_t size_bytes() const = 0;
  /// Fills `target` from `offset` on; fewer bytes only at the end of the file.
  virtual base::Result<size_t> read_at(int64_t offset, std::span<char> target) const = 0;
  /// The whole file as read-only memory: mapped where the file system can, else read.
  virtual base::Result<base::Ref<tensor::Buffer>> contents() const;

 private:
  std::string path_;
};

class FileSystem {
 public:
  struct Entry {
    std::string name;
    bool is_directory = false;
  };

  virtual ~FileSystem() = default;
  /// NOT_FOUND and the like name the path.
  virtual base::Result<base::Ref<const ReadableFile>> open(const std::string &path) const = 0;
  /// What is in a directory, ordered by name (by its bytes).
  virtual base::Result<std::vector<Entry>> list(const std::string &directory) const = 0;
};

/// The file system that a path belongs to; lives as long as the process. UNIMPLEMENTED naming an unknown scheme.
base::Result<const FileSystem *> file_system_of(std::string_view path);
base::Result<base::Ref<const ReadableFile>> open_file(const std::string &path);
/// A file that is in memory already; `bytes` must outlive it.
base::Ref<const ReadableFile> memory_file(std::string_view bytes, std::string path);

/// Does the text hold a pattern: "*", "?", "[" that no backslash precedes?
bool is_pattern(std::string_view path);
/// Does a name match one part of a pattern? "*" is any text, "?" one byte, "[a-z]" and "[!a-z]" one of a set, a
/// backslash takes the special meaning from what follows. A leading dot is matched by a dot only.
bool matches_pattern(std::string_view pattern, std::string_view name);
/// Every path that is a pattern replaced by the files it matches, ordered by name; "**" as a part stands for any number
/// of directories. The others stay as they are, in their place. NOT_FOUND naming a pattern that matches nothing.
base::Result<std::vector<std::string>> expand_paths(const std::vector<std::string> &paths);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FILE_SYSTEM_H_
