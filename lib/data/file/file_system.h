// SPDX-License-Identifier: Apache-2.0
//
// How sources get at files: a small interface, so that file systems other than the machine's own can be added. Paths
// are handed on as they are; one with a scheme ("store://bucket/key") belongs to the file system added for it.
//
//   TUTTI_TRY(systems->add("store", std::make_shared<StoreFileSystem>(...)));
//   TUTTI_ASSIGN(std::vector<std::string> paths, expand_paths({"store://bucket/part-*.tfrecord"}, systems.get()));
//   TUTTI_ASSIGN(Ref<const ReadableFile> file, open_file(paths[0], systems.get(), context.cancel));
//
// Interrupts: a file follows the token it was opened with. When that ends a call, nothing was read, and the same call
// goes on once the token allows it (base/cancel.h).
//
// Threads: all functions may be called from any thread, those of one object too.
#ifndef TUTTI_DATA_FILE_FILE_SYSTEM_H_
#define TUTTI_DATA_FILE_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
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
  /// What tells its contents from others that were under its path; empty when the file system does not know.
  virtual std::string version() const { return {}; }
  /// In memory or on the machine's own disks: several threads may well read at once, and no token is asked.
  virtual bool is_local() const { return false; }
  /// Fills the beginning of `target` from `offset` on and gives the number of bytes: at least one, unless the target is
  /// empty or the file ends at the offset. Fewer than asked for mean nothing.
  virtual base::Result<size_t> read_at(int64_t offset, std::span<char> target) const = 0;
  /// As read_at(), but fewer bytes only at the end of the file.
  base::Result<size_t> read_whole(int64_t offset, std::span<char> target) const;
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
  /// NOT_FOUND and the like name the path. `cancel` (null allowed) ends this call and those of the file.
  virtual base::Result<base::Ref<const ReadableFile>> open(const std::string &path,
                                                           const base::Ref<base::CancelToken> &cancel) const = 0;
  /// Whether list() works. Where it does not, paths are no patterns.
  virtual bool can_list() const { return true; }
  /// What is in a directory, ordered by name (by its bytes), each name once. `cancel` (null allowed) ends the call.
  virtual base::Result<std::vector<Entry>> list(const std::string &directory,
                                                const base::Ref<base::CancelToken> &cancel) const = 0;
  /// What tells a directory from others, by whatever links it is reached.
  virtual std::string identity(const std::string &directory) const { return directory; }
};

/// The file systems of a context, by scheme. Only grows.
class FileSystems : public base::Object {
 public:
  /// The letters, digits, "+", "-" and "." before "://"; small letters, and a letter first.
  base::Status add(const std::string &scheme, std::shared_ptr<const FileSystem> system);
  /// Null when there is none.
  std::shared_ptr<const FileSystem> find(std::string_view scheme) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FileSystem>, std::less<>> systems_;  // guarded by mutex_
};

/// The scheme of a path, "store" in "store://bucket/key"; empty for a path of the machine's own files.
std::string_view scheme_of(std::string_view path);
/// The file system that a path belongs to; `systems` may be null. UNIMPLEMENTED naming a scheme that is not there.
base::Result<std::shared_ptr<const FileSystem>> file_system_of(std::string_view path, const FileSystems *systems);
/// Opens a file of any file system; `systems` and `cancel` may be null.
base::Result<base::Ref<const ReadableFile>> open_file(const std::string &path, const FileSystems *systems = nullptr,
                                                      const base::Ref<base::CancelToken> &cancel = {});
/// The error of open_file() where there is one. A file of the machine itself is looked at, and opened only to say what
/// is wrong.
base::Status check_file(const std::string &path, const FileSystems *systems = nullptr,
                        const base::Ref<base::CancelToken> &cancel = {});
/// A file that is in memory already; `bytes` must outlive it.
base::Ref<const ReadableFile> memory_file(std::string_view bytes, std::string path);

/// The path of a name in a directory ("" = where relative paths begin).
std::string join_path(std::string_view directory, std::string_view name);
/// With the letters of ASCII as small ones: for what ends names.
std::string small_letters(std::string_view text);
/// Does the text hold a pattern: "*", "?", "[" that no backslash precedes?
bool is_pattern(std::string_view path);
/// Does a name match one part of a pattern? "*" is any text, "?" one byte, "[a-z]" and "[!a-z]" one of a set, a
/// backslash takes the special meaning from what follows. A leading dot is matched by a dot only.
bool matches_pattern(std::string_view pattern, std::string_view name);
/// Every path that is a pattern replaced by the files it matches, ordered by name; "**" as a part stands for any number
/// of directories. The others stay as they are, in their place. A name with brackets that is there as it stands
/// ("run[1]") is meant itself, unless nothing comes of it. NOT_FOUND naming a pattern that matches nothing.
/// `systems` and `cancel` may be null.
base::Result<std::vector<std::string>> expand_paths(const std::vector<std::string> &paths,
                                                    const FileSystems *systems = nullptr,
                                                    const base::Ref<base::CancelToken> &cancel = {});

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FILE_FILE_SYSTEM_H_
