// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/interface/shared_values.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace tutti::impl::backend::pjrt {
namespace {

constexpr int32_t kResourceExhausted = 8;

/// The host's answer, in memory that a plug-in lets go of: an exception must not pass through it.
struct Answer {
  char *text = nullptr;
  size_t length = 0;
};

void keep(void *user, const char *text, uint64_t length) {
  Answer &answer = *static_cast<Answer *>(user);
  answer.text = static_cast<char *>(std::malloc(length + 1));
  if (answer.text == nullptr) return;
  std::memcpy(answer.text, text, length);
  answer.text[length] = '\0';
  answer.length = length;
}

void release(char *value) { std::free(value); }

/// NULL for code 0.
abi::Error *to_error(int32_t code, const Answer &answer, const abi::MakeError *make_error) {
  const bool is_told = answer.text != nullptr;
  if (code == 0 && is_told) return nullptr;
  constexpr std::string_view kNoMemory = "no memory for a value that processes share";
  return (*make_error)(code != 0 ? code : kResourceExhausted, is_told ? answer.text : kNoMemory.data(),
                       is_told ? answer.length : kNoMemory.size());
}

template <typename Request>
abi::Error *get(Request &request, int64_t timeout_ms) {
  const auto *const host = static_cast<const tutti_backend_host *>(request.user);
  Answer answer;
  const int32_t code = host->shared_get(host->user, request.key, request.key_length, timeout_ms, keep, &answer);
  if (abi::Error *const error = to_error(code, answer, request.make_error)) {
    release(answer.text);
    return error;
  }
  request.value = answer.text;
  request.value_length = answer.length;
  request.release = release;
  return nullptr;
}

abi::Error *get_value(abi::KeyValueGet *request) { return get(*request, request->timeout_ms); }
abi::Error *try_get_value(abi::KeyValueTryGet *request) { return get(*request, 0); }

abi::Error *put_value(abi::KeyValuePut *request) {
  const auto *const host = static_cast<const tutti_backend_host *>(request->user);
  Answer answer;
  const int32_t code = host->shared_put(host->user, request->key, request->key_length, request->value,
                                        request->value_length, keep, &answer);
  abi::Error *const error = code == 0 ? nullptr : to_error(code, answer, request->make_error);
  release(answer.text);
  return error;
}

}  // namespace

void share_values(const tutti_backend_host *host, abi::ClientCreate &call) {
  if (host == nullptr || host->shared_get == nullptr) return;
  void *const user = const_cast<tutti_backend_host *>(host);
  call.get = get_value;
  call.put = put_value;
  call.try_get = try_get_value;
  call.get_user = call.put_user = call.try_get_user = user;
}

}  // namespace tutti::impl::backend::pjrt
