// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "core/moe/common/element.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Rows in memory of this process, which grows as needed and is not cleared.
class PrivateRows {
public:
    PrivateRows() = default;
    PrivateRows(PrivateRows&& from) noexcept : data_(std::move(from.data_)), size_(std::exchange(from.size_, {})) {}
    PrivateRows& operator=(PrivateRows&& from) noexcept {
        data_ = std::move(from.data_);
        size_ = std::exchange(from.size_, {});
        return *this;
    }

    // Makes room for the rows; the contents are lost when it grows. After a failure there is no room.
    Status reserve(Rows rows, Bytes row) {
        const Bytes needed = bytes_of(rows, row);
        if (needed <= size_) return {};
        size_ = {};
        data_.reset();
        data_.reset(new (std::nothrow) std::byte[needed.value()]);
        if (data_ == nullptr)
            return {Code::memory,
                    fmt::format("moe: this process cannot allocate private memory for {} rows of {} bytes",
                                rows.value(), row.value())};
        size_ = needed;
        return {};
    }

    [[nodiscard]] std::byte* data() const { return data_.get(); }
    [[nodiscard]] Bytes size() const { return size_; }

private:
    std::unique_ptr<std::byte[]> data_;
    Bytes size_;
};

}  // namespace npushmem::moe
