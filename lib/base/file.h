// SPDX-License-Identifier: Apache-2.0
//
// Files, with errors that name the path and the system's reason, and writes that survive a crash: written aside,
// fsynced, renamed, directory fsynced. A reader sees the old file or the new one, never half of it.
//
//   TUTTI_TRY(write_file_atomically("run/manifest.json", text));
//   TUTTI_ASSIGN(MappedFile weights, MappedFile::open("run/weights.safetensors"));
//
// Files are regular ones: what is opened here never waits for the other end of a FIFO.
//
// Names that come out of files are only ever plain children of a known directory: child_path() refuses the rest.
//
// Threads: the functions may be called from any thread; an object belongs to one thread at a time, a MappedFile to
// many.
#ifndef TUTTI_BASE_FILE_H_
#define TUTTI_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti::impl::base {

/// Owns an open file descriptor (close-on-exec); -1 is none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor &operator=(FileDescriptor &&other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return number_; }

 private:
  int number_ = -1;
};

/// Opens a regular file; `flags` as those of open(2), to which close-on-exec is added. `action` begins the error, as in
/// "cannot open". INVALID_ARGUMENT, at once, where the path is a directory, FIFO, socket or device.
Result<FileDescriptor> open_regular_file(const std::string &path, int flags, std::string_view action);

/// The whole file. RESOURCE_EXHAUSTED when it is larger than `max_bytes`.
Result<std::string> read_file(const std::string &path, int64_t max_bytes = INT64_MAX);

/// Reads a file by position. Threads: read_at() may be called concurrently.
class RandomAccessFile {
 public:
  static Result<RandomAccessFile> open(const std::string &path);
  /// At most `size` bytes from `offset`; fewer only at the end of the file.
  Result<size_t> read_at(int64_t offset, void *data, size_t size) const;
  int64_t size_bytes() const { return size_bytes_; }
  const std::string &path() const { return path_; }

 private:
  RandomAccessFile(FileDescriptor file, std::string path, int64_t size_bytes)
      : file_(std::move(file)), path_(std::move(path)), size_bytes_(size_bytes) {}
  FileDescriptor file_;
  std::string path_;
  int64_t size_bytes_;
};

/// A file in memory, read-only. An empty file is legal. The file must not be cut while it is mapped.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string &path);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  const char *data() const { return static_cast<const char *>(data_); }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data(), size_}; }

 private:
  MappedFile(void *data, size_t size) : data_(data), size_(size) {}
  void *data_ = nullptr;
  size_t size_ = 0;
};

/// Writes a file aside and puts it into place at commit(); without commit() the file at `path` stays as it was.
class AtomicFile {
 public:
  /// Creates "<path>.<process>.<number>.partial".
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&) noexcept = default;
  AtomicFile &operator=(AtomicFile &&) = delete;
  /// Removes what was written aside and not committed.
  ~AtomicFile();

  Status append(const void *data, size_t size);
  Status append(std::string_view bytes) { return append(bytes.data(), bytes.size()); }
  int64_t written_bytes() const { return written_bytes_; }
  /// fsync, rename, fsync of the directory. Once, and last.
  Status commit();

 private:
  AtomicFile(FileDescriptor file, std::string path, std::string partial_path)
      : file_(std::move(file)), path_(std::move(path)), partial_path_(std::move(partial_path)) {}
  FileDescriptor file_;
  std::string path_;
  std::string partial_path_;
  int64_t written_bytes_ = 0;
  Status failure_;
};

/// Writes a file that grows at its end: event files, logs. Each append is one write; of one that fails, as on a full
/// disk, nothing stays in the file.
class AppendFile {
 public:
  static Result<AppendFile> open(const std::string &path);
  Status append(std::string_view bytes);
  /// fsync.
  Status sync();

 private:
  AppendFile(FileDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  FileDescriptor file_;
  std::string path_;
};

Status write_file_atomically(const std::string &path, std::string_view bytes);
/// Writes and fsyncs a file in place: for files inside a directory that is itself renamed when complete.
Status write_file_synced(const std::string &path, std::string_view bytes);

bool path_exists(const std::string &path);
bool is_directory(const std::string &path);
Result<int64_t> file_size_bytes(const std::string &path);
/// What tells that a file was changed, as far as the file system says.
struct FileStamp {
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;  ///< since 1970
};
Result<FileStamp> file_stamp(const std::string &path);

/// Makes a directory and its parents; existing ones are fine.
Status make_directories(const std::string &path);
/// Names in a directory without "." and "..", sorted.
Result<std::vector<std::string>> list_directory(const std::string &path);
/// Renames within one file system, replacing a file; both parent directories are fsynced.
Status rename_synced(const std::string &from, const std::string &to);
Status sync_directory(const std::string &path);
Status remove_file(const std::string &path);
/// Removes `parent`/`child` with all below it. `child` must be a plain name; symbolic links are removed, not followed.
/// NOT_FOUND when there is none.
Status remove_tree(const std::string &parent, std::string_view child);

/// A name without '/', NUL and control characters, neither empty, "." nor "..", at most 255 bytes.
bool is_plain_name(std::string_view name);
/// "directory/name"; INVALID_ARGUMENT unless is_plain_name().
Result<std::string> child_path(std::string_view directory, std::string_view name);
/// What precedes the last '/', "." when there is none; and what follows it.
std::string parent_directory(std::string_view path);
std::string base_name(std::string_view path);

/// For tests: the n-th system call of a kind from now on (1 = the next) fails once with `error_number`, in the whole
/// process. n = 0 turns it off.
enum class FileOperation : int32_t { write, sync, rename, open };
void fail_file_operation(FileOperation operation, int64_t n, int error_number);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_FILE_H_
