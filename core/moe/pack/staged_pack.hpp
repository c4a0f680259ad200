// The device's way from scattered rows to contiguous ones: through two buffers, one of which is filled while the other
// is written out.
//
// Rows of whole 32-byte units lie in a buffer without holes, and leave it in one plain copy. Others begin on a 32-byte
// boundary each, because that is where a copy into the unified buffer must begin, and leave it in one padded copy that
// writes exactly the bytes of each: so nothing is cropped, nothing carried over, and nothing written behind the end.
#pragma once

#include <cstddef>

#include "core/moe/combine_plan.hpp"
#include "core/moe/staging_buffers.hpp"

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
    void put_long_row(const std::byte* source);
    void fill(const std::byte* source, std::size_t rows, std::size_t bytes);
    void flush(std::size_t bytes);

    npu::Core& core_;
    const std::byte* x_;
    std::size_t row_;
    std::size_t step_;       // from row to row in a buffer
    std::size_t in_buffer_;  // most rows; 0: a row is longer than a buffer
    std::byte* target_;
    StagingBuffers buffers_;
    std::size_t staged_ = 0;  // rows in the current buffer
};

}  // namespace npushmem::moe
