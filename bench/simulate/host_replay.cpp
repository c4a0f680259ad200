// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/host_replay.hpp"

#include <algorithm>
#include <cstring>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/simulate/member_memory.hpp"
#include "core/coll/leader_exchange.hpp"

namespace npushmem::simulate {
namespace {

constexpr int max_replayed_members = 8192;
// Nothing is stored there: the steps take the place of signals and counters.
constexpr std::uint64_t host_sync_at = 1ULL << 52;

struct Step {
    enum class Kind : std::uint8_t { work, send, receive, announce, await, barrier };

    Kind kind;
    int member = -1;           // the other one
    double nanoseconds = 0;    // of work
    std::uint64_t number = 0;  // bytes of a message; the step of a host that is announced or awaited
};

using Script = std::vector<Step>;

// The payload of every member is this member's own: the members are alike.
class EqualPayloads final : public coll::SmallExchange {
public:
    EqualPayloads(coll::LeaderExchange& exchange, int members, int index)
        : exchange_(exchange), members_(static_cast<std::size_t>(members)), index_(static_cast<std::size_t>(index)) {}

    [[nodiscard]] std::uint64_t max_payload(bool each) const override { return exchange_.max_payload(each); }
    Status run(const std::byte* source, std::uint64_t count, bool each) override {
        Status done = exchange_.run(source, count, each);
        constexpr std::size_t alignment = 16;
        const std::size_t step = (count + alignment - 1) / alignment * alignment;
        payloads_.resize(members_ * step);
        for (std::size_t member = 0; member < members_ && count > 0; ++member)
            std::memcpy(&payloads_[member * step], source + (each ? index_ * count : 0), count);
        set_received(payloads_.data(), step);
        return done;
    }

private:
    coll::LeaderExchange& exchange_;
    std::size_t members_;
    std::size_t index_;
    std::vector<std::byte> payloads_;
};

// Records a member's steps. A call returns at once.
class ScriptedMember final : public coll::Group, private coll::HostSignals {
public:
    ScriptedMember(const Team& team, const Model& model, int index, coll::Method method, std::vector<std::byte>& arrays,
                   const std::vector<std::vector<int>>& hosts)
        : team_(team),
          model_(model),
          index_(index),
          method_(method),
          memory_(arrays),
          grid_(grid_of(team, index)),
          sync_(*this, host_sync_at, hosts, index) {
        if (team.members > coll::LeaderExchange::max_members) return;
        leaders_.emplace(*this, sync_, MemberMemory::leader_exchange_at);
        small_.emplace(*leaders_, team.members, index);
    }

    [[nodiscard]] Script& script() { return script_; }
    [[nodiscard]] bool has_sent() const {
        return std::ranges::any_of(script_, [](const Step& step) { return step.kind == Step::Kind::send; });
    }
    // The puts and gets between nodes, without the messages that carry signals.
    [[nodiscard]] double transfers() const { return transfers_; }
    [[nodiscard]] double transferred_bytes() const { return transferred_bytes_; }

    [[nodiscard]] int size() const override { return team_.members; }
    [[nodiscard]] int index() const override { return index_; }
    Status sync() override {
        script_.push_back({Step::Kind::barrier});
        return {};
    }
    Status complete() override {
        if (std::exchange(has_put_, false)) work(2 * model_.network.latency);
        return {};
    }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        return member == index_ ? memory_.at(offset) : nullptr;
    }
    [[nodiscard]] bool all_mapped() const override { return false; }
    [[nodiscard]] const coll::HostGrid* host_grid() const override { return grid_ ? &*grid_ : nullptr; }
    [[nodiscard]] coll::HostSync* host_sync() const override { return &sync_; }
    [[nodiscard]] coll::SmallExchange* small_exchange() override { return small_ ? &*small_ : nullptr; }
    [[nodiscard]] coll::SmallBroadcast* small_broadcast() override { return leaders_ ? &*leaders_ : nullptr; }
    Status put(int member, std::uint64_t /*offset*/, const void* /*source*/, std::uint64_t bytes) override {
        if (in_own_node(member)) return {};
        work(model_.network.put_time(bytes));
        count(bytes);
        has_put_ = true;
        return {};
    }
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override {
        const bool inside = in_own_node(member);
        if (!inside) count(bytes);
        work(inside ? model_.node.get_time(1, bytes) : model_.network.get_time(2, bytes));
        memory_.read(offset, dest, bytes);
        return {};
    }
    [[nodiscard]] coll::Method method(std::uint32_t /*collective*/, std::uint64_t /*bytes*/) const override {
        return method_;
    }
    [[nodiscard]] std::uint64_t workspace() const override { return MemberMemory::workspace_at; }
    unsigned next_workspace_half() override { return uses_++ % 2; }
    std::uint64_t next_host_sums() override { return 0; }  // of the sums in the workspace, which no member has written

private:
    [[nodiscard]] bool in_own_node(int member) const { return member / team_.per_node == index_ / team_.per_node; }
    void count(std::uint64_t bytes) {
        ++transfers_;
        transferred_bytes_ += static_cast<double>(bytes);
    }
    void work(double nanoseconds) {
        if (script_.empty() || script_.back().kind != Step::Kind::work) script_.push_back({Step::Kind::work});
        script_.back().nanoseconds += nanoseconds;
    }

    // HostSignals.
    Status put(int member, std::uint64_t /*offset*/, const void* /*source*/, std::uint64_t bytes,
               std::uint64_t /*signal_at*/, std::uint64_t /*signal*/) override {
        script_.push_back({Step::Kind::send, member, 0, bytes});
        return {};
    }
    Result<std::uint64_t> wait(std::uint64_t /*signal_at*/, std::uint64_t least, int sender) override {
        script_.push_back({Step::Kind::receive, sender});
        return least;
    }
    Status announce(std::uint64_t /*counter_at*/, std::uint64_t step, const coll::Outcome& /*outcome*/) override {
        script_.push_back({Step::Kind::announce, -1, 0, step});
        return {};
    }
    Result<coll::Outcome> wait_for(int member, std::uint64_t /*counter_at*/, std::uint64_t step) override {
        script_.push_back({Step::Kind::await, member, 0, step});
        return coll::Outcome{};
    }
    int dead_pe() override { return -1; }

    Team team_;
    const Model& model_;
    int index_;
    coll::Method method_;
    mutable MemberMemory memory_;
    std::optional<coll::HostGrid> grid_;
    mutable coll::HostSync sync_;
    std::optional<coll::LeaderExchange> leaders_;
    std::optional<EqualPayloads> small_;
    Script script_;
    double transfers_ = 0;
    double transferred_bytes_ = 0;
    bool has_put_ = false;  // to another node, since the last complete()
    unsigned uses_ = 0;
};

// The member whose clock is the lowest makes the next step.
class Replay {
public:
    Replay(std::vector<Script> scripts, const Model& model, double barrier)
        : model_(model), barrier_(barrier), members_(scripts.size()) {
        for (std::size_t i = 0; i < scripts.size(); ++i) members_[i].script = std::move(scripts[i]);
    }

    Result<CollectiveCost> run() {
        for (std::size_t i = 0; i < members_.size(); ++i) runnable_.emplace(0, static_cast<int>(i));
        while (!runnable_.empty()) {
            const int member = runnable_.top().second;
            runnable_.pop();
            if (make_step(member)) runnable_.emplace(of(member).clock, member);
        }
        for (const Member& each : members_) {
            if (each.next != each.script.size())
                return Status{Code::state, "the members of a simulated collective wait for each other"};
            cost_.nanoseconds = std::max(cost_.nanoseconds, each.clock);
        }
        cost_.barrier_nanoseconds = cost_.barriers * barrier_;
        return cost_;
    }

private:
    struct Member {
        Script script;
        std::size_t next = 0;  // step
        double clock = 0;
        double received = 0;            // when it has received the last message
        std::vector<double> announced;  // when its host sees each step, from the first one on
        std::vector<int> waiting;       // members that await its next step
    };
    // From one member to another one.
    struct Messages {
        std::vector<double> arrived;
        std::size_t received = 0;
        bool is_awaited = false;
    };

    Member& of(int member) { return members_[static_cast<std::size_t>(member)]; }
    Messages& messages(int from, int to) {
        return messages_[static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to)];
    }
    void resume(int member) { runnable_.emplace(of(member).clock, member); }

    // Returns whether the member can make the next step, too. Otherwise another one resumes it, or it has finished.
    bool make_step(int member) {
        Member& own = of(member);
        if (own.next == own.script.size()) return false;
        const Step& step = own.script[own.next];
        switch (step.kind) {
            case Step::Kind::work: own.clock += step.nanoseconds; break;
            case Step::Kind::send: send(member, step); break;
            case Step::Kind::receive:
                if (!receive(member, step)) return false;
                break;
            case Step::Kind::announce: announce(own); break;
            case Step::Kind::await:
                if (!await(member, step)) return false;
                break;
            case Step::Kind::barrier: ++own.next; return enter_barrier(member);
        }
        ++own.next;
        return true;
    }

    void send(int member, const Step& step) {
        const double taken = model_.network.put_time(step.number);
        of(member).clock += taken;
        Member& receiver = of(step.member);
        receiver.received = std::max(of(member).clock + model_.network.latency, receiver.received + taken);
        Messages& sent = messages(member, step.member);
        sent.arrived.push_back(receiver.received);
        if (std::exchange(sent.is_awaited, false)) resume(step.member);
        ++cost_.messages;
        cost_.network_bytes += static_cast<double>(step.number);
    }
    bool receive(int member, const Step& step) {
        Messages& sent = messages(step.member, member);
        sent.is_awaited = sent.received == sent.arrived.size();
        if (sent.is_awaited) return false;
        of(member).clock = std::max(of(member).clock, sent.arrived[sent.received++]) + model_.network.overhead;
        return true;
    }
    // HostSync numbers its steps from 1 on, and members announce only some of them.
    void announce(Member& own) {
        own.clock += model_.node.overhead;
        own.announced.resize(own.script[own.next].number + 1, own.clock + model_.node.latency);
        for (const int waiting : std::exchange(own.waiting, {})) resume(waiting);
    }
    bool await(int member, const Step& step) {
        Member& other = of(step.member);
        if (step.number >= other.announced.size()) {
            other.waiting.push_back(member);
            return false;
        }
        of(member).clock = std::max(of(member).clock, other.announced[step.number]) + model_.node.overhead;
        return true;
    }
    bool enter_barrier(int member) {
        entered_ = std::max(entered_, of(member).clock);
        if (++in_barrier_ < static_cast<int>(members_.size())) return false;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            members_[i].clock = entered_ + barrier_;
            if (static_cast<int>(i) != member) resume(static_cast<int>(i));
        }
        in_barrier_ = 0;
        ++cost_.barriers;
        return true;
    }

    const Model& model_;
    double barrier_;
    std::vector<Member> members_;
    std::unordered_map<std::uint64_t, Messages> messages_;  // by sender and receiver
    using Turn = std::pair<double, int>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> runnable_;
    double entered_ = 0;
    int in_barrier_ = 0;
    CollectiveCost cost_;
};

std::vector<std::vector<int>> hosts_of(const Team& team) {
    std::vector<std::vector<int>> out(static_cast<std::size_t>(team.nodes()));
    for (int member = 0; member < team.members; ++member)
        out[static_cast<std::size_t>(member / team.per_node)].push_back(member);
    return out;
}

}  // namespace

bool has_host_sync(const Team& team) {
    return team.nodes() <= coll::HostSync::max_slots && team.members <= max_replayed_members;
}

Result<std::optional<CollectiveCost>> replay(const CollectiveCall& what,
                                             const std::function<Status(coll::Group&)>& call, const Team& team,
                                             const Model& model, double barrier) {
    const auto hosts = hosts_of(team);
    // A small exchange copies the payloads of all members to one array.
    const bool is_small = what.bytes <= coll::SmallExchange::largest_payload;
    std::vector<std::byte> arrays(what.bytes * static_cast<std::uint64_t>(is_small ? team.members : 1));
    std::vector<Script> scripts;
    double transfers = 0;
    double transferred_bytes = 0;
    for (int index = 0; index < team.members; ++index) {
        ScriptedMember member(team, model, index, what.method, arrays, hosts);
        if (Status done = call(member); !done.ok()) return done;
        // The first member is the root of broadcasts, and the leader of its host: it sends if any does.
        if (index == 0 && !member.has_sent()) return std::optional<CollectiveCost>();
        scripts.push_back(std::move(member.script()));
        transfers += member.transfers();
        transferred_bytes += member.transferred_bytes();
    }
    auto cost = Replay(std::move(scripts), model, barrier).run();
    if (!cost.ok()) return cost.status();
    CollectiveCost out = cost.value();
    out.messages += transfers;
    out.network_bytes += transferred_bytes;
    return std::optional(out);
}

}  // namespace npushmem::simulate
