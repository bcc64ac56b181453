// SPDX-License-Identifier: Apache-2.0
//
// The stand-in in place of the library that is opened.
#include "backend/hip/host_miopen.h"

using namespace tutti::impl;

base::Result<const backend::hip::Miopen *> backend::hip::miopen() {
  static const Miopen functions = {
      &miopenGetVersion,
      &miopenGetErrorString,
      &miopenCreate,
      &miopenDestroy,
      &miopenSetStream,
      &miopenCreateTensorDescriptor,
      &miopenSet4dTensorDescriptorEx,
      &miopenDestroyTensorDescriptor,
      &miopenCreateConvolutionDescriptor,
      &miopenInitConvolutionDescriptor,
      &miopenSetConvolutionGroupCount,
      &miopenSetConvolutionAttribute,
      &miopenDestroyConvolutionDescriptor,
      {&miopenConvolutionForwardGetSolution, &miopenConvolutionForwardCompileSolution,
       &miopenConvolutionForwardImmediate},
      {&miopenConvolutionBackwardDataGetSolution, &miopenConvolutionBackwardDataCompileSolution,
       &miopenConvolutionBackwardDataImmediate},
      {&miopenConvolutionBackwardWeightsGetSolution, &miopenConvolutionBackwardWeightsCompileSolution,
       &miopenConvolutionBackwardWeightsImmediate}};
  if (tutti::testing::host_miopen().is_missing) return base::unavailable("libMIOpen.so.1 is not here");
  return &functions;
}
