#include "core/npu/check/scalar_cache.hpp"

namespace npushmem::npu::check {
namespace {

std::uint64_t* words_of(std::uintptr_t address) { return reinterpret_cast<std::uint64_t*>(address); }

}  // namespace

// Word by word and relaxed: PEs of other processes may write at the same time.
CacheLine& ScalarCache::fill(Address address, Stamp now) {
    CacheLine& line = lines_[address / 64];
    std::uint64_t words[8];
    for (int i = 0; i < 8; ++i) words[i] = __atomic_load_n(words_of(address / 64 * 64) + i, __ATOMIC_RELAXED);
    static_assert(sizeof words == sizeof line.bytes);
    __builtin_memcpy(line.bytes.data(), words, sizeof words);
    line.filled = now;
    return line;
}

void ScalarCache::to_memory(Address begin, const CacheLine& line) {
    std::uint64_t words[8];
    __builtin_memcpy(words, line.bytes.data(), sizeof words);
    for (int i = 0; i < 8; ++i) __atomic_store_n(words_of(begin) + i, words[i], __ATOMIC_RELAXED);
}

}  // namespace npushmem::npu::check
