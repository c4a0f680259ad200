// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/npu/core_context.hpp"
#include "npushmem/npu/device_config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu::detail {

// Anonymous memory from mmap: zeroed, page-aligned, and committed on first access.
class AnonymousMapping {
public:
    // Maps `bytes` bytes. A failure returns Code::memory; its message has the size, `purpose` and the system's error.
    static Result<AnonymousMapping> create(std::size_t bytes, const char* purpose);

    AnonymousMapping() = default;
    AnonymousMapping(AnonymousMapping&& other) noexcept;
    AnonymousMapping& operator=(AnonymousMapping&& other) noexcept;
    AnonymousMapping(const AnonymousMapping&) = delete;
    AnonymousMapping& operator=(const AnonymousMapping&) = delete;
    ~AnonymousMapping();

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    // Makes a page-aligned range inaccessible.
    [[nodiscard]] Status protect(std::size_t offset, std::size_t bytes) const;

private:
    AnonymousMapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// The stacks, unified buffers (UB) and contexts of a launch's cores. A core set serves one launch at a time. The
// executor reuses core sets, because mapping their memory takes longer than most launches.
class CoreSet {
public:
    static Result<std::unique_ptr<CoreSet>> create(const DeviceConfig& config);

    // Makes the first `count` cores usable. The first call that includes a core protects the core's guard page.
    Status prepare(int count);
    [[nodiscard]] CoreContext& operator[](int index) { return cores_[static_cast<std::size_t>(index)]; }
    [[nodiscard]] UbRegion ub(int index) const;
    // Creates a new context on the core's stack, but does not run it: the first switch to the context calls
    // `entry(boost::context::fiber&&)`.
    template <class Entry>
    void start(int index, Entry&& entry);

private:
    CoreSet(const DeviceConfig& config, AnonymousMapping ub, AnonymousMapping stacks);

    struct Stack {
        std::byte* bottom;
        std::size_t bytes;
    };
    // A finished context frees nothing, because the core set owns the stacks.
    struct NoAllocator {
        boost::context::stack_context allocate() { return {}; }
        void deallocate(boost::context::stack_context&) {}
    };
    [[nodiscard]] Stack stack(int index) const;

    static constexpr std::size_t stack_colours = 8;
    static constexpr std::size_t stack_colour_bytes = 512;

    std::size_t ub_bytes_;
    std::size_t ub_reserved_;
    std::size_t stack_bytes_;
    AnonymousMapping ub_;
    AnonymousMapping stacks_;  // per core: one guard page, then the stack above it
    int prepared_ = 0;
    std::vector<CoreContext> cores_;
};

template <class Entry>
void CoreSet::start(int index, Entry&& entry) {
    const Stack place = stack(index);
    boost::context::stack_context whole;
    // Stacks grow down, and their tops are a whole number of pages apart. Without an offset, the tops of all stacks
    // would map to the same few sets of the L1 cache, and switches among many cores would cause conflict misses.
    const std::size_t offset = static_cast<std::size_t>(index) % stack_colours * stack_colour_bytes;
    whole.size = place.bytes - offset;
    whole.sp = place.bottom + whole.size;
    Context& context = cores_[static_cast<std::size_t>(index)].context;
    context.sanitizer.begin(place.bottom, place.bytes);
    context.handle =
        boost::context::fiber(std::allocator_arg, boost::context::preallocated(whole.sp, whole.size, whole),
                              NoAllocator{}, std::forward<Entry>(entry));
    context.sanitizer.made();
}

}  // namespace npushmem::npu::detail
