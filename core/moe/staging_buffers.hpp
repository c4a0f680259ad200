// Two buffers in the unified buffer of a core, one of which is filled by a pipe while the other is written out by
// another.
#pragma once

#include <array>
#include <cstddef>

#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

class StagingBuffers {
public:
    StagingBuffers(npu::Core& core, std::size_t bytes)
        : core_(core), buffers_{core.ub_alloc<std::byte>(bytes), core.ub_alloc<std::byte>(bytes)} {}

    [[nodiscard]] const npu::ub_view<std::byte>& current() const { return buffers_[current_]; }

    // Before the first copy into the current buffer: waits for the last copies out of it.
    void wait_until_free() { wait_until_free(current_); }
    // Between the copies into the current buffer and those out of it.
    void filled();
    // After the last copy out of the current buffer: the other one becomes current.
    void next();
    // Waits until all copies out are complete, for the scalar pipe too.
    void finish();

private:
    // Flag ids 0 and 1 belong to the two buffers; the table columns and the end use others.
    static constexpr int end_flag = 2;

    void wait_until_free(int buffer);

    npu::Core& core_;
    std::array<npu::ub_view<std::byte>, 2> buffers_;
    std::array<bool, 2> busy_{};  // its last copies out have not been waited for
    int current_ = 0;
};

}  // namespace npushmem::moe
