// SPDX-License-Identifier: Apache-2.0
//
// The TPU chips of this machine, by what its PCI bus says of them: no library of theirs is needed, and none is loaded.
//
// Source: the PCI identifiers that libtpu's drivers bind to (vendor 1ae0, Google).
// Threads: all functions may be called from any thread.
#ifndef TUTTI_RUNTIME_TPU_CHIPS_H_
#define TUTTI_RUNTIME_TPU_CHIPS_H_

#include <string>

namespace tutti::impl::runtime {

/// "4 chips TPU v5e"; of several kinds with commas between them, empty where there are none. `folder`: of devices, as
/// Linux lists them.
std::string describe_tpu_chips(const std::string &folder = "/sys/bus/pci/devices");

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_TPU_CHIPS_H_
