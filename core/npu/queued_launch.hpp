// A launch from the moment it is queued.
#pragma once

#include <memory>
#include <string>

#include "npushmem/npu/launch.hpp"

namespace npushmem::npu::detail {

struct QueuedLaunch {
    LaunchConfig config;
    std::unique_ptr<KernelBody> body;

    // As messages call it: its name, or where it was launched.
    [[nodiscard]] std::string title() const;
};

}  // namespace npushmem::npu::detail
