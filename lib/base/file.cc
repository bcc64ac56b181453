// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/file_system_call.h"

namespace tutti::impl::base {

namespace {

constexpr int kMostNames = 1000;

const char *kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status not_regular(const std::string &path, mode_t mode) {
  return invalid_argument(base::quoted(path, 400), " is ", kind_of(mode), ", expected a regular file")
      .with_detail("path", path);
}

Result<int64_t> size_of(const FileDescriptor &file, const std::string &path) {
  struct stat information;
  if (fstat(file.get(), &information) != 0) return file_error("cannot inspect", path);
  return static_cast<int64_t>(information.st_size);
}

Status too_large(const std::string &path, int64_t max_bytes) {
  return resource_exhausted("file ", base::quoted(path, 400), " is larger than the limit of ", max_bytes, " bytes");
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

// Without O_NONBLOCK the call waits until somebody opens the other end of a FIFO, or a device is ready.
Result<FileDescriptor> open_regular_file(const std::string &path, int flags, std::string_view action) {
  // Opening alone lets a writer of a FIFO go on, and makes some devices act.
  struct stat information;
  if (::stat(path.c_str(), &information) == 0 && !S_ISREG(information.st_mode))
    return not_regular(path, information.st_mode);
  FileDescriptor file(open_call(path, flags | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) {
    const int error_number = errno;
    const bool is_there = ::stat(path.c_str(), &information) == 0;
    if (is_there && !S_ISREG(information.st_mode)) return not_regular(path, information.st_mode);
    errno = error_number;
    // A regular file that another program holds a lease on is there after a moment.
    if (is_there && error_number == EWOULDBLOCK) file = FileDescriptor(open_call(path, flags));
    if (file.get() < 0) return file_error(action, path);
  }
  if (fstat(file.get(), &information) != 0) return file_error("cannot inspect", path);
  if (!S_ISREG(information.st_mode)) return not_regular(path, information.st_mode);
  return file;
}

Result<std::string> read_file(const std::string &path, int64_t max_bytes) {
  TUTTI_ASSIGN(const FileDescriptor file, open_regular_file(path, O_RDONLY, "cannot open"));
  TUTTI_ASSIGN(const int64_t size, size_of(file, path));
  if (size > max_bytes) return too_large(path, max_bytes);
  // One byte more than the size shows the end; files of /proc say 0 and are read piece by piece.
  std::string text(static_cast<size_t>(std::max<int64_t>(0, size)) + 1, '\0');
  size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("cannot read", path);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > static_cast<uint64_t>(max_bytes)) return too_large(path, max_bytes);
    if (used == text.size()) text.resize(std::max<size_t>(4096, text.size() * 2));
  }
  text.resize(used);
  return text;
}

Result<RandomAccessFile> RandomAccessFile::open(const std::string &path) {
  TUTTI_ASSIGN(FileDescriptor file, open_regular_file(path, O_RDONLY, "cannot open"));
  TUTTI_ASSIGN(const int64_t size, size_of(file, path));
  return RandomAccessFile(std::move(file), path, size);
}

Result<size_t> RandomAccessFile::read_at(int64_t offset, void *data, size_t size) const {
  if (offset < 0) return out_of_range("cannot read ", base::quoted(path_, 400), " at offset ", offset);
  size_t used = 0;
  while (used < size) {
    const ssize_t got = ::pread(file_.get(), static_cast<char *>(data) + used, std::min(size - used, size_t{1} << 30),
                                offset + static_cast<int64_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("cannot read", path_);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  return used;
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  TUTTI_ASSIGN(const FileDescriptor file, open_regular_file(path, O_RDONLY, "cannot open"));
  TUTTI_ASSIGN(const int64_t size, size_of(file, path));
  if (size == 0) return MappedFile(nullptr, 0);
  void *data = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return file_error("cannot map", path);
  return MappedFile(data, static_cast<size_t>(size));
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  static std::atomic<uint64_t> last_number{0};
  // Its end replaces what is there, which must be no device.
  struct stat information;
  if (::stat(path.c_str(), &information) == 0 && !S_ISREG(information.st_mode))
    return not_regular(path, information.st_mode);
  for (int attempt = 0; attempt < kMostNames; ++attempt) {
    const std::string partial = concat(path, ".", getpid(), ".", ++last_number, ".partial");
    const int file = open_call(partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (file >= 0) return AtomicFile(FileDescriptor(file), path, partial);
    // Left over from a process of the same number that died.
    if (errno != EEXIST) return file_error("cannot create", partial);
  }
  return already_exists("cannot create ", base::quoted(path, 400), ": too many partial files beside it");
}

AtomicFile::~AtomicFile() {
  if (file_.get() >= 0 && !partial_path_.empty()) ::unlink(partial_path_.c_str());
}

Status AtomicFile::append(const void *data, size_t size) {
  TUTTI_TRY(failure_);
  failure_ = write_all(file_.get(), data, size, partial_path_);
  if (failure_.ok()) written_bytes_ += static_cast<int64_t>(size);
  return failure_;
}

Status AtomicFile::commit() {
  TUTTI_TRY(failure_);
  if (file_.get() < 0) return failed_precondition("file ", base::quoted(path_, 400), " is already committed");
  failure_ = sync_file(file_.get(), partial_path_);
  TUTTI_TRY(failure_);
  if (rename_call(partial_path_, path_) != 0) return failure_ = file_error("cannot move the finished file to", path_);
  partial_path_.clear();
  file_ = FileDescriptor();
  return sync_directory(parent_directory(path_));
}

Result<AppendFile> AppendFile::open(const std::string &path) {
  TUTTI_ASSIGN(FileDescriptor file, open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND, "cannot open"));
  return AppendFile(std::move(file), path);
}

Status AppendFile::append(std::string_view bytes) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  Status status = write_all(file_.get(), bytes.data(), bytes.size(), path_);
  if (!status.ok() && end >= 0 && ::ftruncate(file_.get(), end) != 0)
    return status.wrap("a part of what was to be written stays in the file");
  return status;
}

Status AppendFile::sync() { return sync_file(file_.get(), path_); }

Status write_file_atomically(const std::string &path, std::string_view bytes) {
  TUTTI_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TUTTI_TRY(file.append(bytes));
  return file.commit();
}

Status write_file_synced(const std::string &path, std::string_view bytes) {
  TUTTI_ASSIGN(const FileDescriptor file, open_regular_file(path, O_WRONLY | O_CREAT | O_TRUNC, "cannot create"));
  TUTTI_TRY(write_all(file.get(), bytes.data(), bytes.size(), path));
  return sync_file(file.get(), path);
}

Result<FileStamp> file_stamp(const std::string &path) {
  struct stat information;
  if (::stat(path.c_str(), &information) != 0) return file_error("cannot inspect", path);
  const struct timespec &modified = information.st_mtim;
  return FileStamp{static_cast<int64_t>(information.st_size),
                   static_cast<int64_t>(modified.tv_sec) * 1'000'000'000 + modified.tv_nsec};
}

Result<int64_t> file_size_bytes(const std::string &path) {
  struct stat information;
  if (::stat(path.c_str(), &information) != 0) return file_error("cannot inspect", path);
  return static_cast<int64_t>(information.st_size);
}

}  // namespace tutti::impl::base
