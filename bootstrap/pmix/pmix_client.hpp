// SPDX-License-Identifier: BSD-3-Clause
// Client of a PMIx server.
#pragma once

#include <pmix.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "bootstrap/launcher/launched_job.hpp"

namespace npushmem::pmix {

// Waits for a PMIx operation, with a deadline. The library calls back from its own thread, possibly after the deadline,
// so both sides share the state.
class Completion {
public:
    // The library calls this once, with argument().
    static void on_done(pmix_status_t status, void* argument) {
        const std::unique_ptr<std::shared_ptr<State>> theirs(static_cast<std::shared_ptr<State>*>(argument));
        State& state = **theirs;
        const std::scoped_lock lock(state.mutex);
        state.result = status;
        state.changed.notify_all();
    }
    // The library's reference to the state; on_done or not_started releases it.
    void* argument() { return given_ = new std::shared_ptr<State>(state_); }

    // The library has rejected the operation and will not call back.
    pmix_status_t not_started(pmix_status_t refusal) {
        delete given_;
        return refusal;
    }
    // PMIX_ERR_TIMEOUT after the deadline.
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

// This process as a client of PMIx, through its library.
class PmixClient final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    static Result<PmixClient> begin();
    PmixClient(PmixClient&& other) noexcept
        : namespace_(std::move(other.namespace_)),
          rank_(other.rank_),
          nranks_(other.nranks_),
          broadcasts_(other.broadcasts_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> broadcast(const std::string& message, Deadline deadline) override;
    // The launcher assumes that a process that ends without this call has crashed.
    void end();

private:
    PmixClient() = default;
    [[nodiscard]] Result<std::string> get(const std::string& key, int from_rank, Deadline deadline) const;

    std::string namespace_;  // the job's name
    int rank_ = -1;
    int nranks_ = -1;
    std::uint64_t broadcasts_ = 0;  // messages so far; each has its own key
};

}  // namespace npushmem::pmix
