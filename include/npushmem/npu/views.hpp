// SPDX-License-Identifier: BSD-3-Clause
// Typed views of the two memories of a kernel, UB and GM. A view is an address and a count; copying it copies no data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "npushmem/npu/export.hpp"

namespace npushmem::npu {

namespace detail {
// Throws KernelError(Code::range).
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_subview(const char* kind, std::size_t offset, std::size_t count,
                                                   std::size_t size);
}  // namespace detail

// `size()` elements of T in the memory that Tag names. The address is for Core's operations. A kernel that dereferences
// it works in fast mode, but other modes cannot check that access.
template <class T, class Tag>
class memory_view {
    static_assert(std::is_trivially_copyable_v<T>, "device memory holds trivially copyable elements only");

public:
    using element_type = T;

    constexpr memory_view() = default;
    // The caller guarantees that [data, data + size) is valid.
    constexpr memory_view(T* data, std::size_t size) : data_(data), size_(size) {}
    // A view for writing is also one for reading.
    template <class U>
    requires(std::is_same_v<T, const U>) constexpr memory_view(
        const memory_view<U, Tag>& other)  // NOLINT(google-explicit-constructor)
        : data_(other.data()), size_(other.size()) {}

    [[nodiscard]] constexpr T* data() const { return data_; }
    [[nodiscard]] constexpr std::size_t size() const { return size_; }
    [[nodiscard]] constexpr std::size_t size_bytes() const { return size_ * sizeof(T); }

    // `count` elements starting at `offset`. Throws KernelError unless all are inside this view.
    [[nodiscard]] constexpr memory_view sub(std::size_t offset, std::size_t count) const {
        if (offset > size_ || count > size_ - offset) detail::fail_subview(Tag::name, offset, count, size_);
        return {data_ + offset, count};
    }
    // All elements from `offset` to the end.
    [[nodiscard]] constexpr memory_view from(std::size_t offset) const {
        return sub(offset, offset <= size_ ? size_ - offset : 0);
    }
    // The same bytes as elements of U; omits bytes after the last whole U.
    template <class U>
    [[nodiscard]] memory_view<U, Tag> as() const {
        return {reinterpret_cast<U*>(data_), size_bytes() / sizeof(U)};
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

struct ub_tag {
    static constexpr const char* name = "UB";
};
struct gm_tag {
    static constexpr const char* name = "GM";
};

// Unified buffer of one vector core; created by Core::ub_alloc. Valid until the kernel returns on that core.
template <class T>
using ub_view = memory_view<T, ub_tag>;

// Global memory: the symmetric heap of this PE or (through Core::remote) of a peer, or any other memory of the process.
template <class T>
using gm_view = memory_view<T, gm_tag>;

// gm(pointer, count) deduces the element type.
template <class T>
constexpr gm_view<T> gm(T* data, std::size_t size) {
    return {data, size};
}

}  // namespace npushmem::npu
