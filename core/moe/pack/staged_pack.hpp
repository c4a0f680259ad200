// The device's way from scattered rows to contiguous ones: through two buffers, one of which is filled while the other
// is written out.
//
// Rows of whole 32-byte units lie in a buffer without holes, and leave it in one plain copy. Others begin on a 32-byte
// boundary each, because that is where a copy into the unified buffer must begin, and leave it in one padded copy that
// writes exactly the bytes of each: so nothing is cropped, nothing carried over, and nothing written behind the end.
#pragma once

#include <array>
#include <cstddef>

#include "core/moe/combine_plan.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

class StagedPack {
public:
    static constexpr std::size_t buffer_bytes = 64 * 1024;

    // `target`: where the first row goes.
    StagedPack(npu::Core& core, const std::byte* x, Bytes row, std::byte* target);

    void put(Fragment fragment);
    // Everything is in place for the scalar pipe.
    void finish();

private:
    // Flag ids 0 and 1 belong to the two buffers; the table columns and the end use others.
    static constexpr int end_flag = 2;

    void put_long_row(const std::byte* source);
    void fill(const std::byte* source, std::size_t rows, std::size_t bytes);
    void flush(std::size_t bytes);
    [[nodiscard]] std::size_t bytes_staged() const { return staged_ * row_; }

    npu::Core& core_;
    const std::byte* x_;
    std::size_t row_;
    std::size_t step_;       // from row to row in a buffer
    std::size_t in_buffer_;  // most rows; 0: a row is longer than a buffer
    std::byte* target_;
    std::array<npu::ub_view<std::byte>, 2> buffers_;
    std::array<bool, 2> busy_{};  // its last copy out has not been waited for
    int current_ = 0;
    std::size_t staged_ = 0;  // rows in the current buffer
};

}  // namespace npushmem::moe
