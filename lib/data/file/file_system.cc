// SPDX-License-Identifier: Apache-2.0
#include "data/file/file_system.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/file.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;

namespace {

class LocalFile : public ReadableFile {
 public:
  explicit LocalFile(base::RandomAccessFile file) : ReadableFile(file.path()), file_(std::move(file)) {}

  int64_t size_bytes() const override { return file_.size_bytes(); }
  bool is_local() const override { return true; }
  Result<size_t> read_at(int64_t offset, std::span<char> target) const override {
    return file_.read_at(offset, target.data(), target.size());
  }
  Result<Ref<tensor::Buffer>> contents() const override {
    TUTTI_ASSIGN(base::MappedFile mapped, base::MappedFile::open(path()));
    auto owner = std::make_shared<base::MappedFile>(std::move(mapped));
    void *const data = const_cast<char *>(owner->data());
    const auto size = static_cast<int64_t>(owner->size());
    return tensor::Buffer::borrow(
        data, size, [owner] {}, tensor::Buffer::Access::read_only);
  }

 private:
  base::RandomAccessFile file_;
};

class LocalFileSystem : public FileSystem {
 public:
  Result<Ref<const ReadableFile>> open(const std::string &path, const Ref<base::CancelToken> &) const override {
    TUTTI_ASSIGN(base::RandomAccessFile file, base::RandomAccessFile::open(path));
    return Ref<const ReadableFile>(base::make_ref<LocalFile>(std::move(file)));
  }
  Result<std::vector<Entry>> list(const std::string &directory, const Ref<base::CancelToken> &) const override {
    TUTTI_ASSIGN(std::vector<std::string> names, base::list_directory(directory));
    std::vector<Entry> entries;
    for (std::string &name : names) {
      const bool is_directory = base::is_directory(base::concat(directory, "/", name));
      entries.push_back({std::move(name), is_directory});
    }
    return entries;
  }
  std::string identity(const std::string &directory) const override {
    struct stat information;
    if (::stat(directory.c_str(), &information) != 0) return directory;
    return base::concat(information.st_dev, ":", information.st_ino);
  }
};

class MemoryFile : public ReadableFile {
 public:
  MemoryFile(std::string_view bytes, std::string path) : ReadableFile(std::move(path)), bytes_(bytes) {}

  int64_t size_bytes() const override { return static_cast<int64_t>(bytes_.size()); }
  bool is_local() const override { return true; }
  Result<size_t> read_at(int64_t offset, std::span<char> target) const override {
    const size_t start = std::min(static_cast<size_t>(std::max<int64_t>(offset, 0)), bytes_.size());
    const size_t size = std::min(target.size(), bytes_.size() - start);
    if (size > 0) std::memcpy(target.data(), bytes_.data() + start, size);
    return size;
  }

 private:
  std::string_view bytes_;
};

bool is_scheme(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

}  // namespace

Result<size_t> ReadableFile::read_whole(int64_t offset, std::span<char> target) const {
  size_t done = 0;
  while (done < target.size()) {
    TUTTI_ASSIGN(const size_t got, read_at(offset + static_cast<int64_t>(done), target.subspan(done)));
    if (got == 0) break;
    done += got;
  }
  return done;
}

Result<Ref<tensor::Buffer>> ReadableFile::contents() const {
  TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, tensor::Buffer::allocate(size_bytes()));
  TUTTI_ASSIGN(const size_t got,
               read_whole(0, {static_cast<char *>(buffer->data()), static_cast<size_t>(buffer->size_bytes())}));
  return tensor::Buffer::slice(std::move(buffer), 0, static_cast<int64_t>(got));
}

Status FileSystems::add(const std::string &scheme, std::shared_ptr<const FileSystem> system) {
  if (!is_scheme(scheme)) {
    return base::invalid_argument("scheme ", base::quoted(scheme),
                                  ": expected lower-case letters, digits, '+', '-' and '.', beginning with a letter");
  }
  const std::lock_guard lock(mutex_);
  if (systems_.emplace(scheme, std::move(system)).second) return Status();
  return Status(base::Code::already_exists, base::concat("a file system for '", scheme, "://' already exists"));
}

std::shared_ptr<const FileSystem> FileSystems::find(std::string_view scheme) const {
  const std::lock_guard lock(mutex_);
  const auto found = systems_.find(scheme);
  return found != systems_.end() ? found->second : nullptr;
}

std::string_view scheme_of(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || path.substr(0, end).find('/') != std::string_view::npos) return {};
  return path.substr(0, end);
}

Result<std::shared_ptr<const FileSystem>> file_system_of(std::string_view path, const FileSystems *systems) {
  static const auto *const local = new std::shared_ptr<const FileSystem>(std::make_shared<LocalFileSystem>());
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty()) return *local;
  std::shared_ptr<const FileSystem> system = systems != nullptr ? systems->find(scheme) : nullptr;
  if (system != nullptr) return system;
  return base::unimplemented("cannot open ", base::quoted(path, 400), ": there is no file system for '", scheme,
                             "://'; one can be added to the context");
}

Result<Ref<const ReadableFile>> open_file(const std::string &path, const FileSystems *systems,
                                          const Ref<base::CancelToken> &cancel) {
  TUTTI_ASSIGN(const std::shared_ptr<const FileSystem> system, file_system_of(path, systems));
  return system->open(path, cancel);
}

Status check_file(const std::string &path, const FileSystems *systems, const Ref<base::CancelToken> &cancel) {
  struct stat information;
  const bool is_there = scheme_of(path).empty() && ::stat(path.c_str(), &information) == 0 &&
                        S_ISREG(information.st_mode) && ::access(path.c_str(), R_OK) == 0;
  return is_there ? Status() : open_file(path, systems, cancel).status();
}

Ref<const ReadableFile> memory_file(std::string_view bytes, std::string path) {
  return Ref<const ReadableFile>(base::make_ref<MemoryFile>(bytes, std::move(path)));
}

}  // namespace tutti::impl::data
