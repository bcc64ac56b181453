// SPDX-License-Identifier: Apache-2.0
//
// How the functions of a pipeline go about their work: after the first error nothing more is done.
#ifndef TUTTI_CAPI_PIPELINE_C_H_
#define TUTTI_CAPI_PIPELINE_C_H_

#include <optional>
#include <string_view>

#include "capi/dataset_c.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

/// Runs `body(object)` for a live pipeline without an error so far; exceptions become its error.
template <typename Body>
void change(tutti_pipeline *pipeline, Body &&body) noexcept {
  const Ref<PipelineObject> object = peek(pipeline, pipeline_handles);
  if (!object || !object->ok()) return;
  try {
    body(*object);
  } catch (...) {
    object->fail(base::status_of_exception());
  }
}

/// Records the error of a text that is NULL.
inline bool check_text(PipelineObject &object, const char *text, std::string_view argument) {
  if (text != nullptr) return true;
  object.fail(base::invalid_argument("argument '", argument, "' is NULL"));
  return false;
}

/// The value of a Result, or the pipeline's error.
template <typename T>
std::optional<T> take(PipelineObject &object, Result<T> result) {
  if (result.ok()) return result.take();
  object.fail(result.status());
  return std::nullopt;
}

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_PIPELINE_C_H_
