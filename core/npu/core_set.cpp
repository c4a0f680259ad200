// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/core_set.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <system_error>

#include <cerrno>
#include <utility>

#include "core/base/host_facts.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace npushmem::npu::detail {
namespace {

std::string reason() { return std::generic_category().message(errno); }

// The address sanitizer keeps the poisoned ranges of an earlier stack at these addresses.
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

namespace {

// A guard is a page of the system: 64 KiB on many aarch64 hosts.
std::size_t whole_pages(std::size_t bytes) { return rounded_up(bytes, page_bytes()); }

}  // namespace

Result<std::unique_ptr<CoreSet>> CoreSet::create(const DeviceConfig& config) {
    const auto cores = static_cast<std::size_t>(config.cores());
    auto ub = AnonymousMapping::create(cores * config.ub_bytes, "the unified buffers");
    if (!ub.ok()) return ub.status();
    auto stacks =
        AnonymousMapping::create(cores * (page_bytes() + whole_pages(config.stack_bytes)), "the stacks of the cores");
    if (!stacks.ok()) return stacks.status();
    return std::unique_ptr<CoreSet>(new CoreSet(config, std::move(ub).value(), std::move(stacks).value()));
}

CoreSet::CoreSet(const DeviceConfig& config, AnonymousMapping ub, AnonymousMapping stacks)
    : ub_bytes_(config.ub_bytes),
      ub_reserved_(config.ub_reserved),
      stack_bytes_(whole_pages(config.stack_bytes)),
      ub_(std::move(ub)),
      stacks_(std::move(stacks)),
      cores_(static_cast<std::size_t>(config.cores())) {}

Status CoreSet::prepare(int count) {
    for (; prepared_ < count; ++prepared_) {
        const std::size_t guard = static_cast<std::size_t>(prepared_) * (page_bytes() + stack_bytes_);
        if (Status status = stacks_.protect(guard, page_bytes()); !status.ok()) return status;
    }
    return {};
}

UbRegion CoreSet::ub(int index) const {
    return {ub_.data() + static_cast<std::size_t>(index) * ub_bytes_, ub_bytes_ - ub_reserved_, ub_reserved_};
}

CoreSet::Stack CoreSet::stack(int index) const {
    return {stacks_.data() + static_cast<std::size_t>(index) * (page_bytes() + stack_bytes_) + page_bytes(),
            stack_bytes_};
}

}  // namespace npushmem::npu::detail
