// The end of a PMIx operation, awaited for a limited time. The library calls back from its own thread, possibly after
// the waiting has been given up: what is called back belongs to both sides.
#pragma once

#include <pmix.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "bootstrap/launcher/launcher.hpp"

namespace npushmem::pmix {

class Completion {
public:
    // For the library, with argument(), once.
    static void on_done(pmix_status_t status, void* argument) {
        const std::unique_ptr<std::shared_ptr<State>> theirs(static_cast<std::shared_ptr<State>*>(argument));
        State& state = **theirs;
        const std::scoped_lock lock(state.mutex);
        state.result = status;
        state.changed.notify_all();
    }
    // The library's share of the state; given back by on_done or not_started.
    void* argument() { return given_ = new std::shared_ptr<State>(state_); }

    // The library has refused the operation and will not call back.
    pmix_status_t not_started(pmix_status_t refusal) {
        delete given_;
        return refusal;
    }
    // PMIX_ERR_TIMEOUT when the time is over.
    pmix_status_t await(launcher::Deadline deadline) {
        std::unique_lock lock(state_->mutex);
        const auto left = std::chrono::milliseconds(deadline.poll_milliseconds());
        const bool done = state_->changed.wait_for(lock, left, [this] { return state_->result.has_value(); });
        return done ? *state_->result : PMIX_ERR_TIMEOUT;
    }

private:
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<pmix_status_t> result;
    };

    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::shared_ptr<State>* given_ = nullptr;
};

}  // namespace npushmem::pmix
