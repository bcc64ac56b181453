// SPDX-License-Identifier: Apache-2.0
//
// A shared module that is no backend.
__attribute__((visibility("default"))) int something_else(void) { return 1; }
