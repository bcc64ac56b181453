// SPDX-License-Identifier: Apache-2.0
//
// File systems of the host and of shared modules.
#include <tutti/file_system.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "base/function_token.h"
#include "capi/cancel_c.h"
#include "capi/context_c.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "capi/host_call.h"
#include "data/file/file_system.h"
#include "runtime/module.h"
#include "runtime/plugin_loader.h"

namespace tutti::impl::capi {
namespace {

/// A host's functions and what they are called with.
struct HostFunctions {
  tutti_file_system table = {};
  std::shared_ptr<UserPointer> user;
};

/// The answer to a call that went wrong: the walk's own end if there is one, else the error with what was tried.
template <typename... What>
Status failed(const base::CancelToken *token, const Status &status, const What &...what) {
  TUTTI_TRY(base::check(token));
  return status.wrap(base::concat(what...));
}

/// What a host sees of the token that its calls follow.
class HostToken {
 public:
  /// `walk` may be null. Fails when it has ended already.
  Status follow(const Ref<base::CancelToken> &walk) {
    TUTTI_TRY(base::check(walk.get()));
    if (walk == nullptr) return Status();
    // A child: what the host does to it does not end the walk.
    token_ = base::CancelToken::create_child(walk);
    return handle_.set(base::make_ref<CancelObject>(token_), cancel_handles);
  }
  const base::CancelToken *get() const { return token_.get(); }
  const Ref<base::CancelToken> &ref() const { return token_; }
  tutti_cancel *handle() const { return static_cast<tutti_cancel *>(handle_.get()); }

 private:
  Ref<base::CancelToken> token_;
  LentHandle handle_;
};

class HostFile : public data::ReadableFile {
 public:
  HostFile(std::shared_ptr<const HostFunctions> functions, std::string path)
      : ReadableFile(std::move(path)), functions_(std::move(functions)) {}
  ~HostFile() override {
    if (is_open_)
      (void)catch_thrown("the function close", [&] { functions_->table.close(functions_->user->get(), file_); });
  }

  Status open(const Ref<base::CancelToken> &walk) {
    TUTTI_TRY(token_.follow(walk));
    const base::FunctionToken scope(token_.ref());
    const Status status = call_host("the function open of the file system", [&](tutti_error **error) {
      return functions_->table.open(functions_->user->get(), path().c_str(), token_.handle(), &file_, &size_, error);
    });
    if (!status.ok()) return failed(token_.get(), status, "cannot open ", base::quoted(path(), 400));
    is_open_ = true;
    if (size_ >= 0) return Status();
    return base::invalid_argument("cannot open ", base::quoted(path(), 400), ": its file system reports the size ",
                                  size_);
  }

  int64_t size_bytes() const override { return size_; }
  std::string version() const override {
    if (functions_->table.version == nullptr) return {};
    std::string text;
    (void)catch_thrown("the function version", [&] {
      const char *const version = functions_->table.version(functions_->user->get(), file_);
      if (version != nullptr) text = version;
    });
    return text;
  }
  Result<size_t> read_at(int64_t offset, std::span<char> target) const override {
    TUTTI_TRY(base::check(token_.get()));
    const auto room = static_cast<int64_t>(std::min<uint64_t>(target.size(), INT64_MAX));
    const int64_t wanted = std::min(room, size_ - std::min(std::max<int64_t>(offset, 0), size_));
    if (wanted == 0) return size_t{0};
    int64_t got = -1;
    const auto where = [&] {
      return base::concat("cannot read ", wanted, " bytes at offset ", offset, " of ", base::quoted(path(), 400));
    };
    const base::FunctionToken scope(token_.ref());
    const Status status = call_host("the function read of the file system", [&](tutti_error **error) {
      return functions_->table.read(functions_->user->get(), file_, offset, target.data(), wanted, token_.handle(),
                                    &got, error);
    });
    if (!status.ok()) return failed(token_.get(), status, where());
    if (got > 0 && got <= wanted) return static_cast<size_t>(got);
    if (got == 0) return base::data_loss(where(), ": the file ends there, but its size was ", size_);
    return base::invalid_argument(where(), ": its file system reports that it read ", got, " bytes");
  }

 private:
  const std::shared_ptr<const HostFunctions> functions_;
  HostToken token_;
  void *file_ = nullptr;
  int64_t size_ = -1;
  bool is_open_ = false;
};

/// The names that a host gives. Nothing may be thrown through its function.
struct Listing {
  std::vector<data::FileSystem::Entry> entries;
  Status status;

  static void add(void *listing, const char *name, uint8_t is_directory) {
    guard_value(0, [&] {
      auto &self = *static_cast<Listing *>(listing);
      const std::string_view text = name != nullptr ? name : "";
      if (text.empty() || text.find('/') != std::string_view::npos) {
        self.status = base::invalid_argument("expected the name of a file, got ", base::quoted(text, 400));
      } else if (text != "." && text != "..") {
        self.entries.push_back({std::string(text), is_directory != 0});
      }
      return 0;
    });
  }
};

class HostFileSystem : public data::FileSystem {
 public:
  explicit HostFileSystem(std::shared_ptr<const HostFunctions> functions) : functions_(std::move(functions)) {}

  Result<Ref<const data::ReadableFile>> open(const std::string &path,
                                             const Ref<base::CancelToken> &cancel) const override {
    Ref<HostFile> file = base::make_ref<HostFile>(functions_, path);
    TUTTI_TRY(file->open(cancel));
    return Ref<const data::ReadableFile>(std::move(file));
  }
  bool can_list() const override { return functions_->table.list != nullptr; }
  Result<std::vector<Entry>> list(const std::string &directory, const Ref<base::CancelToken> &cancel) const override {
    const auto where = [&] { return base::concat("cannot list ", base::quoted(directory, 400)); };
    if (!can_list()) return base::unimplemented(where(), ": its file system has no function list");
    HostToken token;
    TUTTI_TRY(token.follow(cancel));
    Listing listing;
    const base::FunctionToken scope(token.ref());
    const Status status = call_host("the function list of the file system", [&](tutti_error **error) {
      return functions_->table.list(functions_->user->get(), directory.c_str(), token.handle(), Listing::add, &listing,
                                    error);
    });
    if (!status.ok()) return failed(token.get(), status, where());
    if (!listing.status.ok()) return listing.status.wrap(where());
    auto &entries = listing.entries;
    std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.name < b.name; });
    const auto same = [](const Entry &a, const Entry &b) { return a.name == b.name; };
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
    return std::move(entries);
  }

 private:
  const std::shared_ptr<const HostFunctions> functions_;
};

/// The fields that the host filled in; the others are NULL.
Status copy_table(const tutti_file_system &from, tutti_file_system &to) {
  constexpr size_t needed = offsetof(tutti_file_system, list);
  if (from.struct_size < needed) {
    return base::invalid_argument("the field 'struct_size' must be sizeof(tutti_file_system), got ", from.struct_size);
  }
  std::memcpy(&to, &from, std::min<uint64_t>(from.struct_size, sizeof(to)));
  const auto check = [](bool is_there, const char *name) {
    return is_there ? Status() : base::invalid_argument("the function '", name, "' of the file system is NULL");
  };
  TUTTI_TRY(check(to.open != nullptr, "open"));
  TUTTI_TRY(check(to.read != nullptr, "read"));
  return check(to.close != nullptr, "close");
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_context_add_file_system(tutti_context *context, const char *scheme, const tutti_file_system *functions,
                                      void *user, tutti_destroy_fn destroy, tutti_error **err) {
  return guard(err, [&]() -> Status {
    const auto host = std::make_shared<HostFunctions>();
    host->user = std::make_shared<UserPointer>(user, destroy);
    TUTTI_ASSIGN(const Ref<ContextObject> object, find_context(context));
    TUTTI_TRY(require(scheme, "scheme"));
    TUTTI_TRY(require(functions, "functions"));
    TUTTI_TRY(copy_table(*functions, host->table));
    return object->core()->file_systems->add(scheme, std::make_shared<HostFileSystem>(host));
  });
}

int32_t tutti_context_load_file_system(tutti_context *context, const char *module, const char *settings,
                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(module, "module"));
    TUTTI_TRY(find_context(context));
    std::string path = module;
    if (path.find('/') == std::string::npos) {
      TUTTI_ASSIGN(path, runtime::find_plugin(path));
    }
    TUTTI_ASSIGN(runtime::Module loaded, runtime::Module::load(path));
    TUTTI_ASSIGN(void *const symbol, loaded.symbol(TUTTI_FILE_SYSTEM_ENTRY_NAME, "file system"));
    const auto entry = reinterpret_cast<tutti_file_system_entry_fn>(symbol);
    loaded.keep();
    return call_host(base::concat("the file system module '", path, "'"),
                     [&](tutti_error **error) { return entry(context, settings, error); });
  });
}
