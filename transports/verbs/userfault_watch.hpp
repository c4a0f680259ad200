// The kernel's userfaultfd as a watch over private anonymous memory: stacks, heaps, what malloc gives. No right is
// needed since Linux 5.11, but some containers forbid the call. No fault is ever delivered, as no page is protected.
//
// Who unmaps watched memory is held in the kernel until the event has been read. So a thread reads them, which neither
// waits for anything but the lock below nor takes memory: whoever is held may have malloc's locks. A change that has
// begun and whose event has not been read yet shows by an error of other calls, so that `changes` misses none.
//
// Any thread.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <thread>

#include "npushmem/plugin/status.hpp"
#include "transports/verbs/memory_watch.hpp"

namespace npushmem::verbs {

class UserfaultWatch final : public MemoryWatch {
public:
    // The error says why there is none.
    static Result<std::unique_ptr<UserfaultWatch>> open();
    ~UserfaultWatch() override;

    bool watch(const AddressRange& pages) override;
    Position now() override;
    bool changes(Position& position, const Gone& gone) override;

private:
    static constexpr std::size_t remembered = 256;

    UserfaultWatch(int descriptor, int stop) : descriptor_(descriptor), stop_(stop) {}
    bool start_thread();
    void run();
    void read_events();
    void note(const AddressRange& gone) { gone_[count_++ % remembered] = gone; }
    [[nodiscard]] bool change_is_going_on() const;

    int descriptor_;
    int stop_;
    std::mutex lock_;  // of what follows; held for a few instructions, and never while memory is taken or given back
    std::array<AddressRange, remembered> gone_{};
    std::uint64_t count_ = 0;  // of changes so far
    std::thread thread_;       // from the first watch on; the caller's of `watch`, who are serialised
};

// Is all of it private memory that is no file's? Looks at the process' list of mappings.
bool is_private_anonymous(const AddressRange& pages);

}  // namespace npushmem::verbs
