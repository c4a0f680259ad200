// Reads what ByteWriter wrote. Reading past the end gives zeros and makes ok() false: callers read everything, then ask
// once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace npushmem::rendezvous {

class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> data) : rest_(data) {}

    template <class Integer>
    Integer integer() {
        std::uint64_t value = 0;
        const auto from = take(sizeof(Integer));
        for (std::size_t i = 0; i < from.size(); ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
        return static_cast<Integer>(value);
    }

    void bytes(std::span<std::byte> to) {
        const auto from = take(to.size());
        std::copy(from.begin(), from.end(), to.begin());
    }

    std::string text(std::size_t limit) {
        const auto length = integer<std::uint16_t>();
        if (length > limit) ok_ = false;
        const auto from = take(std::min<std::size_t>(length, limit));
        return {reinterpret_cast<const char*>(from.data()), from.size()};
    }

    [[nodiscard]] bool ok() const { return ok_; }
    // Everything was there and nothing is left over.
    [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

private:
    std::span<const std::byte> take(std::size_t count) {
        if (count > rest_.size()) {
            ok_ = false;
            rest_ = {};
            return {};
        }
        const auto taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

    std::span<const std::byte> rest_;
    bool ok_ = true;
};

}  // namespace npushmem::rendezvous
