#include "bench/perf/copy_baseline.hpp"

#include <cstdint>
#include <cstring>

#include "core/moe/nontemporal_copy.hpp"

namespace npushmem::perf {

CopyBaseline::CopyBaseline(const std::byte* source, std::size_t bytes)
    : source_(source), bytes_(bytes), memory_(page_memory(2 * bytes)) {}

std::byte* CopyBaseline::next_target() {
    second_ = !second_;
    return memory_.get() + (second_ ? bytes_ : 0);
}

Status CopyBaseline::ordinary() {
    if (bytes_ > 0) std::memcpy(next_target(), source_, bytes_);
    return {};
}

Status CopyBaseline::streaming() {
    moe::copy_nontemporal(next_target(), source_, bytes_);
    moe::nontemporal_fence();
    return {};
}

}  // namespace npushmem::perf
