// SPDX-License-Identifier: Apache-2.0
//
// Debian's libgloo-dev lacks this header, which its gloo/transport/tcp/pair.h and context.h include. Where it is
// missing, this one stands in: it declares what they name, each as large as in Gloo's own, which holds one pointer of
// the standard library. Only Gloo's code makes and uses such objects.
#ifndef TUTTI_COLLECTIVE_GLOO_MISSING_HEADERS_GLOO_COMMON_MEMORY_H_
#define TUTTI_COLLECTIVE_GLOO_MISSING_HEADERS_GLOO_COMMON_MEMORY_H_

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr final {
  std::shared_ptr<T> held_;
};

template <typename T>
class WeakNonOwningPtr final {
  std::weak_ptr<T> held_;
};

template <typename T>
class ShareableNonOwningPtr final {
  std::shared_ptr<T> held_;
};

}  // namespace gloo

#endif  // TUTTI_COLLECTIVE_GLOO_MISSING_HEADERS_GLOO_COMMON_MEMORY_H_
