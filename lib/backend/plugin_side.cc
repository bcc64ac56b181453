// SPDX-License-Identifier: Apache-2.0
#include "backend/plugin_side.h"

namespace tutti::impl::backend {

int32_t report(const tutti_backend_host *host, tutti_error_sink *sink, const base::Status &status) {
  std::string text = status.message();
  for (const base::Error *cause = status.error()->cause().get(); cause != nullptr; cause = cause->cause().get())
    text += "; caused by: " + cause->message();
  const int32_t code = static_cast<int32_t>(status.code());
  host->set_error(sink, code, text.c_str());
  return code;
}

}  // namespace tutti::impl::backend
