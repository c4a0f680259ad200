// What a device does when none of its cores can run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// Called by the threads that run cores; several threads of one device may call at once.
class WaitPolicy {
public:
    WaitPolicy() = default;
    WaitPolicy(const WaitPolicy&) = delete;
    WaitPolicy& operator=(const WaitPolicy&) = delete;
    virtual ~WaitPolicy() = default;

    // Polls, pauses, yields, sleeps until `ready()` (Code::ok) or `timeout` has passed (Code::timeout). Sleeps must be
    // bounded to a few milliseconds: a remote store cannot end them.
    virtual Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) = 0;
    // How often to look before until() is called: where what is waited for comes sooner than until() begins.
    [[nodiscard]] virtual int polls() const { return 0; }
    // One pause between two polls that a kernel makes by itself; the longer the larger `round`, which counts them.
    virtual void pause(std::uint64_t round) = 0;
    // Why a wait for a store by `pe` (-1: by any PE) must end: that PE is dead, or the job is being ended. Ok: go on.
    // Asked at intervals of 10 to 250 ms while nothing can run, never on the fast path.
    [[nodiscard]] virtual Status peer_status(int /*pe*/) const { return {}; }
};

}  // namespace npushmem::npu
