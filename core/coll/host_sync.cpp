// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/host_sync.hpp"

#include <fmt/core.h>

#include <utility>

#include "core/coll/host_grid.hpp"

namespace npushmem::coll {

HostSync::HostSync(HostSignals& signals, std::uint64_t at, std::vector<std::vector<int>> hosts, int index,
                   std::uint64_t turns_in_use)
    : signals_(signals), at_(at), hosts_(std::move(hosts)), index_(index), turns_(turns_in_use) {
    std::size_t members = 0;
    for (const auto& on_host : hosts_) members += on_host.size();
    hosts_of_.resize(members);
    for (int host = 0; host < this->hosts(); ++host)
        for (const int member : members_on(host)) hosts_of_[static_cast<std::size_t>(member)] = host;
    other_hosts_ = hosts_after(host(), this->hosts());
}

Outcome HostSync::outcome_of(const Status& done) const {
    if (done.ok()) return {};
    const bool has_left = !broken_.ok();
    if (done.code() != Code::peer_dead) return {Outcome::failed, -1, has_left};
    const int dead = signals_.dead_pe();
    return {Outcome::peer_dead, dead >= 0 ? dead : dead_pe_, has_left};
}

Status HostSync::first_failure(Status done, const Result<Outcome>& others_outcome, int other) {
    if (!others_outcome.ok()) {
        if (broken_.ok()) broken_ = others_outcome.status();
        return done.ok() ? others_outcome.status() : done;
    }
    const Outcome& outcome = others_outcome.value();
    if (outcome.dead_pe >= 0) dead_pe_ = outcome.dead_pe;
    if (outcome.kind == Outcome::ok) return done;
    Status failure = failure_of(outcome, other);
    if (outcome.has_left && broken_.ok()) broken_ = failure;
    return done.ok() ? failure : done;
}

Status HostSync::failure_of(const Outcome& outcome, int other) {
    if (outcome.kind == Outcome::failed)
        return {Code::protocol, fmt::format("member {} of the team has failed in this call, and reports why", other)};
    if (outcome.dead_pe < 0)
        return {Code::peer_dead, fmt::format("member {} of the team has found a PE dead in this call", other)};
    return {Code::peer_dead, fmt::format("PE {} has died or finalized, as member {} of the team has found in this call",
                                         outcome.dead_pe, other)};
}

Status HostSync::prepare(std::uint64_t epochs) { return epoch_ + epochs < last_exchange_ + turns_ ? Status{} : meet(); }

Status HostSync::meet() {
    return exchange({},
                    [this](Status done, int host) { return send(std::move(done), leader_on(host), at_, nullptr, 0); });
}

Status HostSync::send(Status done, int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    const std::uint64_t signal_at = signal_of(index_);
    if (done.ok()) done = broken_;
    const std::uint64_t signal = epoch_ << Outcome::bits;
    if (done.ok()) done = signals_.put(member, offset, source, bytes, signal_at, signal);
    // A wait that has exceeded the program's deadline is the end of all waits.
    if (!done.ok() && broken_.code() != Code::timeout)
        (void)signals_.put(member, at_, nullptr, 0, signal_at, signal | outcome_of(done).encoded());
    return done;
}

Status HostSync::receive(Status done, int sender) {
    if (!broken_.ok()) return done.ok() ? broken_ : done;
    const auto signal = signals_.wait(signal_of(sender), epoch_ << Outcome::bits, sender);
    if (!signal.ok()) return first_failure(std::move(done), signal.status(), sender);
    if (signal.value() >> Outcome::bits == epoch_)
        return first_failure(std::move(done), Outcome::decoded(signal.value()), sender);
    const Status gone{
        Code::protocol,
        fmt::format("member {} of the team has failed in an earlier call, and has left this one", sender)};
    return first_failure(std::move(done), gone, sender);
}

Status HostSync::announce(Status done) {
    if (done.ok()) done = broken_;
    Status event = signals_.announce(at_, step_, outcome_of(done));
    return done.ok() ? event : done;
}

Status HostSync::wait_for(Status done, int member) {
    if (!broken_.ok()) return done.ok() ? broken_ : done;
    return member == index_ ? done : first_failure(std::move(done), signals_.wait_for(member, at_, step_), member);
}

Status HostSync::sync_host(Status done) {
    done = announce(std::move(done));
    for (const int member : members_on(host())) done = wait_for(std::move(done), member);
    next_step();
    return done;
}

void HostSync::next_epoch(bool exchange) {
    if (exchange) {
        last_exchange_ = epoch_;
        ++exchanges_;
    }
    ++epoch_;
}

Status HostSync::settle(Status done, const std::vector<int>& senders, bool exchange) {
    for (const int sender : senders) done = receive(std::move(done), sender);
    done = sync_host(std::move(done));
    next_epoch(exchange);
    return done;
}

Status HostSync::exchange(Status done, const std::function<Status(Status done, int host)>& send_to) {
    if (index_ == leader()) {
        done = sync_host(std::move(done));
        for (const int host : other_hosts_) done = send_to(std::move(done), host);
        for (const int host : other_hosts_) done = receive(std::move(done), leader_on(host));
        done = announce(std::move(done));
    } else {
        done = announce(std::move(done));
        next_step();
        done = wait_for(std::move(done), leader());
    }
    next_step();
    next_epoch(true);
    return done;
}

}  // namespace npushmem::coll
