// SPDX-License-Identifier: Apache-2.0
//
// std::variant whose copies may run out of memory. Where all alternatives can be moved without an exception, libstdc++
// takes for granted that a variant always has a value, even one whose copy has thrown before there was one, and
// destroys what was never made. Here a copy begins with the first alternative and is assigned, which keeps that.
#ifndef TUTTI_BASE_SAFE_VARIANT_H_
#define TUTTI_BASE_SAFE_VARIANT_H_

#include <utility>
#include <variant>

namespace tutti::impl::base {

template <typename... Alternatives>
class SafeVariant : public std::variant<Alternatives...> {
  using Plain = std::variant<Alternatives...>;

 public:
  using Plain::Plain;
  using Plain::operator=;
  SafeVariant() = default;
  SafeVariant(const SafeVariant &other) : Plain() { Plain::operator=(other); }
  SafeVariant(SafeVariant &&other) noexcept = default;
  SafeVariant &operator=(const SafeVariant &other) = default;
  SafeVariant &operator=(SafeVariant &&other) noexcept = default;
  ~SafeVariant() = default;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_SAFE_VARIANT_H_
