// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/collective_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "bench/simulate/host_replay.hpp"
#include "bench/simulate/member_memory.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/coll/collectives.hpp"

namespace npushmem::simulate {
namespace {

constexpr int recorded_members = 16;
constexpr int max_recorded_of_node = 256;

// The same number of members, at least two, on each node, few enough to record those of two nodes.
bool has_grid(const Team& team) {
    return team.members % team.per_node == 0 && team.per_node > 1 && team.per_node <= max_recorded_of_node;
}

// What the recorded members do between two barriers.
struct Phase {
    explicit Phase(int members) : load(static_cast<std::size_t>(members)), addressed_by(load.size(), nobody) {}

    static constexpr int nobody = -1;
    static constexpr int several = -2;

    double slowest = 0;
    std::vector<double> load;  // nanoseconds, by the member that is addressed
    std::vector<int> addressed_by;
};

class Recording {
public:
    Recording(const Team& team, const Model& model) : team_(team), model_(model) {
        if (has_grid(team)) {
            for (int place = 0; place < team.per_node; ++place) recorded_.push_back(place);
            for (int place = 0; place < team.per_node; ++place)
                recorded_.push_back(team.nodes() / 2 * team.per_node + place);
            return;
        }
        for (int i = 0; i < std::min(recorded_members, team.members); ++i)
            recorded_.push_back(static_cast<int>(static_cast<std::int64_t>(i) * team.members /
                                                 std::min(recorded_members, team.members)));
    }

    [[nodiscard]] const Team& team() const { return team_; }
    [[nodiscard]] const Model& model() const { return model_; }
    [[nodiscard]] const std::vector<int>& recorded() const { return recorded_; }
    [[nodiscard]] bool in_one_node(int a, int b) const { return a / team_.per_node == b / team_.per_node; }

    Phase& phase(std::size_t number) {
        while (phases_.size() <= number) phases_.emplace_back(team_.members);
        return phases_[number];
    }
    // How many members a recorded one stands for. The first is the root of broadcasts, and stands for itself alone.
    // Where all members of two nodes are recorded, the root's node stands for itself, and the other one for the rest.
    [[nodiscard]] double weight(int member) const {
        if (has_grid(team_)) return member < team_.per_node ? 1 : team_.nodes() - 1;
        return member == 0 ? 1 : (team_.members - 1) / static_cast<double>(recorded_.size() - 1);
    }
    [[nodiscard]] std::optional<coll::HostGrid> grid_of(int member) const {
        return has_grid(team_) ? simulate::grid_of(team_, member) : std::nullopt;
    }
    void count(double messages, std::uint64_t bytes) {
        messages_ += messages;
        bytes_ += messages * static_cast<double>(bytes);
    }

    // The last phase has no barrier behind it.
    [[nodiscard]] CollectiveCost cost(double barrier) const {
        CollectiveCost out;
        for (const Phase& one : phases_) out.nanoseconds += std::max(one.slowest, busiest(one));
        out.barriers = static_cast<int>(phases_.size()) - 1;
        out.barrier_nanoseconds = out.barriers * barrier;
        out.nanoseconds += out.barrier_nanoseconds;
        out.messages = messages_;
        out.network_bytes = bytes_;
        return out;
    }

private:
    [[nodiscard]] double busiest(const Phase& phase) const {
        const bool all_recorded = recorded_.size() == phase.load.size();
        double sum = 0;
        double most = 0;
        for (std::size_t member = 0; member < phase.load.size(); ++member) {
            sum += phase.load[member];
            if (all_recorded || phase.addressed_by[member] == Phase::several) most = std::max(most, phase.load[member]);
        }
        return std::max(most, sum / team_.members);
    }

    Team team_;
    Model model_;
    std::vector<int> recorded_;
    std::vector<Phase> phases_;
    double messages_ = 0;
    double bytes_ = 0;
};

// One member. A call returns at once and adds its time.
class RecordedMember final : public coll::Group {
public:
    RecordedMember(Recording& recording, int index, coll::Method method, std::vector<std::byte>& arrays)
        : recording_(recording), index_(index), method_(method), memory_(arrays), grid_(recording.grid_of(index)) {}
    RecordedMember(const RecordedMember&) = delete;
    RecordedMember& operator=(const RecordedMember&) = delete;
    ~RecordedMember() override { end_phase(); }

    [[nodiscard]] int size() const override { return recording_.team().members; }
    [[nodiscard]] int index() const override { return index_; }
    Status sync() override {
        end_phase();
        ++phase_;
        time_ = acknowledged_ = 0;
        return {};
    }
    Status complete() override {
        time_ = std::max(time_, acknowledged_);
        return {};
    }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        return member == index_ ? memory_.at(offset) : nullptr;
    }
    [[nodiscard]] bool all_mapped() const override { return false; }
    [[nodiscard]] const coll::HostGrid* host_grid() const override { return grid_ ? &*grid_ : nullptr; }
    Status put(int member, std::uint64_t /*offset*/, const void* /*source*/, std::uint64_t bytes) override {
        const Link& link = address(member, bytes);
        time_ += link.put_time(bytes);
        if (!recording_.in_one_node(index_, member)) acknowledged_ = std::max(acknowledged_, time_ + 2 * link.latency);
        return {};
    }
    // Waits for the data.
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override {
        const Link& link = address(member, bytes);
        time_ += link.get_time(recording_.in_one_node(index_, member) ? 1 : 2, bytes);
        memory_.read(offset, dest, bytes);
        return {};
    }
    [[nodiscard]] coll::Method method(std::uint32_t /*collective*/, std::uint64_t /*bytes*/) const override {
        return method_;
    }
    [[nodiscard]] std::uint64_t workspace() const override { return MemberMemory::workspace_at; }
    unsigned next_workspace_half() override { return uses_++ % 2; }
    // That of the sums in the workspace, which no member has written.
    std::uint64_t next_host_sums() override { return 0; }

private:
    const Link& address(int member, std::uint64_t bytes) {
        const bool inside = recording_.in_one_node(index_, member);
        const Link& link = inside ? recording_.model().node : recording_.model().network;
        if (inside) return link;
        Phase& phase = recording_.phase(phase_);
        const auto at = static_cast<std::size_t>(member);
        const double weight = recording_.weight(index_);
        phase.load[at] += weight * (link.gap + static_cast<double>(bytes) * link.per_byte);
        int& by = phase.addressed_by[at];
        if (by != index_) by = by == Phase::nobody ? index_ : Phase::several;
        recording_.count(weight, bytes);
        return link;
    }
    void end_phase() {
        Phase& phase = recording_.phase(phase_);
        phase.slowest = std::max(phase.slowest, time_);
    }

    Recording& recording_;
    int index_;
    coll::Method method_;
    mutable MemberMemory memory_;
    std::optional<coll::HostGrid> grid_;
    std::size_t phase_ = 0;
    double time_ = 0;
    double acknowledged_ = 0;
    unsigned uses_ = 0;
};

Status run(coll::Group& group, const CollectiveCall& call) {
    constexpr auto element = coll::ReduceElement::f32;
    constexpr std::uint64_t source_at = MemberMemory::source_at;
    constexpr std::uint64_t dest_at = MemberMemory::dest_at;
    const std::uint64_t count = call.bytes / sizeof(float);
    switch (call.collective) {
        case NPUSHMEM_COLL_BROADCAST: return coll::broadcast(group, dest_at, source_at, call.bytes, 0, false);
        case NPUSHMEM_COLL_COLLECT:
            return coll::collect(group, dest_at, source_at, call.bytes, MemberMemory::workspace_at - dest_at);
        case NPUSHMEM_COLL_FCOLLECT: return coll::fcollect(group, dest_at, source_at, call.bytes);
        case NPUSHMEM_COLL_ALLTOALL: return coll::alltoall(group, dest_at, source_at, call.bytes);
        case NPUSHMEM_COLL_REDUCE:
            return coll::reduce(group, dest_at, source_at, count, coll::ReduceOperation::sum, element);
        case NPUSHMEM_COLL_REDUCESCATTER:
            return coll::reduce_scatter(group, dest_at, source_at, count, coll::ReduceOperation::sum, element);
        default: return {Code::argument, "this collective is not simulated; simulate-barrier has barriers"};
    }
}

}  // namespace

Result<CollectiveCost> cost_of(const CollectiveCall& call, const Team& team, const Model& model) {
    if (team.nodes() < 2)
        return Status{Code::argument,
                      fmt::format("{} members are on one node of {}; a simulated collective has several nodes",
                                  team.members, team.per_node)};
    const bool has_sync = has_host_sync(team);
    if (call.method == coll::Method::hosts && !(has_sync ? team.members % team.per_node == 0 : has_grid(team)))
        return Status{Code::unsupported,
                      fmt::format("the method hosts needs the same number of members on each node, and on more than {} "
                                  "nodes 2 to {}, not {} members with {} on each node",
                                  coll::HostSync::max_slots, max_recorded_of_node, team.members, team.per_node)};
    const double per_core = model.cores_per_node == 0 ? 1 : static_cast<double>(team.per_node) / model.cores_per_node;
    const auto choice = barrier::choose("auto", {team.members, per_core, team.nodes(), false}, {});
    if (!choice.ok()) return choice.status();
    const auto barrier = simulate(choice.value().plan, team, model);
    if (!barrier.ok()) return barrier.status();
    if (has_sync) {
        auto replayed = replay(
            call, [&](coll::Group& group) { return run(group, call); }, team, model, barrier.value().nanoseconds);
        if (!replayed.ok()) return replayed.status();
        if (replayed.value()) return *replayed.value();
    }
    Recording recording(team, model);
    std::vector<std::byte> buffer(call.bytes);
    for (const int member : recording.recorded()) {
        RecordedMember group(recording, member, call.method, buffer);
        if (Status done = run(group, call); !done.ok()) return done;
    }
    return recording.cost(barrier.value().nanoseconds);
}

}  // namespace npushmem::simulate
