// SPDX-License-Identifier: Apache-2.0
//
// A HIP runtime that is not the plug-in's, as another version of it is a file of its own.
extern "C" __attribute__((visibility("default"))) int hipRuntimeGetVersion(int *version) {
  *version = 1;
  return 0;
}
