// The device's way of a row: in by one pipe, out by another, through two buffers, so that the next read overlaps the
// last write. Rows of a fragment lie together in x, so many short ones come in with one copy; each goes out to its own
// slot.
#pragma once

#include "core/moe/combine_plan.hpp"
#include "core/moe/combine_sender.hpp"
#include "core/moe/staging_buffers.hpp"

namespace npushmem::moe {

class StagedRows {
public:
    static constexpr std::size_t buffer_bytes = 32 * 1024;

    StagedRows(npu::Core& core, const CombineSend& send, int destination);

    void put(Fragment fragment);
    // Waits for both buffers, and until all copies out are complete for the scalar pipe that raises the signal.
    void finish() { buffers_.finish(); }

private:
    void put_batch(std::uint64_t first, std::size_t rows);
    void put_long_row(std::uint64_t row);
    void fill(const std::byte* source, std::size_t rows, std::size_t bytes);
    void drain(std::size_t offset, std::uint32_t slot, std::size_t begin, std::size_t bytes);

    npu::Core& core_;
    const CombineSend& send_;
    std::byte* remote_;
    StagingBuffers buffers_;
};

}  // namespace npushmem::moe
