// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/memory/ub_shadow.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::npu::check {
namespace {

// Padding is harmless while it stays in UB: bytes that leave it, or that S reads, are used as data.
bool uses_data(Pipe pipe) { return pipe == Pipe::scalar || pipe == Pipe::copy_out; }

}  // namespace

void UbShadow::report(Hazard hazard, const Access& access, const Access& other, std::size_t offset,
                      const char* detail) {
    findings_.report(hazard, findings_.side_of(access), other, fmt::format("UB + {}", offset), detail);
}

void UbShadow::read(Address begin, Address end, const Access& access, const Clock& clock) {
    bytes_.update(begin, end, [&](Address at, Address, Bytes& bytes) {
        if (!bytes.write.exists()) {
            report(Hazard::unwritten_ub, access, {}, at - base_,
                   "reads UB that nothing has written since the kernel began");
        } else if (bytes.undefined) {
            report(Hazard::unwritten_ub, access, bytes.write, at - base_,
                   "reads UB that was allocated again and not written since");
        } else if (!bytes.write.complete(clock)) {
            const bool same = bytes.write.agent == access.agent;
            report(same ? Hazard::same_pipe : Hazard::missing_flag, access, bytes.write, at - base_,
                   same ? "reads what the command before it in the same pipe may still be writing"
                        : "reads what another pipe may still be writing");
        } else if (bytes.padding && uses_data(access.pipe())) {
            report(Hazard::unwritten_ub, access, bytes.write, at - base_,
                   "uses bytes as data that are padding up to 32 bytes");
        }
        bytes.reads[static_cast<std::size_t>(access.pipe())] = access;
    });
}

void UbShadow::check_write(const Bytes& bytes, Address at, const Access& access, const Clock& clock) {
    if (bytes.write.exists() && !bytes.write.complete(clock)) {
        const bool same = bytes.write.agent == access.agent;
        report(same ? Hazard::same_pipe : Hazard::missing_flag, access, bytes.write, at - base_,
               same ? "overwrites what the command before it in the same pipe may still be writing"
                    : "overwrites what another pipe may still be writing");
    }
    for (const Access& read : bytes.reads) {
        // A scalar read is over when the next command is issued.
        if (!read.exists() || read.pipe() == Pipe::scalar || read.complete(clock) || read.same(access)) continue;
        if (read.agent == access.agent) {
            report(Hazard::same_pipe, access, read, at - base_,
                   "overwrites what the command before it in the same pipe may still read");
        } else if (read.pipe() == Pipe::copy_out) {
            report(Hazard::staging_reuse, access, read, at - base_,
                   "overwrites a buffer that a copy out of it may still read");
        } else {
            report(Hazard::missing_flag, access, read, at - base_, "overwrites what another pipe may still be reading");
        }
    }
}

void UbShadow::write(Address begin, Address end, const Access& access, const Clock& clock, bool padding) {
    if (begin >= end) return;
    bytes_.visit(begin, end, [&](Address at, Address, const Bytes& bytes) { check_write(bytes, at, access, clock); });
    bytes_.assign(begin, end, Bytes{access, {}, padding, false});
    any_padding_ = any_padding_ || padding;
}

std::vector<UbShadow::Range> UbShadow::padding_in(Address begin, std::size_t bytes) const {
    std::vector<Range> ranges;
    if (!any_padding_) return ranges;
    bytes_.visit(begin, begin + bytes, [&](Address from, Address to, const Bytes& part) {
        if (part.padding) ranges.emplace_back(from - begin, to - begin);
    });
    return ranges;
}

void UbShadow::add_padding(Address begin, Address end) {
    any_padding_ = true;
    bytes_.update(begin, end, [](Address, Address, Bytes& bytes) { bytes.padding = true; });
}

void UbShadow::allocate(std::size_t offset, std::size_t bytes, bool placed, const Access& access) {
    const std::size_t end = offset + bytes;
    for (const Buffer& live : buffers_) {
        if (end <= live.begin || offset >= live.end) continue;
        // The same place again, or a part of it, is another view and not another buffer.
        if (placed && live.placed && offset >= live.begin && end <= live.end) return;
        report(Hazard::ub_overlap, access, live.access, std::max(offset, live.begin),
               "shares bytes with a live UB buffer");
    }
    buffers_.push_back({offset, end, placed, access});
    if (placed || bytes == 0) return;
    bytes_.update(base_ + offset, base_ + end, [](Address, Address, Bytes& before) { before.undefined = true; });
}

void UbShadow::release(std::size_t mark) {
    std::erase_if(buffers_, [mark](const Buffer& buffer) { return !buffer.placed && buffer.begin >= mark; });
}

}  // namespace npushmem::npu::check
