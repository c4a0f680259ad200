// SPDX-License-Identifier: BSD-3-Clause
// Which addresses of this process are symmetric memory, of whichever world. The address space belongs to the process,
// so the worlds of a process share this one list.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace npushmem {

// A range that nobody else claims while the object lives. Any thread.
class AddressClaim {
public:
    // Returns nothing if the range overlaps one that is claimed.
    static std::optional<AddressClaim> take(const void* address, std::uint64_t bytes);

    AddressClaim(AddressClaim&& other) noexcept : begin_(std::exchange(other.begin_, 0)) {}
    AddressClaim& operator=(AddressClaim&& other) noexcept {
        std::swap(begin_, other.begin_);
        return *this;
    }
    ~AddressClaim();

private:
    explicit AddressClaim(std::uintptr_t begin) : begin_(begin) {}

    std::uintptr_t begin_;  // 0: moved from
};

}  // namespace npushmem
