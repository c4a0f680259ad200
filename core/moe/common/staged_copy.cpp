// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/staged_copy.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::moe {

using npu::Pipe;

void StagingBuffers::wait_until_free(int buffer) {
    if (std::exchange(busy_[buffer], false)) core_.wait_flag<Pipe::copy_out, Pipe::copy_in>(buffer);
}

void StagingBuffers::filled() {
    core_.set_flag<Pipe::copy_in, Pipe::copy_out>(current_);
    core_.wait_flag<Pipe::copy_in, Pipe::copy_out>(current_);
}

void StagingBuffers::next() {
    core_.set_flag<Pipe::copy_out, Pipe::copy_in>(current_);
    busy_[current_] = true;
    current_ ^= 1;
}

void StagingBuffers::finish() {
    for (const int buffer : {0, 1}) wait_until_free(buffer);
    core_.set_flag<Pipe::copy_out, Pipe::scalar>(end_flag);
    core_.wait_flag<Pipe::copy_out, Pipe::scalar>(end_flag);
}

// Together with TableColumns it fits into the part of the unified buffer that the reference kernel assumes.
static_assert(2 * StagedPack::buffer_bytes + 2 * 256 * npu::ub_alignment <= 188 * 1024);

StagedPack::StagedPack(npu::Core& core, const std::byte* x, Bytes row, std::byte* target)
    : core_(core),
      x_(x),
      row_(row.value()),
      step_(aligned_up(row, npu::ub_alignment).value()),
      in_buffer_(std::min(buffer_bytes / step_, npu::max_copy_blocks)),
      target_(target),
      buffers_(core, buffer_bytes) {}

void StagedPack::put(Fragment fragment) {
    const std::byte* source = x_ + fragment.first.value() * row_;
    std::uint64_t left = fragment.count.value();
    for (; in_buffer_ == 0 && left > 0; --left, source += row_) put_long_row(source);
    while (left > 0) {
        const std::size_t rows = std::min<std::uint64_t>(left, in_buffer_ - staged_);
        fill(source, rows, row_);
        staged_ += rows;
        source += rows * row_;
        left -= rows;
        if (staged_ == in_buffer_) flush(row_);
    }
}

void StagedPack::put_long_row(const std::byte* source) {
    for (std::size_t done = 0; done < row_; done += buffer_bytes) {
        const std::size_t piece = std::min(buffer_bytes, row_ - done);
        fill(source + done, 1, piece);
        staged_ = 1;
        flush(piece);
    }
}

void StagedPack::fill(const std::byte* source, std::size_t rows, std::size_t bytes) {
    if (staged_ == 0) buffers_.wait_until_free();
    const auto target = buffers_.current().from(staged_ * step_);
    if (bytes % npu::ub_alignment == 0)
        core_.data_copy(target, npu::gm(source, rows * bytes), rows * bytes);
    else
        core_.data_copy_pad(target, npu::gm(source, rows * bytes), npu::PadShape{rows, bytes, 0, 0});
}

// Writes out the blocks of `bytes` bytes in the current buffer, and switches to the other buffer.
void StagedPack::flush(std::size_t bytes) {
    buffers_.filled();
    const std::size_t all = staged_ * bytes;
    if (bytes % npu::ub_alignment == 0)
        core_.data_copy(npu::gm(target_, all), buffers_.current(), all);
    else
        core_.data_copy_pad(npu::gm(target_, all), buffers_.current(), npu::PadShape{staged_, bytes, 0, 0});
    buffers_.next();
    target_ += all;
    staged_ = 0;
}

void StagedPack::continue_at(std::byte* target) {
    if (staged_ > 0) flush(row_);
    target_ = target;
}

void StagedPack::finish() {
    if (staged_ > 0) flush(row_);
    buffers_.finish();
}

}  // namespace npushmem::moe
