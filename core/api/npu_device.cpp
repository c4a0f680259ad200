// The running program's device, for the kernel language.
#include "core/api/library.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::npu {

Device& device() {
    Runtime* up = api::runtime();
    if (up == nullptr) throw KernelError(api::not_running());
    auto device = up->npu_device();
    if (!device.ok()) throw KernelError(device.status());
    return *device.value();
}

}  // namespace npushmem::npu
