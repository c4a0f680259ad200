// One descriptor that is readable when any of several is, or when somebody wakes whoever waits for it.
#pragma once

#include <span>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

class CombinedDescriptor {
public:
    CombinedDescriptor() = default;  // none
    CombinedDescriptor(CombinedDescriptor&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)),
          waker_(std::exchange(other.waker_, -1)),
          awake_(std::exchange(other.awake_, false)) {}
    CombinedDescriptor& operator=(CombinedDescriptor&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        std::swap(waker_, other.waker_);
        std::swap(awake_, other.awake_);
        return *this;
    }
    ~CombinedDescriptor();
    // `watched` stay their owners', and open as long as this is used.
    static Result<CombinedDescriptor> of(std::span<const int> watched);

    [[nodiscard]] int get() const { return descriptor_; }  // -1: none
    // Readable from here on, until there is rest. By one thread at a time; another may be waiting for the descriptor.
    void wake();
    void rest();

private:
    int descriptor_ = -1;
    int waker_ = -1;      // an eventfd, readable while awake
    bool awake_ = false;  // so that to wake again costs nothing
};

}  // namespace npushmem::network
