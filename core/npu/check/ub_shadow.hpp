// What is known about the unified buffer of one core: who wrote and who read which bytes last.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/segment_map.hpp"
#include "npushmem/npu/hazard.hpp"

namespace npushmem::npu::check {

class UbShadow {
public:
    using Address = std::uintptr_t;
    // `at`: the first byte in question.
    using Report = std::function<void(Hazard hazard, const Access& other, Address at, const char* detail)>;

    // `clock`: what the access is ordered behind.
    void read(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void write(Address begin, Address end, const Access& access, const Clock& clock, bool padding,
               const Report& report);
    // Where in [begin, begin + bytes) there is padding, as offsets; and more padding.
    using Range = std::pair<Address, Address>;
    [[nodiscard]] std::vector<Range> padding_in(Address begin, std::size_t bytes) const;
    void add_padding(Address begin, Address end);

    // A buffer that ub_alloc or ub_at gave out.
    void allocate(std::size_t offset, std::size_t bytes, bool placed, const Access& access, const Report& report);
    void release(std::size_t mark);

private:
    struct Bytes {
        Access write;
        std::array<Access, pipes_per_core> reads{};
        bool padding = false;
    };
    struct Buffer {
        std::size_t begin;
        std::size_t end;
        bool placed;
        Access access;
    };

    void check_write(const Bytes& bytes, Address at, const Access& access, const Clock& clock,
                     const Report& report) const;

    SegmentMap<Bytes> bytes_;
    std::vector<Buffer> buffers_;
    bool any_padding_ = false;
};

}  // namespace npushmem::npu::check
