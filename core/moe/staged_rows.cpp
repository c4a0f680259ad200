#include "core/moe/staged_rows.hpp"

#include <algorithm>

namespace npushmem::moe {

StagedRows::StagedRows(npu::Core& core, const CombineSend& send, int destination)
    : core_(core), send_(send), remote_(core.remote(send.region, destination)), buffers_(core, buffer_bytes) {}

void StagedRows::put(Fragment fragment) {
    const std::size_t in_buffer = buffer_bytes / aligned_up(send_.layout.row_bytes(), npu::ub_alignment).value();
    const std::uint64_t end = fragment.first.value() + fragment.count.value();
    std::uint64_t row = fragment.first.value();
    while (row < end) {
        if (in_buffer == 0) {
            put_long_row(row++);
            continue;
        }
        const std::size_t rows = std::min({end - row, std::uint64_t{in_buffer}, std::uint64_t{npu::max_copy_blocks}});
        put_batch(row, rows);
        row += rows;
    }
}

void StagedRows::put_batch(std::uint64_t first, std::size_t rows) {
    const Bytes row = send_.layout.row_bytes();
    const std::size_t step = aligned_up(row, npu::ub_alignment).value();
    fill(send_.x + bytes_of(Rows{first}, row).value(), rows, row.value());
    for (std::size_t i = 0; i < rows; ++i) drain(i * step, core_.load(send_.slots + first + i), 0, row.value());
    buffers_.next();
}

void StagedRows::put_long_row(std::uint64_t row) {
    const std::size_t bytes = send_.layout.row_bytes().value();
    const std::byte* source = send_.x + bytes_of(Rows{row}, send_.layout.row_bytes()).value();
    const std::uint32_t slot = core_.load(send_.slots + row);
    for (std::size_t done = 0; done < bytes; done += buffer_bytes) {
        const std::size_t piece = std::min(buffer_bytes, bytes - done);
        fill(source + done, 1, piece);
        drain(0, slot, done, piece);
        buffers_.next();
    }
}

void StagedRows::fill(const std::byte* source, std::size_t rows, std::size_t bytes) {
    buffers_.wait_until_free();
    core_.data_copy_pad(buffers_.current(), npu::gm(source, rows * bytes), npu::PadShape{rows, bytes, 0, 0});
    buffers_.filled();
}

void StagedRows::drain(std::size_t offset, std::uint32_t slot, std::size_t begin, std::size_t bytes) {
    std::byte* target = remote_ + send_.layout.slot(send_.epoch, slot).value() + begin;
    core_.data_copy_pad(npu::gm(target, bytes), buffers_.current().from(offset), npu::PadShape{1, bytes, 0, 0});
}

}  // namespace npushmem::moe
