// Recognises that a core waits in a loop of its own: it reads again what it has read, finds the same, and changes
// nothing meanwhile. Whatever calls the loop is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npushmem::npu::check {

// For one core.
class WaitLoop {
public:
    // So many repeated reads in a row make a wait loop.
    static constexpr int min_repeats = 16;

    // A read of `what` found `value`; `version` changes with the memory. True: this core waits, and has read the same
    // in this version of the memory before.
    bool read(std::uintptr_t what, std::uint64_t value, std::uint64_t version);
    // The core did something that others can see, or that changes what it reads.
    void changed();
    [[nodiscard]] bool recognised() const { return repeats_ >= min_repeats; }
    [[nodiscard]] bool just_recognised() const { return repeats_ == min_repeats; }
    // The last read repeated one of the same version, and so does nothing new.
    [[nodiscard]] bool repeats() const { return repeats_ > 0; }

private:
    struct Entry {
        std::uintptr_t what = 0;
        std::uint64_t value = 0;
        std::uint64_t version = 0;
        std::uint64_t epoch = 0;  // 0: unused; entries of another epoch than the current one are forgotten
    };
    static constexpr std::size_t first_size = 16;
    static constexpr std::size_t max_size = 4096;

    // Of `what`, or a free one. Forgets everything when a loop reads more than the table holds.
    [[nodiscard]] Entry& entry_of(std::uintptr_t what);
    [[nodiscard]] Entry* probe(std::uintptr_t what);
    void grow();

    std::vector<Entry> entries_;
    std::uint64_t epoch_ = 1;
    int repeats_ = 0;
};

}  // namespace npushmem::npu::check
