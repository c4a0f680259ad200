#include "core/runtime/npu_direct.hpp"

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

    Registry(RemotePeers& all_peers, int pes) : peers(all_peers), loose(static_cast<std::size_t>(pes)) {}

    // As they are now; later changes make another one.
    [[nodiscard]] std::shared_ptr<const All> all() {
        const std::lock_guard guard(lock_);
        return all_;
    }
    void enter(std::shared_ptr<Queues> queues) {
        const std::lock_guard guard(lock_);
        auto more = std::make_shared<All>(*all_);
        more->push_back(std::move(queues));
        all_ = std::move(more);
    }
    // Closes them, unless somebody still completes what they have put.
    void leave(const Queues* queues) {
        std::shared_ptr<const All> before;  // let go of without the lock: closing may wait
        const std::lock_guard guard(lock_);
        auto fewer = std::make_shared<All>(*all_);
        std::erase_if(*fewer, [&](const auto& each) { return each.get() == queues; });
        before = std::exchange(all_, std::move(fewer));
    }

    RemotePeers& peers;
    std::vector<std::atomic<int>> loose;  // by PE: cores that have put to it something that may not be there yet

private:
    std::mutex lock_;
    std::shared_ptr<const All> all_ = std::make_shared<All>();  // under lock_
};

// Of one core. Other cores complete what it has put.
class NpuDirect::Queues {
public:
    explicit Queues(Registry& registry) : access(registry.peers), registry_(registry), loose_(registry.loose.size()) {}
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;
    ~Queues() {
        for (std::size_t pe = 0; pe < loose_.size(); ++pe) (void)take_loose(static_cast<int>(pe));
    }

    // After something was posted to the PE that may come later than what others begin. Released with the count: a core
    // that has heard from this one takes it, and completes what was posted before.
    void note_loose(int pe) {
        const auto at = static_cast<std::size_t>(pe);
        if (loose_[at].exchange(true, std::memory_order_acq_rel)) return;
        registry_.loose[at].fetch_add(1, std::memory_order_release);
    }
    // True: now the caller has to complete what was posted to the PE. Pairs with note_loose().
    bool take_loose(int pe) {
        const auto at = static_cast<std::size_t>(pe);
        if (!is_loose(pe) || !loose_[at].exchange(false, std::memory_order_acq_rel)) return false;
        registry_.loose[at].fetch_sub(1, std::memory_order_acq_rel);
        return true;
    }
    // Pairs with note_loose().
    [[nodiscard]] bool is_loose(int pe) const {
        return loose_[static_cast<std::size_t>(pe)].load(std::memory_order_acquire);
    }
    Status complete(int pe, const By& by) {
        if (!take_loose(pe)) return {};
        Status done = access.quiet(std::array{pe}, &by);
        if (!done.ok()) note_loose(pe);
        return done;
    }

    RemoteAccess access;

private:
    Registry& registry_;
    std::vector<std::atomic<bool>> loose_;  // by PE
};

class NpuDirect::Core final : public npu::RemoteCore {
public:
    Core(const std::shared_ptr<Registry>& registry, const std::shared_ptr<Queues>& made)
        : queues(*made), registry_(registry) {
        registry->enter(made);
    }
    ~Core() override {
        if (const auto registry = registry_.lock()) registry->leave(&queues);
    }

    Queues& queues;  // there as long as the registry is

private:
    std::weak_ptr<Registry> registry_;
};

NpuDirect::NpuDirect(SlicePlaces places, RemotePeers& peers, int pes)
    : NpuRemote(std::move(places)), pes_(pes), registry_(std::make_shared<Registry>(peers, pes)) {}

NpuDirect::~NpuDirect() = default;

NpuDirect::Queues& NpuDirect::queues_of(npu::RemoteWait& wait) {
    auto& own = wait.own();
    if (own == nullptr) own = std::make_unique<Core>(registry_, std::make_shared<Queues>(*registry_));
    return static_cast<Core&>(*own).queues;
}

Status NpuDirect::complete_others(const Queues& mine, int pe, const By& by) {
    // Acquire: pairs with note_loose() of the cores that this one has heard from.
    const int loose = registry_->loose[static_cast<std::size_t>(pe)].load(std::memory_order_acquire);
    if (loose <= (mine.is_loose(pe) ? 1 : 0)) return {};
    const auto all = registry_->all();
    Status first;
    for (const auto& queues : *all) {
        if (queues.get() == &mine) continue;
        Status done = queues->complete(pe, by);
        if (first.ok()) first = std::move(done);
    }
    return first;
}

Status NpuDirect::order(Queues& mine, int pe, const By& by) {
    Status others = complete_others(mine, pe, by);
    return others.ok() ? mine.access.fence(pe, &by) : others;
}

Status NpuDirect::put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(target, bytes); !inside.ok()) return inside;
    const auto by = waiting_by(wait);
    Queues& mine = queues_of(wait);
    Status done = mine.access.put(pe, offset_of(target), source, bytes, Completion::local, &by);
    mine.note_loose(pe);
    return done;
}

Status NpuDirect::get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(source, bytes); !inside.ok()) return inside;
    const auto by = waiting_by(wait);
    return queues_of(wait).access.get(pe, offset_of(source), target, bytes, Completion::local, &by);
}

Status NpuDirect::put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                             std::uint64_t value, int pe, npu::RemoteWait& wait) {
    Status done = check(target, bytes);
    if (done.ok()) done = check(signal, sizeof *signal);
    if (!done.ok()) return done;
    const auto by = waiting_by(wait);
    Queues& mine = queues_of(wait);
    done = order(mine, pe, by);
    if (!done.ok()) return done;
    done = mine.access.put_signal(pe, offset_of(target), source, bytes, offset_of(signal), value, NPUSHMEM_SIGNAL_SET,
                                  Completion::local, &by);
    mine.note_loose(pe);
    return done;
}

Status NpuDirect::atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(operation.object, operation.width); !inside.ok()) return inside;
    const auto by = waiting_by(wait);
    Queues& mine = queues_of(wait);
    if (updates(operation.kind))
        if (Status ordered = order(mine, pe, by); !ordered.ok()) return ordered;
    npushmem_atomic op = table_form(operation, pe);
    if (!fetches(operation.kind)) {
        Status posted = mine.access.atomic(op, Completion::later, &by);
        mine.note_loose(pe);
        return posted;
    }
    *before = 0;  // of 32 bits only the lower half is written
    op.result = before;
    return mine.access.atomic(op, Completion::local, &by);
}

Status NpuDirect::fence(npu::RemoteWait& wait) {
    const auto by = waiting_by(wait);
    Queues& mine = queues_of(wait);
    Status first = mine.access.fence(&by);
    for (int pe = 0; pe < pes_; ++pe) {
        Status others = complete_others(mine, pe, by);
        if (first.ok()) first = std::move(others);
    }
    return first;
}

Status NpuDirect::quiet(npu::RemoteWait& wait) {
    const auto by = waiting_by(wait);
    Queues& mine = queues_of(wait);
    for (int pe = 0; pe < pes_; ++pe) (void)mine.take_loose(pe);
    Status first = mine.access.quiet(&by);
    for (int pe = 0; pe < pes_; ++pe) {
        Status others = complete_others(mine, pe, by);
        if (first.ok()) first = std::move(others);
    }
    return first;
}

}  // namespace npushmem
