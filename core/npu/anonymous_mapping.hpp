// Anonymous memory straight from the kernel: zero, page-aligned, committed when touched.
#pragma once

#include <cstddef>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu::detail {

class AnonymousMapping {
public:
    // Code::memory with the size and the system's reason.
    static Result<AnonymousMapping> create(std::size_t bytes, const char* purpose);

    AnonymousMapping() = default;
    AnonymousMapping(AnonymousMapping&& other) noexcept;
    AnonymousMapping& operator=(AnonymousMapping&& other) noexcept;
    AnonymousMapping(const AnonymousMapping&) = delete;
    AnonymousMapping& operator=(const AnonymousMapping&) = delete;
    ~AnonymousMapping();

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    // Makes a page-aligned part inaccessible.
    [[nodiscard]] Status protect(std::size_t offset, std::size_t bytes) const;

private:
    AnonymousMapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace npushmem::npu::detail
