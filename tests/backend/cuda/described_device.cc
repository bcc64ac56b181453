// SPDX-License-Identifier: Apache-2.0
#include "described_device.h"

#include <dlfcn.h>

#include <cstring>
#include <optional>

using namespace tutti::impl::backend::cuda;

namespace {

/// An H100 (SXM, 80 GB), as NVIDIA's documentation tells of it.
constexpr const char *kH100 = R"({
  "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA H100 80GB HBM3", "pciDeviceId": 0,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "warpSize": 32, "regsPerBlock": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "totalGlobalMem": 85017755648, "isTccDriver": 0, "supportCoopLaunch": 1})";

const Cudnn *library = nullptr;
std::optional<CudnnDescriptor> h100;

}  // namespace

bool open_described_device() {
  const auto loaded = cudnn();
  if (!loaded.ok() || loaded.value()->cudnnGetVersion() < 91100) return false;
  library = loaded.value();
  h100.emplace(*library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  h100->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(std::strlen(kH100)),
            kH100);
  if (!h100->finalize().ok()) h100.reset();
  return h100.has_value();
}

bool has_described_device() { return h100.has_value(); }

const Cudnn &described_cudnn() { return *library; }

CudnnDevice described_device() {
  CudnnDevice device;
  device.properties = &*h100;
  return device;
}

bool has_driver() { return dlopen("libcuda.so.1", RTLD_NOW) != nullptr; }
