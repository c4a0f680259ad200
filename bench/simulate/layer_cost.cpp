// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/layer_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/moe/common/rank_rows.hpp"
#include "core/moe/direct/combine_sender.hpp"
#include "core/moe/dispatch/dispatch_launches.hpp"
#include "core/moe/dispatch/row_fan_out.hpp"

namespace npushmem::simulate {
namespace {

using moe::Bytes;
using moe::ExpertPlacement;
using moe::Rows;

constexpr std::int32_t self = 0;
constexpr std::uint64_t epoch = 1;

// The memory of the recorded PE. Addresses are not used: a call returns at once and adds its time.
class RecordedMemory final : public moe::SymmetricMemory {
public:
    RecordedMemory(const Team& team, const Model& model) : team_(team), model_(model) {}

    [[nodiscard]] int my_pe() const override { return self; }
    [[nodiscard]] int n_pes() const override { return team_.members; }
    void put(std::byte* /*symmetric*/, const std::byte* /*source*/, Bytes size, int pe) override { send(size, pe); }
    void signal(std::uint64_t* /*symmetric*/, std::uint64_t value, int pe) override {
        const Link& link = send(Bytes{sizeof value}, pe);
        if (pe != self) last_arrival_ = std::max(last_arrival_, time_ + link.latency + link.overhead);
    }
    void add(std::uint64_t* /*symmetric*/, std::uint64_t value, int pe) override { send(Bytes{sizeof value}, pe); }
    void fence() override {}
    Status quiet() override {
        time_ = std::max(time_, acknowledged_);
        return {};
    }
    // Waits for the data.
    Status fetch(void* /*target*/, const std::byte* /*symmetric*/, Bytes size, int pe) override {
        const Link& link = link_to(pe);
        const int ways = &link == &model_.node ? 1 : 2;
        time_ += ways * (link.latency + link.overhead) + static_cast<double>(size.value()) * link.per_byte;
        return {};
    }

    // Ends a part of the layer: completes the puts and waits for the signals of the others. Returns its time.
    double end_part() {
        (void)quiet();
        const double part = std::max(time_, last_arrival_);
        time_ = acknowledged_ = last_arrival_ = 0;
        return part;
    }
    [[nodiscard]] std::uint64_t messages() const { return messages_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

    // The recorded calls do none of these.
    Result<std::byte*> allocate(Bytes /*size*/) override { return not_recorded(); }
    void release(std::byte* /*memory*/) override {}
    Status barrier() override { return not_recorded(); }
    Result<std::uint64_t> compare_swap(std::uint64_t* /*symmetric*/, std::uint64_t /*expected*/,
                                       std::uint64_t /*desired*/, int /*pe*/) override {
        return not_recorded();
    }
    Status wait(const std::function<bool()>& /*ready*/, std::chrono::nanoseconds /*timeout*/) override {
        return not_recorded();
    }

private:
    static Status not_recorded() { return {Code::unsupported, "the simulation of a layer does not record this call"}; }

    [[nodiscard]] const Link& link_to(int pe) const {
        return pe / team_.per_node == self / team_.per_node ? model_.node : model_.network;
    }
    const Link& send(Bytes size, int pe) {
        const Link& link = link_to(pe);
        time_ += std::max(link.overhead, link.gap) + static_cast<double>(size.value()) * link.per_byte;
        if (&link == &model_.network) acknowledged_ = std::max(acknowledged_, time_ + 2 * link.latency);
        if (pe == self) return link;
        ++messages_;
        bytes_ += size.value();
        return link;
    }

    Team team_;
    Model model_;
    double time_ = 0;
    double acknowledged_ = 0;
    double last_arrival_ = 0;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
};

// [tokens, top_k] different experts for each token.
std::vector<std::int32_t> choose_experts(const LayerCall& call, std::int32_t experts) {
    std::mt19937_64 random(call.seed);
    std::vector<std::int32_t> chosen;
    for (std::int32_t token = 0; token < call.tokens; ++token) {
        const std::size_t first = chosen.size();
        while (chosen.size() < first + static_cast<std::size_t>(call.top_k)) {
            const auto expert = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(experts));
            if (std::ranges::find(std::span(chosen).subspan(first), expert) == std::span(chosen).subspan(first).end())
                chosen.push_back(expert);
        }
    }
    return chosen;
}

std::vector<std::int32_t> first_of_each_node(const Team& team) {
    std::vector<std::int32_t> firsts(static_cast<std::size_t>(team.members));
    for (std::int32_t pe = 0; pe < team.members; ++pe) firsts[static_cast<std::size_t>(pe)] = pe - pe % team.per_node;
    return firsts;
}

// The layer of the recorded PE.
class RecordedLayer {
public:
    RecordedLayer(const LayerCall& call, const Team& team, const Model& model)
        : call_(call),
          team_(team),
          model_(model),
          ranks_(team.members, team.members),
          memory_(team, model),
          fan_out_(moe::RowFanOut::of_groups(first_of_each_node(team), self)),
          served_(static_cast<std::size_t>(team.members), 1),
          begins_(served_.size() + 1),
          starts_(served_.size()) {
        route();
    }

    LayerCost run() {
        dispatch();
        combine();
        cost_.nanoseconds = cost_.counts + cost_.tables + cost_.rows + cost_.relays + cost_.combine;
        cost_.messages = memory_.messages();
        cost_.bytes = memory_.bytes();
        return cost_;
    }

private:
    // Finds the ranks of the tokens, and sorts their rows by rank.
    void route() {
        const std::int32_t experts = call_.experts_per_pe * team_.members;
        const std::vector<std::int32_t> chosen = choose_experts(call_, experts);
        const std::vector<float> weights(chosen.size(), 1);
        const moe::RoutingToRanks routing =
            route_to_ranks({chosen, weights}, call_.top_k, ExpertPlacement(experts, team_.members));
        width_ = static_cast<std::int32_t>(routing.ranks.size()) / call_.tokens;
        order_ = slots_by_rank(routing, team_.members);
        through_relays_ = rows_through_relays(fan_out_, routing, order_, width_);
        for (const std::uint32_t slot : order_) ++begins_[static_cast<std::size_t>(routing.ranks[slot]) + 1];
        for (std::size_t rank = 1; rank < begins_.size(); ++rank) begins_[rank] += begins_[rank - 1];
    }

    [[nodiscard]] moe::DispatchLayout layout() const {
        const auto ranks = static_cast<std::uint64_t>(team_.members);
        const auto slots = call_.fixed_slots ? moe::ExpertRows::fixed(1, call_.tokens) : moe::ExpertRows();
        const Rows capacity{call_.fixed_slots ? ranks * static_cast<std::uint64_t>(call_.tokens) : order_.size()};
        return {team_.members, team_.members, capacity, Bytes{call_.dispatched_row}, call_.top_k, slots};
    }

    [[nodiscard]] moe::DispatchWork work() {
        moe::DispatchWork work;
        work.in = memory_block_.data();
        work.region = memory_block_.data();
        work.row_choices = &no_choice_;
        work.top_k = width_;
        work.placement = ranks_;
        work.host_served = served_.data();
        work.through_relays = through_relays_.empty() ? nullptr : through_relays_.data();
        work.layout = layout();
        work.epoch = epoch;
        work.tables.record = memory_block_.data();
        work.tables.order = order_.data();
        work.tables.begins = begins_.data();
        work.tables.starts = starts_.data();
        return work;
    }

    void dispatch() {
        const moe::DispatchWork sent = work();
        const auto ranks = static_cast<std::uint64_t>(team_.members);
        if (call_.fixed_slots) {
            send_fixed_remotely(memory_, sent);
        } else {
            publish_counts_remotely(memory_, sent);
            cost_.counts = memory_.end_part();
            put_rows_remotely(memory_, sent);
        }
        cost_.rows = memory_.end_part();
        cost_.tables = std::pow(team_.members, 2) * sizeof(std::int32_t) * model_.node.per_byte;
        cost_.messages_to_all = (ranks - 1) * (call_.fixed_slots ? 2 : 3);
        cost_.record_bytes = (ranks - 1) * sent.record_bytes();
        cost_.memory_bytes = sent.layout.total().value();
        copy_from_relays(sent);
    }

    // As many rows as others copy of those that this PE sends. Dispatch::copy_from_relays() signals the other PEs of
    // the node, and reads all slots of each relay.
    void copy_from_relays(const moe::DispatchWork& sent) {
        const std::vector<std::int32_t>& peers = fan_out_.peers();
        for (const std::int32_t peer : peers) memory_.signal(sent.word(sent.layout.relayed(self)), epoch, peer);
        cost_.relays = memory_.end_part();
        const auto count = static_cast<std::size_t>(std::ranges::count(through_relays_, 1));
        std::vector<moe::RelayedRow> rows;
        for (std::size_t i = 0; i < count; ++i) rows.push_back({i, i, peers[i % peers.size()]});
        for (std::size_t i = 0; i < std::min(count, peers.size()); ++i)
            (void)memory_.fetch(nullptr, sent.region, bytes_of(Rows{order_.size()}, Bytes{sizeof order_[0]}), peers[i]);
        (void)copy_relayed_rows(memory_, sent, rows);
        cost_.relays += memory_.end_part();
    }

    // Returns as many rows to each PE as this PE has sent there.
    void combine() {
        moe::CombinePlan plan = moe::empty_plan(ranks_, self);
        for (std::size_t rank = 0; rank < plan.length_table.size(); ++rank) {
            plan.offset_table[rank] = static_cast<std::int32_t>(begins_[rank]);
            plan.length_table[rank] = static_cast<std::int32_t>(begins_[rank + 1] - begins_[rank]);
        }
        plan.rows = Rows{order_.size()};
        plan.slots.assign(order_.size(), 0);
        const moe::SlotLayout slots(team_.members,
                                    Rows{static_cast<std::uint64_t>(call_.tokens) * static_cast<std::uint64_t>(width_)},
                                    Bytes{call_.returned_row});
        moe::CombineSend send = send_from(plan, slots);
        send.x = memory_block_.data();
        send.region = memory_block_.data();
        send.host_served = served_.data();
        send.epoch = epoch;
        send_remote_rows(memory_, send);
        cost_.combine = memory_.end_part();
        cost_.messages_to_all += static_cast<std::uint64_t>(team_.members - 1);
        cost_.memory_bytes += slots.total().value();
    }

    LayerCall call_;
    Team team_;
    Model model_;
    ExpertPlacement ranks_;  // the rows travel like those of a layer whose experts are the ranks
    RecordedMemory memory_;
    moe::RowFanOut fan_out_;
    std::vector<std::uint8_t> served_;  // the host puts to every PE
    std::int32_t width_ = 1;
    std::vector<std::uint32_t> order_;
    std::vector<std::uint8_t> through_relays_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint64_t> starts_;
    // All addresses begin here. Nothing is read or written.
    std::vector<std::byte> memory_block_ = std::vector<std::byte>(1);
    moe::Choice no_choice_;
    LayerCost cost_;
};

Status check(const LayerCall& call, const Team& team) {
    const std::int64_t experts = std::int64_t{call.experts_per_pe} * team.members;
    constexpr std::int64_t max = std::numeric_limits<std::int32_t>::max();
    if (team.members < 2 || team.per_node < 1)
        return {Code::argument,
                fmt::format("a simulated layer has at least 2 PEs, and one on each node, not {} with {} "
                            "on each",
                            team.members, team.per_node)};
    if (call.experts_per_pe < 1 || experts > max)
        return {Code::argument, fmt::format("{} experts per PE of {} PEs are not 1 to {} in all", call.experts_per_pe,
                                            team.members, max)};
    if (const auto most = std::min<std::int64_t>(experts, moe::max_top_k); call.top_k < 1 || call.top_k > most)
        return {Code::argument,
                fmt::format("a token chooses 1 to {} different experts of {}, not {}", most, experts, call.top_k)};
    if (call.tokens < 1 || std::int64_t{call.tokens} * call.top_k > max || call.dispatched_row == 0 ||
        call.returned_row == 0)
        return {Code::argument,
                fmt::format("{} tokens with {} choices and rows of {} and {} bytes: expected at least one token, at "
                            "most {} choices in all, and rows of at least 1 byte",
                            call.tokens, call.top_k, call.dispatched_row, call.returned_row, max)};
    return {};
}

}  // namespace

Result<LayerCost> layer_cost(const LayerCall& call, const Team& team, const Model& model) {
    if (Status sound = check(call, team); !sound.ok()) return sound;
    return RecordedLayer(call, team, model).run();
}

}  // namespace npushmem::simulate
