// Tells which of a process' watched memory is no longer what it was: unmapped, moved, or emptied.
#pragma once

#include <cstdint>
#include <functional>

namespace npushmem::verbs {

struct AddressRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] bool overlaps(const AddressRange& other) const { return begin < other.end && other.begin < end; }
    [[nodiscard]] bool has(const AddressRange& other) const { return begin <= other.begin && other.end <= end; }
    friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

class MemoryWatch {
public:
    // How far a reader of the changes is.
    using Position = std::uint64_t;
    using ChangeHandler = std::function<void(const AddressRange&)>;
    enum class ChangesResult {
        all,
        in_progress,  // a change is going on, and is told later: nothing that is watched may be taken for unchanged now
        overflow,  // more than are remembered: nothing that is watched since before may be taken for unchanged any more
    };

    MemoryWatch() = default;
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;
    virtual ~MemoryWatch() = default;

    // Whole pages. From here on what happens to them is told, until they are unmapped. False: of this memory it cannot.
    virtual bool watch(const AddressRange& pages) = 0;
    [[nodiscard]] virtual Position now() = 0;
    // Calls `gone` for every change since `position`, and moves that up.
    virtual ChangesResult changes(Position& position, const ChangeHandler& gone) = 0;
};

}  // namespace npushmem::verbs
