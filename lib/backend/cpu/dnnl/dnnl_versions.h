// SPDX-License-Identifier: Apache-2.0
//
// The few places where oneDNN 2 and 3 are spelled differently.
#ifndef TUTTI_BACKEND_CPU_DNNL_DNNL_VERSIONS_H_
#define TUTTI_BACKEND_CPU_DNNL_DNNL_VERSIONS_H_

#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <limits>
#include <memory>

namespace tutti::impl::backend::cpu {

/// A primitive's description, and in version 2 the operation it walks the implementations of: next_impl() looks at it
/// again, so it has to stay where it is.
template <typename Primitive>
struct Described {
  std::shared_ptr<void> operation;
  typename Primitive::primitive_desc description;
};

/// The slope of a relu below zero. With 0 the library's kernels take a maximum that turns NaN into 0, and a network
/// that has diverged would not show it. With the least number above 0, which kernels treat as 0
/// (floating_point_mode.h), they select instead: NaN stays, negative numbers become -0, and negative infinity NaN.
constexpr float kNoSlope = std::numeric_limits<float>::denorm_min();

#if DNNL_VERSION_MAJOR >= 3

template <typename Primitive, typename... Arguments>
Described<Primitive> describe_forward(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
                                      const Arguments &...arguments) {
  return {nullptr, typename Primitive::primitive_desc(engine, arguments..., attributes)};
}

template <typename Primitive, typename Hint, typename... Arguments>
Described<Primitive> describe_backward(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
                                       const Hint &hint, const Arguments &...arguments) {
  return {nullptr, typename Primitive::primitive_desc(engine, arguments..., hint, attributes)};
}

inline void append_relu(dnnl::post_ops &operations) {
  operations.append_eltwise(dnnl::algorithm::eltwise_relu, kNoSlope, 0.0f);
}

inline void set_repeatable(dnnl::primitive_attr &attributes) { attributes.set_deterministic(true); }

#else

template <typename Primitive, typename... Arguments>
Described<Primitive> describe_forward(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
                                      const Arguments &...arguments) {
  auto operation = std::make_shared<typename Primitive::desc>(arguments...);
  typename Primitive::primitive_desc description(*operation, attributes, engine);
  return {operation, description};
}

template <typename Primitive, typename Hint, typename... Arguments>
Described<Primitive> describe_backward(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
                                       const Hint &hint, const Arguments &...arguments) {
  auto operation = std::make_shared<typename Primitive::desc>(arguments...);
  typename Primitive::primitive_desc description(*operation, attributes, engine, hint);
  return {operation, description};
}

inline void append_relu(dnnl::post_ops &operations) {
  operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, kNoSlope, 0.0f);
}

/// Version 2 is repeatable for a fixed number of threads.
inline void set_repeatable(dnnl::primitive_attr &) {}

#endif

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_DNNL_VERSIONS_H_
