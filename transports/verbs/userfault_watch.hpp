// SPDX-License-Identifier: BSD-3-Clause
// A MemoryWatch by the kernel's userfaultfd, and the mappings of this process (/proc/self/maps).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "transports/verbs/registration_cache.hpp"

namespace npushmem::verbs {

struct ProcessMapping {
    AddressRange pages;
    bool private_anonymous = false;  // private, and not of a file
};

// Calls `each` in address order until it returns false. Allocates and frees no memory, because a thread that holds
// malloc's locks may wait for the caller. Any thread may call. A concurrent change is seen either before or after it.
void for_each_mapping(const std::function<bool(const ProcessMapping&)>& each);

// True when all of the range is private memory without a file.
bool is_private_anonymous(const AddressRange& pages);

// The kernel's userfaultfd as a watch over private anonymous memory: stacks and malloc's memory. It needs no privilege,
// but some containers forbid the call. No page is protected, so no fault is delivered.
//
// The kernel blocks a thread that unmaps watched memory until the event is read. So a thread of this class reads
// events, and takes no lock and no memory: the blocked thread may hold malloc's locks, or may be a signal handler on
// top of any function of this class. While a change is in progress, other calls fail with a certain error, so that
// `changes` misses none.
//
// A child of fork shares the userfaultfd, so closing it may not end it. So before the thread ends it stops watching all
// memory, and nothing blocks.
//
// One thread at a time calls, any thread.
class UserfaultWatch final : public MemoryWatch {
public:
    // The error says why no watch is available.
    static Result<std::unique_ptr<UserfaultWatch>> open();
    ~UserfaultWatch() override;

    bool watch(const AddressRange& pages) override;
    Position now() override;
    ChangesResult changes(Position& position, const ChangeHandler& handler) override;

    // Watching one range more drops all of them; they are watched again at their next use. Each range may be a mapping
    // of its own, and the kernel limits the number of mappings.
    static constexpr std::size_t max_watched = 4096;

private:
    static constexpr std::size_t max_changes = 256;
    struct Change {
        std::atomic<std::uintptr_t> begin{0};
        std::atomic<std::uintptr_t> end{0};
    };

    UserfaultWatch(int descriptor, int stop) : descriptor_(descriptor), stop_(stop) {}
    [[nodiscard]] Status check_usable() const;
    bool start_thread();
    bool register_range(const AddressRange& pages) const;
    bool unregister_range(const AddressRange& pages) const;
    void unwatch_all();
    // Functions of the thread
    void run();
    void read_events();
    void drain();
    void record_change(const AddressRange& range);
    void unwatch_mapping_at(std::uintptr_t address) const;
    [[nodiscard]] bool is_change_in_progress() const;

    int descriptor_;
    int stop_;
    // State that the thread publishes to the caller. `reading_` is true from before an event is read until it is in
    // `changes_` and the memory that it moved is no longer watched.
    std::atomic<bool> reading_{false};
    std::array<Change, max_changes> changes_;  // the latest
    std::atomic<std::uint64_t> count_{0};      // number of changes so far
    // State of the caller
    Position skipped_ = 0;               // positions without a change
    std::vector<AddressRange> watched_;  // including ranges that may no longer exist
    std::thread thread_;                 // started by the first watch
};

}  // namespace npushmem::verbs
