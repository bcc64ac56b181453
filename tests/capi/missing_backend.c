/* SPDX-License-Identifier: Apache-2.0 */
#include "missing_backend.h"

#include <stdio.h>
#include <tutti/tutti.h>

int is_missing(const char *backend) {
  tutti_options *options = NULL;
  tutti_context *context = NULL;
  tutti_error *err = NULL;
  if (tutti_options_create("context", &options, &err) == TUTTI_OK) {
    tutti_options_set_string(options, backend[0] == '/' ? "plugin" : "backend", backend);
    (void)tutti_context_create(options, &context, &err);
  }
  const int answer = err != NULL && tutti_error_get_code(err) == TUTTI_UNAVAILABLE;
  if (answer) printf("skipped: %s\n", tutti_error_get_text(err));
  tutti_error_unref(err), tutti_context_unref(context), tutti_options_unref(options);
  return answer;
}
