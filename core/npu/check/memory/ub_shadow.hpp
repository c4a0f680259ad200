// SPDX-License-Identifier: BSD-3-Clause
// What is known about the unified buffer of one core: who wrote and who read which bytes last.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/npu/check/memory/segment_map.hpp"
#include "core/npu/check/report/findings.hpp"
#include "npushmem/npu/core_state.hpp"

namespace npushmem::npu::check {

class UbShadow {
public:
    using Address = std::uintptr_t;

    UbShadow(const detail::UbRegion& ub, FindingLog& findings)
        : base_(number_of(ub.base)), bytes_of_ub_(ub.bytes + ub.reserved), findings_(findings) {}

    [[nodiscard]] bool contains(Address address) const { return address - base_ < bytes_of_ub_; }
    // `clock`: what the access is ordered behind.
    void read(Address begin, Address end, const Access& access, const Clock& clock);
    void write(Address begin, Address end, const Access& access, const Clock& clock, bool padding);
    // Where in [begin, begin + bytes) there is padding, as offsets; and more padding.
    using Range = std::pair<Address, Address>;
    [[nodiscard]] std::vector<Range> padding_in(Address begin, std::size_t bytes) const;
    void add_padding(Address begin, Address end);

    // A buffer of ub_alloc or, `placed`, of ub_at.
    void allocate(std::size_t offset, std::size_t bytes, bool placed, const Access& access);
    void release(std::size_t mark);

private:
    struct Bytes {
        Access write;
        std::array<Access, pipes_per_core> reads{};
        bool padding = false;
        bool undefined = false;  // allocated since the write
    };
    struct Buffer {
        std::size_t begin;
        std::size_t end;
        bool placed;
        Access access;
    };

    void check_write(const Bytes& bytes, Address at, const Access& access, const Clock& clock);
    void report(Hazard hazard, const Access& access, const Access& other, std::size_t offset, const char* detail);

    Address base_;
    std::size_t bytes_of_ub_;
    FindingLog& findings_;
    SegmentMap<Bytes> bytes_;
    std::vector<Buffer> buffers_;
    bool any_padding_ = false;
};

}  // namespace npushmem::npu::check
