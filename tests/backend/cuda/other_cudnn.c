/* SPDX-License-Identifier: Apache-2.0
 *
 * A cuDNN that is built for another CUDA, as far as one sees who opens it. */
#include <stddef.h>

#define SEEN __attribute__((visibility("default")))

SEEN size_t cudnnGetCudartVersion(void);
size_t cudnnGetCudartVersion(void) { return 11080; }

#define FUNCTION(name) \
  SEEN int name(void); \
  int name(void) { return 1; }
FUNCTION(cudnnCreate)
FUNCTION(cudnnDestroy)
FUNCTION(cudnnSetStream)
FUNCTION(cudnnGetVersion)
FUNCTION(cudnnGetErrorString)
FUNCTION(cudnnGetLastErrorString)
FUNCTION(cudnnBackendCreateDescriptor)
FUNCTION(cudnnBackendDestroyDescriptor)
FUNCTION(cudnnBackendFinalize)
FUNCTION(cudnnBackendSetAttribute)
FUNCTION(cudnnBackendGetAttribute)
FUNCTION(cudnnBackendExecute)
