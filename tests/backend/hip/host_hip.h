// SPDX-License-Identifier: Apache-2.0
//
// In place of HIP, and of the kernels of gpu/, as far as the libraries' kernels meet them: what is done on memory of
// the host, at once. Times are those that the stand-ins of libraries tell.
#ifndef TUTTI_TESTS_BACKEND_HIP_HOST_HIP_H_
#define TUTTI_TESTS_BACKEND_HIP_HOST_HIP_H_

namespace tutti::testing {

struct HostHip {
  int current_device = 0;
  bool is_relaxed = false;  ///< may the thread load modules though it captures?
  double milliseconds = 0;  ///< that all work took
};

/// The one there is.
HostHip &host_hip();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_HIP_HOST_HIP_H_
