// SPDX-License-Identifier: Apache-2.0
//
// A library on top of a HIP runtime: the build links it to one or the other.
extern "C" int hipRuntimeGetVersion(int *version);

extern "C" __attribute__((visibility("default"))) int library_version() {
  int version = 0;
  return hipRuntimeGetVersion(&version) == 0 ? version : -1;
}
