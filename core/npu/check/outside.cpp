#include "core/npu/check/outside.hpp"

#include <cstring>

namespace npushmem::npu::check {
namespace {

constexpr std::size_t line_bytes = 64;

// Relaxed, byte by byte: others may write at the same time.
std::byte in_memory(std::uintptr_t address) {
    return static_cast<std::byte>(__atomic_load_n(reinterpret_cast<const std::uint8_t*>(address), __ATOMIC_RELAXED));
}

// `look(offset, word or byte)` until it says false, from the first byte to the last, by whole words where there are
// any. Relaxed, too.
template <class Look>
bool by_words(std::uintptr_t begin, std::size_t bytes, Look&& look) {
    constexpr std::size_t word = sizeof(std::uint64_t);
    std::size_t at = 0;
    for (; at < bytes && (begin + at) % word != 0; ++at)
        if (!look(at, in_memory(begin + at))) return false;
    for (; at + word <= bytes; at += word)
        if (!look(at, __atomic_load_n(reinterpret_cast<const std::uint64_t*>(begin + at), __ATOMIC_RELAXED)))
            return false;
    for (; at < bytes; ++at)
        if (!look(at, in_memory(begin + at))) return false;
    return true;
}

bool dirty(const CacheLine& line, std::size_t index) { return (line.dirty >> index & 1) != 0; }

}  // namespace

std::vector<std::byte> bytes_of(const Operand& operand) {
    std::vector<std::byte> bytes(operand.bytes * operand.blocks);
    std::byte* to = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, to += operand.bytes)
        by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            std::memcpy(to + at, &part, sizeof part);
            return true;
        });
    return bytes;
}

bool has_bytes(const Operand& operand, const std::vector<std::byte>& bytes) {
    const std::byte* from = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, from += operand.bytes) {
        const bool same = by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            return std::memcmp(from + at, &part, sizeof part) == 0;
        });
        if (!same) return false;
    }
    return true;
}

std::size_t changed_words(const Operand& operand, const std::vector<std::byte>& bytes) {
    constexpr std::uintptr_t word = sizeof(std::uint64_t);
    std::size_t changed = 0;
    const std::byte* from = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, from += operand.bytes) {
        std::uintptr_t last = 0;  // of the changed words; none is at 0
        by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            const std::uintptr_t here = (begin + at) / word * word;
            if (std::memcmp(from + at, &part, sizeof part) != 0 && here != last) {
                ++changed;
                last = here;
            }
            return true;
        });
    }
    return changed;
}

bool differs(std::uintptr_t at, std::size_t bytes, const CacheLine& line) {
    for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t index = at % line_bytes + i;
        if (!dirty(line, index) && in_memory(at + i) != line.bytes[index]) return true;
    }
    return false;
}

void refresh(std::uintptr_t line_begin, CacheLine& line) {
    for (std::size_t index = 0; index < line_bytes; ++index)
        if (!dirty(line, index)) line.bytes[index] = in_memory(line_begin + index);
}

bool Outside::stale(Address at, std::size_t bytes, const CacheLine& line) const {
    return line.acquires != acquires_ && differs(at, bytes, line);
}

Outside::Address Outside::lost(Address line_begin, const CacheLine& line) {
    for (std::size_t index = 0; index < line_bytes; ++index)
        if (!dirty(line, index) && in_memory(line_begin + index) != line.bytes[index]) return line_begin + index;
    return 0;
}

}  // namespace npushmem::npu::check
