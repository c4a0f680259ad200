// NPUSHMEM_CHECK: who uses a context whose options promise that not everybody does. Only contexts with such options
// have one of these, and only where calls are checked.
#pragma once

#include <atomic>
#include <thread>

#include "core/api/context.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

// Any thread.
class ContextUse {
public:
    // By the thread that makes the context.
    ContextUse(long options, int my_pe) : options_(options), my_pe_(my_pe) {}
    ContextUse(const ContextUse&) = delete;
    ContextUse& operator=(const ContextUse&) = delete;

    // One call on a context, from its beginning to its end.
    class Call {
    public:
        // Of a context without a ContextUse: nothing.
        explicit Call(const Context& context);
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call();
        // Code::argument: another thread owns the context, or is inside a call on it.
        [[nodiscard]] const Status& status() const { return status_; }

    private:
        ContextUse* use_;
        Status status_;
    };

private:
    long options_;
    int my_pe_;
    std::thread::id owner_thread_ = std::this_thread::get_id();
    // Relaxed: the number alone matters; what it finds is a mistake that the calls themselves do not depend on.
    std::atomic<int> active_calls_{0};
};

}  // namespace npushmem::api
