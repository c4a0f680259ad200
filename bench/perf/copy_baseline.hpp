// memcpy of as many bytes as the case moves: one read and one write of each byte, the least that memory allows.
#pragma once

#include <cstddef>

#include "bench/perf/page_memory.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// Copies `bytes` of `source` into one of two private buffers, in turns like the receive buffers of the combine.
class CopyBaseline {
public:
    CopyBaseline(const std::byte* source, std::size_t bytes);

    Status ordinary();
    Status streaming();

private:
    std::byte* next_target();

    const std::byte* source_;
    std::size_t bytes_;
    PageMemory memory_;
    bool second_ = false;
};

}  // namespace npushmem::perf
