// SPDX-License-Identifier: BSD-3-Clause
// One descriptor for the thread that waits for several.
#pragma once

#include <span>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem::network {

// A descriptor that is readable when one of several others is, or after wake().
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
    // The callers keep ownership of `watched` and keep them open.
    static Result<CombinedDescriptor> of(std::span<const int> watched);

    [[nodiscard]] int get() const { return descriptor_; }  // -1: none
    // Makes the descriptor readable until rest(). One thread at a time calls these; another may wait for the
    // descriptor.
    void wake();
    void rest();

private:
    int descriptor_ = -1;
    int waker_ = -1;      // an eventfd, readable while awake
    bool awake_ = false;  // a second wake costs nothing
};

}  // namespace npushmem::network
