// SPDX-License-Identifier: BSD-3-Clause
// The symmetric memory of a checked job: one mapping, a part per PE, with the log of what each PE allocated.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/npu/check/report/findings.hpp"
#include "core/npu/core_set.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::check {

class JobHeap final : public MemoryNames {
public:
    static Result<std::unique_ptr<JobHeap>> create(int pes, std::size_t bytes);

    [[nodiscard]] int pes() const { return pes_; }
    [[nodiscard]] std::byte* base(int pe) const { return memory_.data() + static_cast<std::size_t>(pe) * part_; }
    [[nodiscard]] std::size_t part() const { return part_; }

    void* allocate(int pe, std::size_t bytes, const SourceLocation& where);
    void release(const void* of_pe_0);
    // Findings of H27.
    [[nodiscard]] std::vector<Finding> asymmetries(const std::string& kernel) const;

    // What was allocated, on all PEs.
    [[nodiscard]] std::vector<std::byte> save() const;
    void restore(const std::vector<std::byte>& saved);

    [[nodiscard]] bool cached(Address address) const override { return inside(address); }
    [[nodiscard]] std::string refusal(Address address, std::size_t bytes) const override;
    [[nodiscard]] std::string name_of(Address address) const override;
    [[nodiscard]] int pe_of(Address address) const override;

private:
    struct Allocation {
        std::size_t offset;
        std::size_t bytes;
        SourceLocation where;
        bool live = true;
    };
    struct Part {
        std::vector<Allocation> allocations;
        std::size_t used = 64;
    };

    JobHeap(int pes, std::size_t part, detail::AnonymousMapping memory);
    [[nodiscard]] bool inside(Address address) const;
    [[nodiscard]] std::size_t offset_of(Address address) const;
    // The last that begins at or before; null: none.
    [[nodiscard]] const Allocation* before(int pe, std::size_t offset) const;

    int pes_;
    std::size_t part_;
    detail::AnonymousMapping memory_;
    std::vector<Part> parts_;
};

// How one PE sees it.
class JobFabric final : public Fabric {
public:
    JobFabric(const JobHeap& heap, int pe) : heap_(heap), pe_(pe) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] int n_pes() const override { return heap_.pes(); }
    [[nodiscard]] void* remote(const void* symmetric, int pe) const override;
    [[nodiscard]] int pe_of(const void* address) const override {
        return heap_.pe_of(reinterpret_cast<std::uintptr_t>(address));
    }

private:
    const JobHeap& heap_;
    int pe_;
};

}  // namespace npushmem::npu::check
