// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are threads of one process.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::fakes {

// State shared by the ranks. If a rank aborts or does not arrive within the timeout, the calls of all others fail.
class FakeJob {
public:
    explicit FakeJob(int nranks, std::chrono::milliseconds timeout = std::chrono::seconds(20))
        : nranks_(nranks), timeout_(timeout), sent_(static_cast<std::size_t>(nranks)) {}

    [[nodiscard]] int nranks() const { return nranks_; }

    // Collective. Returns the contributions of all ranks, in the order of ranks.
    Status gather(int rank, std::span<const std::byte> send, std::span<std::byte> receive) {
        std::unique_lock lock(mutex_);
        if (!failure_.ok()) return failure_;
        sent_[static_cast<std::size_t>(rank)].assign(send.begin(), send.end());
        const std::uint64_t round = round_;
        if (++arrived_ == nranks_) finish_round();
        const bool in_time = changed_.wait_for(lock, timeout_, [&] { return round_ != round || !failure_.ok(); });
        if (round_ == round && !in_time)
            failure_ = {Code::timeout, "rank " + std::to_string(rank) + " waited in vain for the others"};
        if (round_ == round) return failure_;
        return copy_gathered(receive);
    }

    void abort(int rank, const std::string& reason) {
        const std::lock_guard lock(mutex_);
        if (failure_.ok()) failure_ = {Code::aborted, "rank " + std::to_string(rank) + " failed: " + reason};
        changed_.notify_all();
    }

    Status failure() {
        const std::lock_guard lock(mutex_);
        return failure_;
    }

private:
    void finish_round() {
        gathered_.clear();
        for (const auto& part : sent_) gathered_.insert(gathered_.end(), part.begin(), part.end());
        arrived_ = 0;
        ++round_;
        changed_.notify_all();
    }
    // A round's result stays until all ranks have entered the next round, so that every rank can read it.
    Status copy_gathered(std::span<std::byte> receive) const {
        if (receive.size() != gathered_.size()) return {Code::mismatch, "the ranks gave different numbers of bytes"};
        std::copy(gathered_.begin(), gathered_.end(), receive.begin());
        return {};
    }

    const int nranks_;
    const std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::vector<std::byte>> sent_;
    std::vector<std::byte> gathered_;
    int arrived_ = 0;
    std::uint64_t round_ = 0;
    Status failure_;
};

class FakeBootstrap final : public Bootstrap {
public:
    FakeBootstrap(std::shared_ptr<FakeJob> job, int rank) : job_(std::move(job)), rank_(rank) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return job_->nranks(); }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        return job_->gather(rank_, send, receive);
    }
    Status barrier() override { return job_->gather(rank_, {}, {}); }
    void abort(const std::string& reason) override { job_->abort(rank_, reason); }
    Status check() override { return job_->failure(); }

private:
    std::shared_ptr<FakeJob> job_;
    int rank_;
};

}  // namespace npushmem::fakes
