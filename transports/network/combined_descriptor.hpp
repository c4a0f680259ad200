// One descriptor that is readable when any of several is.
#pragma once

#include <span>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

class CombinedDescriptor {
public:
    CombinedDescriptor() = default;  // none
    CombinedDescriptor(CombinedDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    CombinedDescriptor& operator=(CombinedDescriptor&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~CombinedDescriptor();
    // `watched` stay their owners', and open as long as this is used.
    static Result<CombinedDescriptor> of(std::span<const int> watched);

    [[nodiscard]] int get() const { return descriptor_; }  // -1: none

private:
    int descriptor_ = -1;
};

}  // namespace npushmem::network
