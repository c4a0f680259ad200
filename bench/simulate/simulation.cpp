#include "bench/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "bench/simulate/simulation_state.hpp"

namespace npushmem::simulate {
namespace {

using barrier::Algorithms;
using barrier::AwaitedSlot;
using barrier::BarrierCall;

class Simulation {
public:
    Simulation(const barrier::Plan& plan, const Team& team, const Model& model)
        : plan_(plan),
          team_(team),
          node_(model.node),
          network_(model.network),
          turn_(std::llround(model.turn * picoseconds)),
          cores_(model.cores_per_node > 0 && team.per_node > model.cores_per_node ? model.cores_per_node : 0),
          members_(static_cast<std::size_t>(team.members)),
          everyone_(static_cast<std::size_t>(team.members)) {
        std::iota(everyone_.begin(), everyone_.end(), 0);
        for (int member = 0; member < team.members; member += team.per_node) leaders_.push_back(member);
        keeps_values_ = mapped() || polls_others();
    }

    Result<Outcome> run() {
        begin();
        while (!events_.empty()) {
            const auto first = events_.begin();
            now_ = first->first;
            // The loop may add events with the same time.
            for (std::size_t i = 0; i < first->second.size(); ++i) handle(Event(first->second[i]));
            events_.erase(first);
        }
        const auto stuck = std::count_if(members_.begin(), members_.end(), [](const Member& m) { return !m.finished; });
        if (stuck != 0)
            return Status{Code::protocol, fmt::format("{} of {} members of {} wait for ever", stuck, team_.members,
                                                      Algorithms::info(plan_.id).name)};
        outcome_.slots = Algorithms::table[static_cast<std::size_t>(plan_.id)].slots(team_.members);
        return outcome_;
    }

private:
    // Replays a member's past operations, then continues. See Fabric in core/coll/barrier/schedule.hpp for the
    // functions.
    class ReplayFabric {
    public:
        ReplayFabric(Simulation& simulation, int self) : simulation_(simulation), self_(self) {}

        Code signal(int member, int slot, std::uint64_t value) {
            if (replayed()) return Code::ok;
            simulation_.send(self_, {Event::Kind::signal, member, slot, self_, value});
            return advance();
        }
        Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
            before = me().fetched;
            if (replayed()) return Code::ok;
            simulation_.send(self_, {Event::Kind::add, member, slot, self_, value});
            return Code::again;  // until the reply arrives
        }
        Code wait(const AwaitedSlot& awaited, std::uint64_t value) {
            if (replayed()) return Code::ok;
            return simulation_.wait(self_, awaited, value) ? advance() : Code::again;
        }
        Code complete() {
            if (replayed()) return Code::ok;
            me().clock = std::max(me().clock, me().acknowledged);
            return advance();
        }
        [[nodiscard]] bool polls_peers() const { return simulation_.mapped(); }

    private:
        [[nodiscard]] Member& me() const { return simulation_.members_[static_cast<std::size_t>(self_)]; }
        bool replayed() { return at_++ < me().done; }
        Code advance() {
            ++me().done;
            return Code::ok;
        }
        Simulation& simulation_;
        int self_;
        std::uint32_t at_ = 0;
    };

    // Records a program that does not depend on fetched values.
    class RecordingFabric {
    public:
        explicit RecordingFabric(bool mapped) : mapped_(mapped) {}
        Code signal(int member, int slot, std::uint64_t value) {
            operations.push_back({Operation::Kind::signal, {.member = member, .slot = slot}, value});
            return Code::ok;
        }
        Code add(int, int, std::uint64_t, std::uint64_t& before) {
            fetches = true;
            before = 0;
            return Code::ok;
        }
        Code wait(const AwaitedSlot& awaited, std::uint64_t value) {
            operations.push_back({Operation::Kind::wait, awaited, value});
            return Code::ok;
        }
        Code complete() {
            operations.push_back({Operation::Kind::complete, {}, 0});
            return Code::ok;
        }
        [[nodiscard]] bool polls_peers() const { return mapped_; }
        std::vector<Operation> operations;
        bool fetches = false;

    private:
        bool mapped_;
    };

    [[nodiscard]] bool mapped() const { return team_.nodes() == 1; }
    // Whether members wait for other members' slots. If any do, some of the first few do.
    [[nodiscard]] bool polls_others() const {
        constexpr int few = 64;
        for (int member = 0; member < std::min(few, team_.members); ++member) {
            barrier::NodeLayout nodes;
            RecordingFabric recorder(mapped());
            (void)Algorithms::run(plan_.id, recorder, call_of(member, nodes));
            for (const Operation& one : recorder.operations)
                if (one.kind == Operation::Kind::wait && one.awaited.member != member) return true;
        }
        return false;
    }

    [[nodiscard]] int node_of(int member) const { return member / team_.per_node; }
    [[nodiscard]] const LinkTimes& link(int from, int to) const {
        return node_of(from) == node_of(to) ? node_ : network_;
    }
    Member& at(int member) { return members_[static_cast<std::size_t>(member)]; }
    void schedule(Time time, const Event& event) { events_[time].push_back(event); }

    void begin() {
        if (cores_ == 0) {
            for (int member = 0; member < team_.members; ++member) schedule(0, {Event::Kind::resume, member});
            return;
        }
        cores_in_use_.resize(static_cast<std::size_t>(team_.nodes()) * static_cast<std::size_t>(cores_));
        for (int member = 0; member < team_.members; ++member) core_of(member).members.push_back(member);
        for (std::size_t core = 0; core < cores_in_use_.size(); ++core)
            schedule(0, {Event::Kind::turn, static_cast<int>(core)});
    }

    Core& core_of(int member) { return cores_in_use_[static_cast<std::size_t>(core_number(member))]; }
    [[nodiscard]] int core_number(int member) const {
        return node_of(member) * cores_ + member % team_.per_node % cores_;
    }

    void handle(const Event& event) {
        switch (event.kind) {
            case Event::Kind::resume: return resume(event.member);
            case Event::Kind::signal:
                return deliver(event.member, event.slot, event.value, receive(event), overhead(event));
            case Event::Kind::add: return fetch(event);
            case Event::Kind::reply: return take_reply(event);
            case Event::Kind::turn: return take_turn(event.member);
        }
    }

    // Time at which an arrived message is in memory.
    Time receive(const Event& event) {
        Member& to = at(event.member);
        const Time time = std::max(now_, to.may_receive);
        to.may_receive = time + link(event.from, event.member).gap;
        return time;
    }

    [[nodiscard]] Time overhead(const Event& event) const { return link(event.from, event.member).overhead; }

    void send(int self, const Event& message) {
        Member& me = at(self);
        if (message.member == self && message.kind == Event::Kind::signal)
            return deliver(self, message.slot, message.value, me.clock, node_.overhead);
        const LinkTimes& times = link(self, message.member);
        const Time start = std::max(me.clock, me.may_send);
        me.may_send = start + times.gap;
        me.clock = start + times.overhead;
        me.acknowledged = std::max(me.acknowledged, me.clock + 2 * times.latency);
        count(self, message.member, 1);
        schedule(me.clock + times.latency, message);
    }

    void count(int from, int to, std::uint64_t messages) {
        if (from == to) return;
        outcome_.messages += messages;
        if (node_of(from) != node_of(to)) outcome_.network += messages;
    }

    void fetch(const Event& event) {
        const Time time = receive(event);
        std::uint64_t& counter = counters_[key(event.member, event.slot)];
        const std::uint64_t before = counter;
        counter += event.value;
        deliver(event.member, event.slot, counter, time, overhead(event));
        // On mapped memory the adding member executes the add, after the line has moved to it.
        const Time answered = time + (mapped() ? 0 : link(event.from, event.member).latency);
        schedule(answered, {Event::Kind::reply, event.from, 0, event.member, before});
    }

    void take_reply(const Event& event) {
        at(event.member).fetched = event.value;
        release(event.member, now_, overhead(event));
    }

    void deliver(int member, int slot, std::uint64_t value, Time time, Time overhead) {
        if (DeliveredValue* there = value_of(member, slot)) {
            *there = {slot, there->next, time, overhead, value};
        } else {
            const int first = at(member).first_value;
            at(member).first_value = new_value({slot, first, time, overhead, value});
        }
        Member& me = at(member);
        if (me.waits && me.awaited.member == member && me.awaited.slot == slot && barrier::reached(value, me.wanted)) {
            if (!keeps_values_) drop_value(member, slot);
            release(member, time, overhead);
        }
        if (!watchers_.empty()) notify_watchers(member, slot, value, time);
    }

    int new_value(const DeliveredValue& one) {
        if (free_ < 0) {
            values_.push_back(one);
            return static_cast<int>(values_.size()) - 1;
        }
        const int index = free_;
        free_ = values_[static_cast<std::size_t>(index)].next;
        values_[static_cast<std::size_t>(index)] = one;
        return index;
    }

    // Frees the member's own value after it has seen it, unless others may look at it: a call waits for a slot once.
    void drop_value(int member, int slot) {
        int* next = &at(member).first_value;
        while (*next >= 0 && values_[static_cast<std::size_t>(*next)].slot != slot)
            next = &values_[static_cast<std::size_t>(*next)].next;
        if (*next < 0) return;
        DeliveredValue& gone = values_[static_cast<std::size_t>(*next)];
        const int index = *next;
        *next = gone.next;
        gone.next = free_;
        free_ = index;
    }

    // Other members that watch this slot: by loads they get the line one after another; or by messages.
    void notify_watchers(int member, int slot, std::uint64_t value, Time time) {
        const auto found = watchers_.find(key(member, slot));
        if (found == watchers_.end()) return;
        const std::vector<int> watching = std::move(found->second);
        watchers_.erase(found);
        for (const int watcher : watching) {
            if (!barrier::reached(value, at(watcher).wanted)) {
                watchers_[key(member, slot)].push_back(watcher);
                continue;
            }
            const LinkTimes& times = link(watcher, member);
            // The request may still be in flight.
            const Time answered = mapped() ? time : std::max(time, at(watcher).clock) + times.latency;
            release(watcher, answered, times.overhead);
            time += times.gap;
        }
    }

    // The value that a slot has, null while it has none.
    DeliveredValue* value_of(int member, int slot) {
        for (int i = at(member).first_value; i >= 0; i = values_[static_cast<std::size_t>(i)].next)
            if (values_[static_cast<std::size_t>(i)].slot == slot) return &values_[static_cast<std::size_t>(i)];
        return nullptr;
    }

    bool wait(int self, const AwaitedSlot& awaited, std::uint64_t value) {
        Member& me = at(self);
        const bool by_message = awaited.member != self && !mapped();
        const LinkTimes& times = link(self, awaited.member);
        if (by_message) {
            count(self, awaited.member, 2);
            me.clock += times.overhead + times.latency;  // the request is in flight
        }
        const DeliveredValue* there = value_of(awaited.member, awaited.slot);
        if (there != nullptr && barrier::reached(there->value, value)) {
            me.clock =
                std::max(me.clock, there->time) + (by_message ? times.latency + times.overhead : there->overhead);
            if (awaited.member == self && !keeps_values_) drop_value(self, awaited.slot);
            return true;
        }
        me.awaited = awaited;
        me.wanted = value;
        me.waits = true;
        if (awaited.member != self) watchers_[key(awaited.member, awaited.slot)].push_back(self);
        return false;
    }

    // The operation that a member waits for is complete; it continues at `time`, or when its core comes to it.
    void release(int member, Time time, Time overhead) {
        Member& me = at(member);
        me.waits = false;
        ++me.done;
        me.clock = std::max(me.clock, time) + overhead;
        me.is_runnable = true;
        if (cores_ == 0) return schedule(std::max(now_, me.clock), {Event::Kind::resume, member});
        Core& core = core_of(member);
        core.idle_turns = 0;
        if (!core.idle) return;
        // It polled meanwhile, one turn per poll.
        core.idle = false;
        const Time turns = turn_ == 0 ? 0 : (std::max(now_, core.time) - core.time + turn_ - 1) / turn_;
        core.at = (core.at + static_cast<std::size_t>(turns)) % core.members.size();
        core.time += turns * turn_;
        schedule(std::max(now_, core.time), {Event::Kind::turn, core_number(member)});
    }

    // Runs the next member of this core that can continue.
    void take_turn(int number) {
        Core& core = cores_in_use_[static_cast<std::size_t>(number)];
        if (core.members.empty() || core.idle) return;
        core.at %= core.members.size();
        const int member = core.members[core.at];
        Member& me = at(member);
        core.time = std::max(core.time, now_) + (core.members.size() > 1 ? turn_ : 0);
        ++outcome_.turns;
        if (me.is_runnable) {
            core.idle_turns = 0;
            me.clock = std::max(me.clock, core.time);
            resume(member);
            core.time = std::max(core.time, me.clock);
            if (me.finished)
                core.members.erase(core.members.begin() + static_cast<std::ptrdiff_t>(core.at));
            else
                ++core.at;
        } else {
            ++core.at;
            core.idle = ++core.idle_turns >= core.members.size();
            if (core.idle) core.idle_turns = 0;
        }
        if (!core.idle && !core.members.empty()) schedule(core.time, {Event::Kind::turn, number});
    }

    void resume(int member) {
        Member& me = at(member);
        me.is_runnable = false;
        const Code code = proceed(member);
        if (code != Code::ok) return;
        me.finished = true;
        outcome_.nanoseconds = std::max(outcome_.nanoseconds, static_cast<double>(me.clock) / picoseconds);
    }

    [[nodiscard]] BarrierCall call_of(int member, barrier::NodeLayout& nodes) const {
        const int first = node_of(member) * team_.per_node;
        const auto count = static_cast<std::size_t>(std::min(team_.per_node, team_.members - first));
        nodes = {std::span(everyone_).subspan(static_cast<std::size_t>(first), count), member - first, leaders_,
                 node_of(member)};
        return {team_.members, member, 0, generation, plan_.radix, team_.nodes() > 1 ? &nodes : nullptr};
    }

    Code proceed(int member) {
        // Repeated replay of a long program would take quadratic time.
        constexpr std::uint32_t long_program = 256;
        if (at(member).done > long_program)
            if (const std::vector<Operation>* script = script_of(member)) return run_script(member, *script);
        barrier::NodeLayout nodes;
        const BarrierCall call = call_of(member, nodes);
        ReplayFabric fabric(*this, member);
        return Algorithms::run(plan_.id, fabric, call);
    }

    const std::vector<Operation>* script_of(int member) {
        const auto known = scripts_.find(member);
        if (known != scripts_.end()) return known->second.empty() ? nullptr : &known->second;
        barrier::NodeLayout nodes;
        const BarrierCall call = call_of(member, nodes);
        RecordingFabric recorder(mapped());
        (void)Algorithms::run(plan_.id, recorder, call);
        auto& script = scripts_[member];
        if (!recorder.fetches) script = std::move(recorder.operations);
        return script.empty() ? nullptr : &script;
    }

    Code run_script(int member, const std::vector<Operation>& script) {
        for (Member& me = at(member); me.done < script.size(); ++me.done) {
            const Operation& one = script[me.done];
            if (one.kind == Operation::Kind::signal)
                send(member, {Event::Kind::signal, one.awaited.member, one.awaited.slot, member, one.value});
            else if (one.kind == Operation::Kind::complete)
                me.clock = std::max(me.clock, me.acknowledged);
            else if (!wait(member, one.awaited, one.value))
                return Code::again;
        }
        return Code::ok;
    }

    barrier::Plan plan_;
    Team team_;
    LinkTimes node_;
    LinkTimes network_;
    Time turn_;
    int cores_;
    Time now_ = 0;
    std::vector<Member> members_;
    std::vector<int> everyone_;
    std::vector<int> leaders_;
    std::vector<DeliveredValue> values_;
    bool keeps_values_ = true;  // after their member has seen them, because others may look at them
    int free_ = -1;             // first of those in values_ that are not in use
    std::vector<Core> cores_in_use_;
    std::map<Time, std::vector<Event>> events_;
    std::unordered_map<std::uint64_t, std::uint64_t> counters_;     // that are added to, by key()
    std::unordered_map<std::uint64_t, std::vector<int>> watchers_;  // of other members' slots
    std::unordered_map<int, std::vector<Operation>> scripts_;       // empty: it has none
    Outcome outcome_;
};

}  // namespace

Result<Outcome> simulate(const barrier::Plan& plan, const Team& team, const Model& model) {
    if (Status fits = barrier::check_members(plan, team.members); !fits.ok()) return fits;
    return Simulation(plan, team, model).run();
}

}  // namespace npushmem::simulate
