// SPDX-License-Identifier: Apache-2.0
#include "base/function_token.h"

#include <utility>

namespace tutti::impl::base {

namespace {

constinit thread_local const Ref<CancelToken> *innermost = nullptr;

}  // namespace

FunctionToken::FunctionToken(const Ref<CancelToken> &token) noexcept : outer_(std::exchange(innermost, &token)) {}

FunctionToken::~FunctionToken() { innermost = outer_; }

Ref<CancelToken> FunctionToken::current() { return innermost == nullptr ? Ref<CancelToken>() : *innermost; }

}  // namespace tutti::impl::base
