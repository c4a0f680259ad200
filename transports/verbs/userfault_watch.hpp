// The mappings of this process, as /proc/self/maps has them.
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
    bool private_anonymous = false;  // nobody else's, and no file's
};

// Calls `each` in the order of the addresses until it returns false. Takes and gives back no memory of its own: who
// holds malloc's locks may wait for the caller. Any thread; what changes meanwhile is seen before or after the change.
void for_each_mapping(const std::function<bool(const ProcessMapping&)>& each);

// Is all of it private memory that is no file's?
bool is_private_anonymous(const AddressRange& pages);

// The kernel's userfaultfd as a watch over private anonymous memory: stacks, heaps, what malloc gives. No right is
// needed, but some containers forbid the call. No fault is ever delivered, as no page is protected.
//
// Who unmaps watched memory is held in the kernel until the event has been read. So a thread reads them, which takes no
// lock and no memory: whoever is held may have malloc's locks, or may be a signal's handler on top of any function of
// this class. A change that has begun and whose event has not been read yet shows by an error of other calls, so that
// `changes` misses none.
//
// A child of a fork has the same userfaultfd, so closing it need not end it. Before the thread ends nothing is watched
// any more, and nobody waits for it.
//
// One thread at a time calls, any thread.
class UserfaultWatch final : public MemoryWatch {
public:
    // The error says why there is none.
    static Result<std::unique_ptr<UserfaultWatch>> open();
    ~UserfaultWatch() override;

    bool watch(const AddressRange& pages) override;
    Position now() override;
    ChangesResult changes(Position& position, const ChangeHandler& gone) override;

    // With one more than these everything is forgotten, and watched anew from its next use on: each may be a mapping of
    // its own, of which the kernel has a limited number.
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
    // The thread's
    void run();
    void read_events();
    void drain();
    void record_change(const AddressRange& gone);
    void unwatch_mapping_at(std::uintptr_t address) const;
    [[nodiscard]] bool is_change_in_progress() const;

    int descriptor_;
    int stop_;
    // What the thread tells the caller. `reading_` is true from before an event is read until it is in `changes_` and
    // what it moved is watched no longer.
    std::atomic<bool> reading_{false};
    std::array<Change, max_changes> changes_;  // the latest
    std::atomic<std::uint64_t> count_{0};      // of changes so far
    // The caller's
    Position skipped_ = 0;               // positions that no change has
    std::vector<AddressRange> watched_;  // and what may no longer be
    std::thread thread_;                 // from the first watch on
};

}  // namespace npushmem::verbs
