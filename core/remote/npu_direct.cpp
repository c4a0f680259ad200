// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/npu_remote.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace npushmem {

// The queues of all cores.
class NpuDirect::Registry {
public:
    using All = std::vector<std::shared_ptr<Queues>>;

    Registry(RemotePeers& all_peers, int npes) : peers(all_peers), pes(npes) {}

    // Returns the queues as they are now; later changes create another list.
    [[nodiscard]] std::shared_ptr<const All> all() {
        const std::lock_guard guard(lock_);
        return all_;
    }
    // Returns whether at most one core has queues. Takes no lock, because every signal calls it. Acquire: pairs with
    // exchange_all(), so that a core is counted if it put something and informed this core of it.
    [[nodiscard]] bool one_or_none() const { return count_.load(std::memory_order_acquire) <= 1; }
    void add(std::shared_ptr<Queues> queues) {
        const std::lock_guard guard(lock_);
        auto more = std::make_shared<All>(*all_);
        more->push_back(std::move(queues));
        (void)exchange_all(std::move(more));
    }
    // Closes the queues, unless another core still completes their operations.
    void remove(const Queues* queues) {
        std::shared_ptr<const All> before;  // released without the lock: closing may wait
        const std::lock_guard guard(lock_);
        before = without(queues);
    }
    // No core uses the retired queues any more. They are closed with this object, because closing may wait for
    // operations in flight.
    void retire(const Queues* queues) {
        const std::lock_guard guard(lock_);
        const auto before = without(queues);
        for (const auto& each : *before)
            if (each.get() == queues) retired_.push_back(each);
    }

    RemotePeers& peers;
    const int pes;

private:
    std::shared_ptr<const All> without(const Queues* queues) {
        auto fewer = std::make_shared<All>(*all_);
        std::erase_if(*fewer, [&](const auto& each) { return each.get() == queues; });
        return exchange_all(std::move(fewer));
    }
    std::shared_ptr<const All> exchange_all(std::shared_ptr<const All> now) {
        count_.store(now->size(), std::memory_order_release);  // pairs with one_or_none()
        return std::exchange(all_, std::move(now));
    }

    std::mutex lock_;
    std::shared_ptr<const All> all_ = std::make_shared<All>();  // under lock_
    All retired_;                                               // likewise
    std::atomic<std::size_t> count_{0};                         // of all_
};

// The queues of one core. Other cores may complete its puts.
class NpuDirect::Queues {
public:
    Queues(RemotePeers& peers, int pes) : access(peers), per_pe_(static_cast<std::size_t>(pes)) {}
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;

    // Call it after posting an operation to the PE that may arrive later than what other cores begin. Release, for
    // posted(): a core that was informed by this one completes what was posted before.
    void count_posted(int pe) { to(pe).posted.fetch_add(1, std::memory_order_release); }
    // Returns the number of operations posted to the PE.
    [[nodiscard]] std::uint64_t posted(int pe) const { return to(pe).posted.load(std::memory_order_acquire); }
    // Records that everything posted up to `count` is complete. Release, for is_pending(): the completion was observed
    // before.
    void record_complete(int pe, std::uint64_t count) {
        auto& complete = to(pe).complete;
        std::uint64_t before = complete.load(std::memory_order_relaxed);
        while (before < count &&
               !complete.compare_exchange_weak(before, count, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
    // Its own core, which posts nothing meanwhile, found everything complete.
    void record_all_complete() {
        for (std::size_t pe = 0; pe < per_pe_.size(); ++pe)
            record_complete(static_cast<int>(pe), posted(static_cast<int>(pe)));
    }
    // Returns whether an operation to the PE may be incomplete. Pairs with count_posted and record_complete.
    [[nodiscard]] bool is_pending(int pe) const {
        return to(pe).complete.load(std::memory_order_acquire) != posted(pe);
    }
    // Other cores call it; its own core gets a failure from its next quiet. Its own core posts nothing to the PE
    // meanwhile: see may_post().
    Status complete(int pe, const WaitFunction& wait_function) {
        const std::uint64_t count = posted(pe);
        if (to(pe).complete.load(std::memory_order_acquire) >= count) return {};
        to(pe).completing.fetch_add(1, std::memory_order_relaxed);  // publishes nothing
        Status done = access.quiet(std::array{pe}, &wait_function);
        to(pe).completing.fetch_sub(1, std::memory_order_relaxed);
        if (done.ok())
            record_complete(pe, count);
        else if (done.code() != Code::timeout && done.code() != Code::aborted)  // these codes concern the caller only
            record_failure(done);
        return done;
    }
    // A quiet ends when nothing is in flight: a core that keeps posting would make other cores wait indefinitely.
    [[nodiscard]] bool may_post(int pe) const { return to(pe).completing.load(std::memory_order_relaxed) == 0; }

    // Returns a failure of this core's operations that another core received.
    Status take_failure() {
        const std::lock_guard guard(lock_);
        return std::exchange(failure_, {});
    }
    // Returns whether a launch left operations here that are incomplete or failed.
    [[nodiscard]] bool has_unfinished() {
        for (std::size_t pe = 0; pe < per_pe_.size(); ++pe)
            if (is_pending(static_cast<int>(pe))) return true;
        const std::lock_guard guard(lock_);
        return !failure_.ok();
    }

    RemoteAccess access;

private:
    struct PerPe {
        std::atomic<std::uint64_t> posted{0};
        std::atomic<std::uint64_t> complete{0};
        std::atomic<int> completing{0};  // cores that wait for completion
    };

    [[nodiscard]] PerPe& to(int pe) { return per_pe_[static_cast<std::size_t>(pe)]; }
    [[nodiscard]] const PerPe& to(int pe) const { return per_pe_[static_cast<std::size_t>(pe)]; }
    void record_failure(const Status& failure) {
        const std::lock_guard guard(lock_);
        if (failure_.ok()) failure_ = failure;
    }

    std::vector<PerPe> per_pe_;  // by PE
    std::mutex lock_;
    Status failure_;  // under lock_
};

class NpuDirect::Core final : public npu::RemoteCoreState {
public:
    explicit Core(const std::shared_ptr<Registry>& registry) : registry_(registry) {}
    ~Core() override {
        if (const auto registry = registry_.lock(); registry && queues_ != nullptr) registry->remove(queues_);
    }
    void begin_launch() override {
        const auto registry = registry_.lock();
        if (!registry || queues_ == nullptr || !queues_->has_unfinished()) return;
        registry->retire(queues_);
        queues_ = nullptr;
    }
    Queues& queues(Registry& registry) {
        if (queues_ == nullptr) {
            auto made = std::make_shared<Queues>(registry.peers, registry.pes);
            queues_ = made.get();
            registry.add(std::move(made));
        }
        return *queues_;
    }

private:
    std::weak_ptr<Registry> registry_;
    Queues* queues_ = nullptr;  // owned by the registry
};

NpuDirect::NpuDirect(SliceAddressing places, RemotePeers& peers, int pes)
    : NpuRemote(std::move(places)), pes_(pes), registry_(std::make_shared<Registry>(peers, pes)) {}

NpuDirect::~NpuDirect() = default;

NpuDirect::Queues& NpuDirect::queues_of(npu::RemoteWait& wait) {
    auto& own = wait.core_state();
    if (own == nullptr) own = std::make_unique<Core>(registry_);
    return static_cast<Core&>(*own).queues(*registry_);
}

Status NpuDirect::complete_others(const Queues& mine, int first_pe, int pes, const WaitFunction& wait_function) {
    if (registry_->one_or_none()) return {};  // `mine`
    const auto all = registry_->all();
    Status first;
    for (const auto& queues : *all) {
        if (queues.get() == &mine) continue;
        for (int pe = first_pe; pe < first_pe + pes; ++pe) {
            Status done = queues->complete(pe, wait_function);
            if (first.ok()) first = std::move(done);
        }
    }
    return first;
}

Status NpuDirect::order(Queues& mine, int pe, const WaitFunction& wait_function) {
    Status others = complete_others(mine, pe, 1, wait_function);
    return others.ok() ? mine.access.fence(pe, &wait_function) : others;
}

Status NpuDirect::wait_until_may_post(const Queues& mine, int pe, npu::RemoteWait& wait) {
    if (mine.may_post(pe)) return {};
    return wait.until([&] { return mine.may_post(pe); }, "other cores, which complete this core's puts", pe);
}

Status NpuDirect::put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(target, bytes); !inside.ok()) return inside;
    const auto wait_function = wait_function_for(wait);
    Queues& mine = queues_of(wait);
    if (Status turn = wait_until_may_post(mine, pe, wait); !turn.ok()) return turn;
    Status done = mine.access.put(pe, offset_of(target), source, bytes, Completion::local, &wait_function);
    mine.count_posted(pe);
    return done;
}

Status NpuDirect::get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(source, bytes); !inside.ok()) return inside;
    const auto wait_function = wait_function_for(wait);
    return queues_of(wait).access.get(pe, offset_of(source), target, bytes, Completion::local, &wait_function);
}

Status NpuDirect::put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                             std::uint64_t value, int pe, npu::RemoteWait& wait) {
    Status done = check(target, bytes);
    if (done.ok()) done = check(signal, sizeof *signal);
    if (!done.ok()) return done;
    const auto wait_function = wait_function_for(wait);
    Queues& mine = queues_of(wait);
    done = order(mine, pe, wait_function);
    if (done.ok()) done = wait_until_may_post(mine, pe, wait);
    if (!done.ok()) return done;
    done = mine.access.put_signal(pe, offset_of(target), source, bytes, offset_of(signal), value, NPUSHMEM_SIGNAL_SET,
                                  Completion::local, &wait_function);
    mine.count_posted(pe);
    return done;
}

Status NpuDirect::atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(operation.object, operation.width); !inside.ok()) return inside;
    const auto wait_function = wait_function_for(wait);
    Queues& mine = queues_of(wait);
    if (updates(operation.kind))
        if (Status ordered = order(mine, pe, wait_function); !ordered.ok()) return ordered;
    if (Status turn = wait_until_may_post(mine, pe, wait); !turn.ok()) return turn;
    npushmem_atomic op = as_transport_atomic(operation, pe);
    if (!fetches(operation.kind)) {
        Status posted = mine.access.atomic(op, Completion::deferred, &wait_function);
        mine.count_posted(pe);
        return posted;
    }
    *before = 0;  // a 32-bit operation writes the lower half only
    op.result = before;
    return mine.access.atomic(op, Completion::local, &wait_function);
}

Status NpuDirect::fence(npu::RemoteWait& wait) {
    const auto wait_function = wait_function_for(wait);
    Queues& mine = queues_of(wait);
    Status first = mine.access.fence(&wait_function);
    Status others = complete_others(mine, 0, pes_, wait_function);
    return first.ok() ? others : first;
}

Status NpuDirect::quiet(npu::RemoteWait& wait) {
    const auto wait_function = wait_function_for(wait);
    Queues& mine = queues_of(wait);
    Status first = mine.access.quiet(&wait_function);
    if (first.ok()) mine.record_all_complete();
    Status others = complete_others(mine, 0, pes_, wait_function);
    if (first.ok()) first = std::move(others);
    Status reported = mine.take_failure();
    return first.ok() ? reported : first;
}

}  // namespace npushmem
