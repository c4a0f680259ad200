// The executable's variables as all PEs have them: whose are symmetric with this PE's, and where.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/settings.hpp"
#include "core/memory/host_memory.hpp"
#include "core/memory/program_image.hpp"
#include "core/memory/symmetric_globals.hpp"

namespace npushmem {

struct PeRecord;

// What a PE tells the others of its executable; plain bytes.
struct StaticVariablesRecord {
    enum State : std::uint32_t { shareable, switched_off, no_variables, huge_pages };

    std::uint64_t identity = 0;
    std::uint64_t bytes = 0;
    State state = no_variables;
    std::uint32_t unused = 0;
};

class StaticVariables {
public:
    StaticVariables() = default;
    // Of this process.
    static StaticVariablesRecord record_of(const Settings& settings, const ProgramImage& image);

    // `records` outlive this.
    StaticVariables(ProgramImage image, std::span<const PeRecord> records, int my_pe);

    // Bytes in every slice: the most that any PE needs.
    [[nodiscard]] std::uint64_t max_bytes() const { return max_bytes_; }
    // Puts this PE's variables into its slice, at this offset, if they are to be there.
    Status share(HostMemory& memory, int local_pe, std::uint64_t offset);
    void release_write_guard() const {
        if (data_) data_->release_write_guard();
    }
    [[nodiscard]] SymmetricGlobals* data() const { return data_.get(); }

    // Are this PE's in its slice?
    [[nodiscard]] bool shared() const { return data_ != nullptr; }
    // Are they, and those of all PEs, in the same places?
    [[nodiscard]] bool same_on_all_pes() const { return shared() && first_differing_pe_ < 0; }
    [[nodiscard]] const ProgramImage& image() const { return image_; }
    [[nodiscard]] std::uint64_t offset() const { return offset_; }
    [[nodiscard]] bool holds(const void* object) const {
        return shared() && reinterpret_cast<std::uintptr_t>(object) - image_.begin < image_.bytes;
    }
    // The object, of which this PE holds the beginning, is whole, and one at that PE; -1: at every PE.
    [[nodiscard]] Status check(const char* what, const void* object, std::uint64_t bytes, int pe) const;
    // Why this PE's are not symmetric, as a clause; empty when they are.
    [[nodiscard]] std::string reason_not_symmetric() const;
    [[nodiscard]] std::string describe() const;

private:
    [[nodiscard]] std::string reason_not_symmetric(int pe) const;

    ProgramImage image_;
    std::span<const PeRecord> records_;
    int my_pe_ = 0;
    std::uint64_t max_bytes_ = 0;
    std::uint64_t offset_ = 0;
    int first_differing_pe_ = -1;  // the first PE whose variables are elsewhere, or not symmetric; -1: none
    std::unique_ptr<SymmetricGlobals> data_;
};

}  // namespace npushmem
