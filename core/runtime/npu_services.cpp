#include "core/runtime/npu_services.hpp"

namespace npushmem {

Result<npu::Device*> NpuServices::device() {
    const std::lock_guard guard(lock_);
    if (!binding_) {
        auto made = NpuBinding::create(resources_);
        if (!made.ok()) return made.status();
        binding_ = std::move(made).value();
    }
    return &binding_->device();
}

void NpuServices::close() {
    if (binding_) (void)binding_->device().synchronize();
    binding_.reset();
}

}  // namespace npushmem
