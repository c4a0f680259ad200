#include "core/npu/anonymous_mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace npushmem::npu::detail {
namespace {

std::string reason() { return std::generic_category().message(errno); }

// The address sanitizer keeps what it knew of the last stack that lay at these addresses, whoever mapped it.
void forget_former_use([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace

Result<AnonymousMapping> AnonymousMapping::create(std::size_t bytes, const char* purpose) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        return Status{Code::memory, fmt::format("cannot map {} bytes for {}: {}", bytes, purpose, reason())};
    }
    forget_former_use(data, bytes);
    return AnonymousMapping(static_cast<std::byte*>(data), bytes);
}

AnonymousMapping::AnonymousMapping(AnonymousMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AnonymousMapping& AnonymousMapping::operator=(AnonymousMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

AnonymousMapping::~AnonymousMapping() {
    if (data_ == nullptr) return;
    forget_former_use(data_, size_);
    munmap(data_, size_);
}

Status AnonymousMapping::protect(std::size_t offset, std::size_t bytes) const {
    if (mprotect(data_ + offset, bytes, PROT_NONE) == 0) return {};
    return {Code::memory, fmt::format("cannot protect {} bytes of a stack's guard: {}", bytes, reason())};
}

}  // namespace npushmem::npu::detail
