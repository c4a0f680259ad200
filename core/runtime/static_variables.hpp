// SPDX-License-Identifier: BSD-3-Clause
// The executable's global and static variables as symmetric memory: on which PEs they are symmetric with this PE's, and
// at which offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/config.hpp"
#include "core/memory/host_memory.hpp"
#include "core/memory/program_image.hpp"
#include "core/memory/symmetric_globals.hpp"

namespace npushmem {

class PeTable;

// The record that a PE sends of its executable; plain bytes.
struct StaticVariablesRecord {
    enum State : std::uint32_t { shareable, switched_off, no_variables, huge_pages, other_world };

    std::uint64_t identity = 0;
    std::uint64_t bytes = 0;
    State state = no_variables;
    std::uint32_t unused = 0;
};

class StaticVariables {
public:
    StaticVariables() = default;
    // Returns the record of this process.
    static StaticVariablesRecord record_of(const Settings& settings, const ProgramImage& image);

    // `pes` must outlive the object.
    StaticVariables(ProgramImage image, const PeTable& pes, int my_pe);

    // Returns the number of bytes in every slice: the maximum of all PEs.
    [[nodiscard]] std::uint64_t max_bytes() const { return max_bytes_; }
    // Moves this PE's variables into its slice at this offset, if they are symmetric.
    Status share(HostMemory& memory, int local_pe, std::uint64_t offset);
    void release_write_guard() const {
        if (data_) data_->release_write_guard();
    }
    [[nodiscard]] SymmetricGlobals* data() const { return data_.get(); }

    // Returns whether this PE's variables are in its slice.
    [[nodiscard]] bool shared() const { return data_ != nullptr; }
    // Returns whether the variables of all PEs are at the same offsets.
    [[nodiscard]] bool same_on_all_pes() const { return shared() && first_differing_pe_ < 0; }
    [[nodiscard]] const ProgramImage& image() const { return image_; }
    [[nodiscard]] std::uint64_t offset() const { return offset_; }
    [[nodiscard]] bool holds(const void* object) const {
        return shared() && reinterpret_cast<std::uintptr_t>(object) - image_.begin < image_.bytes;
    }
    // Checks that the object, which begins in this PE's variables, fits there, and that `pe` has the same one; -1:
    // every PE.
    [[nodiscard]] Status check(const char* what, const void* object, std::uint64_t bytes, int pe) const;
    // Returns as a clause why this PE's variables are not symmetric; empty if they are.
    [[nodiscard]] std::string reason_not_symmetric() const;
    [[nodiscard]] std::string describe() const;

private:
    [[nodiscard]] std::string reason_not_symmetric(int pe) const;

    ProgramImage image_;
    const PeTable* pes_ = nullptr;
    int my_pe_ = 0;
    std::uint64_t max_bytes_ = 0;
    std::uint64_t offset_ = 0;
    int first_differing_pe_ = -1;  // the first PE whose variables differ or are not symmetric; -1: none
    std::unique_ptr<SymmetricGlobals> data_;
};

}  // namespace npushmem
