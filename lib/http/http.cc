// SPDX-License-Identifier: Apache-2.0
//
// The module of http:// and https://, loaded by tutti_context_load_file_system(context, "http", settings, &err).
#include <curl/curl.h>
#include <tutti/file_system.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "http/remote_file.h"
#include "http/settings.h"
#include "http/transfers.h"

namespace tutti::impl::http {
namespace {

int32_t fail(tutti_error **err, int32_t code, const std::string &message) {
  (void)tutti_error_create(code, "http", message.c_str(), nullptr, err, nullptr);
  return code;
}

// No exception leaves the module.
template <typename Body>
int32_t guard(tutti_error **err, Body body) noexcept {
  try {
    const Outcome outcome = body();
    return outcome.code == TUTTI_OK ? TUTTI_OK : fail(err, outcome.code, outcome.message);
  } catch (const std::bad_alloc &) {
    return tutti_error_set(err, TUTTI_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception &exception) {
    return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, exception.what());
  }
}

RemoteFile::IsCancelled asks(const tutti_cancel *cancel) {
  return [cancel] { return cancel != nullptr && tutti_cancel_get_state(cancel) == TUTTI_CANCEL_CANCEL; };
}

/// What both schemes share.
class Shared {
 public:
  explicit Shared(Settings settings) : transfers_(std::move(settings)) {}

  /// A file to open: one whose opening was ended before it was done, if there is one.
  std::unique_ptr<RemoteFile> begin(const std::string &url) {
    const std::lock_guard lock(mutex_);
    const auto found = begun_.find(url);
    if (found == begun_.end()) return std::make_unique<RemoteFile>(transfers_, url);
    std::unique_ptr<RemoteFile> file = std::move(found->second);
    begun_.erase(found);
    return file;
  }
  /// Keeps a file whose opening was ended: whoever comes back finds it further on.
  void keep(const std::string &url, std::unique_ptr<RemoteFile> file) {
    const std::lock_guard lock(mutex_);
    if (begun_.size() >= kMostBegun) begun_.clear();
    begun_.insert_or_assign(url, std::move(file));
  }

 private:
  static constexpr size_t kMostBegun = 64;

  Transfers transfers_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<RemoteFile>> begun_;  // guarded by mutex_
};
using SharedPointer = std::shared_ptr<Shared>;

int32_t open_file(void *user, const char *path, tutti_cancel *cancel, void **file, int64_t *size_bytes,
                  tutti_error **err) {
  return guard(err, [&] {
    Shared &shared = **static_cast<SharedPointer *>(user);
    std::unique_ptr<RemoteFile> opened = shared.begin(path);
    Outcome outcome = opened->open(asks(cancel));
    if (outcome.code == TUTTI_CANCELLED) shared.keep(path, std::move(opened));
    if (outcome.code != TUTTI_OK) return outcome;
    *size_bytes = opened->size_bytes();
    *file = opened.release();
    return outcome;
  });
}

int32_t read_file(void *, void *file, int64_t offset, void *target, int64_t size, tutti_cancel *cancel,
                  int64_t *read_bytes, tutti_error **err) {
  return guard(err, [&] {
    auto &opened = *static_cast<RemoteFile *>(file);
    return opened.read(offset, static_cast<char *>(target), size, *read_bytes, asks(cancel));
  });
}

const char *version_of(void *, void *file) { return static_cast<RemoteFile *>(file)->version().c_str(); }

void close_file(void *, void *file) { delete static_cast<RemoteFile *>(file); }

void destroy(void *user) { delete static_cast<SharedPointer *>(user); }

Outcome add(tutti_context *context, const char *scheme, const SharedPointer &shared, tutti_error **err) {
  tutti_file_system functions = {};
  functions.struct_size = sizeof(functions);
  functions.open = open_file;
  functions.read = read_file;
  functions.close = close_file;
  functions.version = version_of;
  // A server says nothing about what else it has, so there is no list.
  auto *const user = new SharedPointer(shared);
  return {tutti_context_add_file_system(context, scheme, &functions, user, destroy, err), ""};
}

}  // namespace
}  // namespace tutti::impl::http

extern "C" TUTTI_API int32_t tutti_file_system_entry(tutti_context *context, const char *settings, tutti_error **err);

int32_t tutti_file_system_entry(tutti_context *context, const char *settings, tutti_error **err) {
  using namespace tutti::impl::http;
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return fail(err, TUTTI_UNAVAILABLE, curl_easy_strerror(ready));
  tutti_error *added = nullptr;
  const int32_t code = guard(err, [&]() -> Outcome {
    const auto shared = std::make_shared<Shared>(Settings::parse(settings));
    for (const char *scheme : {"http", "https"}) {
      if (add(context, scheme, shared, &added).code != TUTTI_OK) break;
    }
    return {};
  });
  if (added == nullptr) return code;
  const int32_t why = tutti_error_get_code(added);
  if (err != nullptr) {
    *err = added;
  } else {
    tutti_error_unref(added);
  }
  return why;
}
