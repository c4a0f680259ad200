// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "bench/simulate/programs.hpp"
#include "bench/simulate/simulation_state.hpp"

namespace npushmem::simulate {
namespace {

using barrier::Algorithms;
using barrier::AwaitedSlot;
using barrier::BarrierCall;

// Runs the events in the order of time. Members advance by replay of their program: an operation that must wait ends
// the replay, and the event that completes it begins the next one.
class Simulation {
public:
    Simulation(const barrier::Plan& plan, const Team& team, const Model& model)
        : plan_(plan),
          team_(team),
          links_(team, model),
          programs_(plan, team),
          turn_(std::llround(model.turn * picoseconds)),
          cores_(team, model),
          keeps_values_(links_.mapped() || programs_.polls_others()),
          members_(static_cast<std::size_t>(team.members)),
          values_(team.members) {}

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
        [[nodiscard]] bool polls_peers() const { return simulation_.links_.mapped(); }

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

    Member& at(int member) { return members_[static_cast<std::size_t>(member)]; }
    void schedule(Time time, const Event& event) { events_[time].push_back(event); }

    // Every member starts, or every shared core.
    void begin() {
        for (int core = 0; core < cores_.count(); ++core) schedule(0, {Event::Kind::turn, core});
        if (cores_.count() > 0) return;
        for (int member = 0; member < team_.members; ++member) schedule(0, {Event::Kind::resume, member});
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
        to.may_receive = time + links_.between(event.from, event.member).gap;
        return time;
    }

    [[nodiscard]] Time overhead(const Event& event) const { return links_.between(event.from, event.member).overhead; }

    void send(int self, const Event& message) {
        Member& me = at(self);
        if (message.member == self && message.kind == Event::Kind::signal)
            return deliver(self, message.slot, message.value, me.clock, links_.inside().overhead);
        const LinkTimes& times = links_.between(self, message.member);
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
        if (links_.node_of(from) != links_.node_of(to)) outcome_.network += messages;
    }

    void fetch(const Event& event) {
        const Time time = receive(event);
        std::uint64_t& counter = counters_[key(event.member, event.slot)];
        const std::uint64_t before = counter;
        counter += event.value;
        deliver(event.member, event.slot, counter, time, overhead(event));
        // On mapped memory the adding member executes the add, after the line has moved to it.
        const Time answered = time + (links_.mapped() ? 0 : links_.between(event.from, event.member).latency);
        schedule(answered, {Event::Kind::reply, event.from, 0, event.member, before});
    }

    void take_reply(const Event& event) {
        at(event.member).fetched = event.value;
        release(event.member, now_, overhead(event));
    }

    void deliver(int member, int slot, std::uint64_t value, Time time, Time overhead) {
        values_.set(member, slot, value, time, overhead);
        Member& me = at(member);
        if (me.waits && me.awaited.member == member && me.awaited.slot == slot && barrier::reached(value, me.wanted)) {
            if (!keeps_values_) values_.drop(member, slot);
            release(member, time, overhead);
        }
        if (!watchers_.empty()) notify_watchers(member, slot, value, time);
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
            const LinkTimes& times = links_.between(watcher, member);
            // The request may still be in flight.
            const Time answered = links_.mapped() ? time : std::max(time, at(watcher).clock) + times.latency;
            release(watcher, answered, times.overhead);
            time += times.gap;
        }
    }

    bool wait(int self, const AwaitedSlot& awaited, std::uint64_t value) {
        Member& me = at(self);
        const bool by_message = awaited.member != self && !links_.mapped();
        const LinkTimes& times = links_.between(self, awaited.member);
        if (by_message) {
            count(self, awaited.member, 2);
            me.clock += times.overhead + times.latency;  // the request is in flight
        }
        const DeliveredValue* there = values_.find(awaited.member, awaited.slot);
        if (there != nullptr && barrier::reached(there->value, value)) {
            me.clock =
                std::max(me.clock, there->time) + (by_message ? times.latency + times.overhead : there->overhead);
            if (awaited.member == self && !keeps_values_) values_.drop(self, awaited.slot);
            return true;
        }
        me.awaited = awaited;
        me.wanted = value;
        me.waits = true;
        if (awaited.member != self) watchers_[key(awaited.member, awaited.slot)].push_back(self);
        return false;
    }

    // The operation that a member waits for is complete; it continues at `time`, or when its core runs it.
    void release(int member, Time time, Time overhead) {
        Member& me = at(member);
        me.waits = false;
        ++me.done;
        me.clock = std::max(me.clock, time) + overhead;
        me.is_runnable = true;
        if (cores_.count() == 0) return schedule(std::max(now_, me.clock), {Event::Kind::resume, member});
        const int number = cores_.number_of(member);
        Core& core = cores_.at(number);
        core.reset_idle_turns();
        if (!core.idle()) return;
        core.wake(now_, turn_);
        schedule(std::max(now_, core.time()), {Event::Kind::turn, number});
    }

    // Runs the next member of this core if it can continue.
    void take_turn(int number) {
        Core& core = cores_.at(number);
        const auto member = core.begin_turn(now_, turn_);
        if (!member) return;
        ++outcome_.turns;
        Member& me = at(*member);
        if (me.is_runnable) {
            core.reset_idle_turns();
            me.clock = std::max(me.clock, core.time());
            resume(*member);
            core.end_turn(me.clock, me.finished);
        } else {
            core.skip_turn();
        }
        if (core.has_turns()) schedule(core.time(), {Event::Kind::turn, number});
    }

    void resume(int member) {
        Member& me = at(member);
        me.is_runnable = false;
        const Code code = proceed(member);
        if (code != Code::ok) return;
        me.finished = true;
        outcome_.nanoseconds = std::max(outcome_.nanoseconds, static_cast<double>(me.clock) / picoseconds);
    }

    Code proceed(int member) {
        // Repeated replay of a long program would take quadratic time.
        constexpr std::uint32_t long_program = 256;
        if (at(member).done > long_program)
            if (const std::vector<Operation>* script = programs_.script_of(member)) return run_script(member, *script);
        barrier::NodeLayout nodes;
        const BarrierCall call = programs_.call_of(member, nodes);
        ReplayFabric fabric(*this, member);
        return Algorithms::run(plan_.id, fabric, call);
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
    Links links_;
    Programs programs_;
    Time turn_;
    SharedCores cores_;
    bool keeps_values_;  // after their member has seen them, because others may read them
    Time now_ = 0;
    std::vector<Member> members_;
    DeliveredValues values_;
    std::map<Time, std::vector<Event>> events_;
    std::unordered_map<std::uint64_t, std::uint64_t> counters_;     // that are added to, by key()
    std::unordered_map<std::uint64_t, std::vector<int>> watchers_;  // of other members' slots
    Outcome outcome_;
};

}  // namespace

Result<Outcome> simulate(const barrier::Plan& plan, const Team& team, const Model& model) {
    if (Status fits = barrier::check_members(plan, team.members); !fits.ok()) return fits;
    return Simulation(plan, team, model).run();
}

}  // namespace npushmem::simulate
