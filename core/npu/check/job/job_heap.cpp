// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job/job_heap.hpp"

#include "core/npu/source_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/host_facts.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::size_t heap_line = 64;

}  // namespace

Result<std::unique_ptr<JobHeap>> JobHeap::create(int pes, std::size_t bytes) {
    const std::size_t part = rounded_up(bytes, 4096);
    auto memory =
        detail::AnonymousMapping::create(static_cast<std::size_t>(pes) * part, "the symmetric heaps of a checked job");
    if (!memory.ok()) return memory.status();
    return std::unique_ptr<JobHeap>(new JobHeap(pes, part, std::move(memory).value()));
}

JobHeap::JobHeap(int pes, std::size_t part, detail::AnonymousMapping memory)
    : pes_(pes), part_(part), memory_(std::move(memory)), parts_(static_cast<std::size_t>(pes)) {}

bool JobHeap::inside(Address address) const {
    return address - reinterpret_cast<Address>(memory_.data()) < static_cast<std::size_t>(pes_) * part_;
}

std::size_t JobHeap::offset_of(Address address) const {
    return (address - reinterpret_cast<Address>(memory_.data())) % part_;
}

int JobHeap::pe_of(Address address) const {
    return inside(address) ? static_cast<int>((address - reinterpret_cast<Address>(memory_.data())) / part_) : -1;
}

void* JobHeap::allocate(int pe, std::size_t bytes, const SourceLocation& where) {
    Part& part = parts_.at(static_cast<std::size_t>(pe));
    // An unused line separates allocations.
    if (bytes > part_ || part.used + rounded_up(bytes, heap_line) + heap_line > part_) throw std::bad_alloc();
    part.allocations.push_back({part.used, bytes, where});
    part.used += rounded_up(bytes, heap_line) + heap_line;
    return base(pe) + part.allocations.back().offset;
}

void JobHeap::release(const void* of_pe_0) {
    const std::size_t offset = offset_of(reinterpret_cast<Address>(of_pe_0));
    for (Part& part : parts_) {
        for (Allocation& allocation : part.allocations) {
            if (allocation.offset == offset) allocation.live = false;
        }
    }
}

const JobHeap::Allocation* JobHeap::before(int pe, std::size_t offset) const {
    const auto& all = parts_[static_cast<std::size_t>(pe)].allocations;
    const auto found =
        std::ranges::upper_bound(all, offset, {}, [](const Allocation& allocation) { return allocation.offset; });
    return found == all.begin() ? nullptr : &*std::prev(found);
}

std::string JobHeap::refusal(Address address, std::size_t bytes) const {
    if (!inside(address)) return {};
    const Allocation* found = before(pe_of(address), offset_of(address));
    const std::size_t offset = offset_of(address);
    if (found == nullptr || offset + bytes > found->offset + found->bytes) return "outside every allocation";
    return found->live ? std::string{} : "the allocation was freed";
}

std::string JobHeap::name_of(Address address) const {
    if (!inside(address)) return fmt::format("host memory at {:#x}", address);
    const int pe = pe_of(address);
    const Allocation* found = before(pe, offset_of(address));
    if (found == nullptr) return fmt::format("symmetric heap + {} of PE {}", offset_of(address), pe);
    const auto number = found - parts_[static_cast<std::size_t>(pe)].allocations.data();
    return fmt::format("symmetric allocation {} ({} bytes, {}) + {} of PE {}", number, found->bytes,
                       text_of(found->where), offset_of(address) - found->offset, pe);
}

std::vector<Finding> JobHeap::asymmetries(const std::string& kernel) const {
    std::vector<Finding> findings;
    const auto side = [](int pe, const Allocation& a) {
        return FindingSide{pe, -1, Pipe::scalar, "allocation", a.where};
    };
    const auto& first = parts_[0].allocations;
    for (int pe = 1; pe < pes_; ++pe) {
        const auto& mine = parts_[static_cast<std::size_t>(pe)].allocations;
        for (std::size_t i = 0; i < std::max(first.size(), mine.size()); ++i) {
            if (i < first.size() && i < mine.size() && first[i].bytes == mine[i].bytes) continue;
            const std::string here = i < mine.size() ? fmt::format("{} bytes", mine[i].bytes) : "missing";
            const std::string there = i < first.size() ? fmt::format("{} bytes", first[i].bytes) : "missing";
            const FindingSide at = i < mine.size() ? side(pe, mine[i]) : side(0, first[i]);
            const FindingSide other = i < mine.size() && i < first.size() ? side(0, first[i]) : FindingSide{};
            findings.push_back({Hazard::asymmetric_heap, kernel, at, other, fmt::format("symmetric allocation {}", i),
                                fmt::format("{} on PE {}, {} on PE 0", here, pe, there), 1});
            break;
        }
    }
    return findings;
}

std::vector<std::byte> JobHeap::save() const {
    std::vector<std::byte> saved;
    for (int pe = 0; pe < pes_; ++pe) {
        saved.insert(saved.end(), base(pe), base(pe) + parts_[static_cast<std::size_t>(pe)].used);
    }
    return saved;
}

void JobHeap::restore(const std::vector<std::byte>& saved) {
    const std::byte* from = saved.data();
    for (int pe = 0; pe < pes_; ++pe) {
        const std::size_t used = parts_[static_cast<std::size_t>(pe)].used;
        std::memcpy(base(pe), from, used);
        from += used;
    }
}

void* JobFabric::remote(const void* symmetric, int pe) const {
    const auto address = reinterpret_cast<std::uintptr_t>(symmetric);
    if (heap_.pe_of(address) != pe_) return nullptr;
    return heap_.base(pe) + (static_cast<const std::byte*>(symmetric) - heap_.base(pe_));
}

}  // namespace npushmem::npu::check
