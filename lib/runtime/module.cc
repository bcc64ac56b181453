// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/shared_library.h"

namespace tutti::impl::runtime {

using base::Result;
using base::Status;

namespace {

template <typename T>
Result<T> read_from(const base::RandomAccessFile &file, uint64_t offset) {
  T value{};
  TUTTI_ASSIGN(const size_t count, file.read_at(static_cast<int64_t>(offset), &value, sizeof(T)));
  if (count < sizeof(T)) return base::unavailable("the file has only ", file.size_bytes(), " bytes");
  return value;
}

/// dlopen() maps what the headers tell of, and the process ends where it reads what is not there. What is no library at
/// all is left to it.
Status check_is_whole(const std::string &path) {
  TUTTI_ASSIGN(const base::RandomAccessFile file, base::RandomAccessFile::open(path));
  TUTTI_ASSIGN(const auto header, read_from<ElfW(Ehdr)>(file, 0));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return Status();
  const auto size = static_cast<uint64_t>(file.size_bytes());
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    if (header.e_phoff > size) return base::unavailable("the file has only ", file.size_bytes(), " bytes");
    TUTTI_ASSIGN(const auto part, read_from<ElfW(Phdr)>(file, header.e_phoff + i * sizeof(ElfW(Phdr))));
    if (part.p_type == PT_LOAD && (part.p_filesz > size || part.p_offset > size - part.p_filesz))
      return base::unavailable("the file ends after ", file.size_bytes(), " bytes, within what it is to hold");
  }
  return Status();
}

}  // namespace

void Module::Close::operator()(void *handle) const { dlclose(handle); }

Result<Module> Module::load(const std::string &path) {
  if (path.empty() || path[0] != '/') return base::invalid_argument("plug-in path '", path, "' is not absolute");
  if (access(path.c_str(), F_OK) != 0) return base::not_found("there is no plug-in '", path, "'");
  // Which opens it, too: dlopen() would wait for the other end of a FIFO.
  if (const Status whole = check_is_whole(path); !whole.ok()) {
    const bool lacks_resource = whole.code() == base::Code::resource_exhausted;
    return Status(lacks_resource ? whole.code() : base::Code::unavailable,
                  base::concat("plug-in '", path, "' cannot be loaded: ", whole.message()));
  }
  const Result<void *> handle = base::open_shared_library(path);
  if (!handle.ok())
    return base::Status(handle.status().code(),
                        base::concat("plug-in '", path, "' cannot be loaded: ", handle.status().message()));
  return Module(path, *handle);
}

Result<void *> Module::symbol(const char *name, std::string_view kind) const {
  void *const found = dlsym(handle_.get(), name);
  if (found != nullptr) return found;
  return base::unavailable("'", path_, "' is not a tutti ", kind, ": it does not export ", name);
}

}  // namespace tutti::impl::runtime
