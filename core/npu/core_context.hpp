// A vector core while a launch runs on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/npu/context.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::npu::detail {

class RunningLaunch;
class Runner;

enum class CoreStatus : unsigned char {
    runnable,              // can go on at once (also: has not begun)
    polling,               // let others run between two polls of its own
    awaiting_word,         // for `condition`
    awaiting_predicate,    // for `predicate`
    awaiting_core_barrier  // for the launch's core barrier to pass `barrier`
};

// A core that polls unchanging memory more often than this, where a scheduler watches, waits for a change.
inline constexpr int max_idle_polls = 16;

// What a core waits for that is no word in memory.
struct WaitPredicate {
    const std::function<bool()>& ready;
    const char* what;
    int pe;  // without which it cannot come true; -1: any
    bool fulfilled = false;
};

// Used by one thread only: the one that runs the launch.
class CoreContext {
public:
    CoreContext() = default;
    CoreContext(const CoreContext&) = delete;
    CoreContext& operator=(const CoreContext&) = delete;

    // Whether it need not wait any longer; not asked of polling cores.
    [[nodiscard]] bool ready();

    Context context;
    std::optional<Core> core;
    std::unique_ptr<CoreHooks> hooks;
    RunningLaunch* run = nullptr;
    Runner* runner = nullptr;
    // The ring of the runner; null when its kernel has ended.
    CoreContext* next = nullptr;
    CoreContext* previous = nullptr;

    CoreStatus status = CoreStatus::runnable;
    Condition condition{};
    WaitPredicate* predicate = nullptr;
    std::uint64_t seen = 0;
    std::uint64_t barrier = 0;
    std::uint64_t polls = 0;
    // Where a scheduler counts changes of the memory: the state at the last poll, and polls in a row that found no
    // change.
    std::uint64_t polled_version = 0;
    int idle_polls = 0;
    // The last word of a wait loop that checked mode recognised, and the value that it keeps; null: none.
    const void* polled = nullptr;
    std::uint64_t polled_value = 0;
    bool deferred = false;                    // by a scheduler: until no other can go on
    bool used_transport = false;              // in this launch: has waited for a transport, or begun something there
    std::unique_ptr<RemoteCoreState> remote;  // of the device's way to PEs that are not mapped
    Where where;
    std::chrono::nanoseconds timeout{0};   // of the current wait; 0: none
    std::chrono::nanoseconds deadline{0};  // on the steady clock; 0: not yet fixed
    // Not ok: the wait is over, without its condition.
    Status failure;
};

}  // namespace npushmem::npu::detail
