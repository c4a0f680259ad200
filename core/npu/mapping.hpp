// Anonymous memory straight from the kernel: zero, page-aligned, committed when touched.
#pragma once

#include <cstddef>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu::detail {

class Mapping {
public:
    // Code::memory with the size and the system's reason.
    static Result<Mapping> create(std::size_t bytes, const char* purpose);

    Mapping() = default;
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    // Makes a page-aligned part inaccessible.
    [[nodiscard]] Status forbid(std::size_t offset, std::size_t bytes) const;

private:
    Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace npushmem::npu::detail
