// Which parts of a slice have memory behind them. Kept in units, so that small objects share one, and only ranges that
// are not committed yet are ever handed to the operating system.
#pragma once

#include <cstdint>
#include <vector>

namespace npushmem {

class CommitMap {
public:
    static constexpr std::uint64_t unit = 64ULL << 10;

    struct Range {
        std::uint64_t offset;
        std::uint64_t bytes;
        friend bool operator==(const Range&, const Range&) = default;
    };

    explicit CommitMap(std::uint64_t slice_bytes) : committed_((slice_bytes + unit - 1) / unit) {}

    // Ranges, in whole units, that must be committed before [offset, offset + bytes) may be used.
    [[nodiscard]] std::vector<Range> missing(std::uint64_t offset, std::uint64_t bytes) const;
    void mark(const Range& range, bool committed);
    // The whole units inside [offset, offset + bytes): what can be given back when only that range is freed.
    [[nodiscard]] static Range inside(std::uint64_t offset, std::uint64_t bytes);
    [[nodiscard]] std::uint64_t committed_bytes() const { return units_ * unit; }

private:
    std::vector<bool> committed_;
    std::uint64_t units_ = 0;  // that are committed
};

}  // namespace npushmem
