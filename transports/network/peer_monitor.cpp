// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/peer_monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace npushmem::network {

void EventQueue::report(Code code, int pe, const std::string& text) {
    constexpr std::size_t max_events = 64;  // bounds the memory of a program that never polls events
    if (events_.size() == max_events) return;
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(code);
    event.pe = pe;
    event.message[text.copy(event.message, sizeof event.message - 1)] = '\0';
    events_.push_back(event);
    has_events_.store(true, std::memory_order_relaxed);  // partner: the load in poll
}

Code EventQueue::poll(std::mutex& lock, npushmem_event& out) {
    // Relaxed: the lock publishes the events, and a caller that got a failure has held the lock after the event was
    // queued.
    if (!has_events_.load(std::memory_order_relaxed)) return Code::again;
    const std::lock_guard guard(lock);
    if (events_.empty()) return Code::again;
    out = events_.front();
    events_.pop_front();
    has_events_.store(!events_.empty(), std::memory_order_relaxed);
    return Code::ok;
}

PeerMonitor::PeerMonitor(int npes, std::chrono::milliseconds timeout, std::chrono::milliseconds tick)
    : timeout_(timeout), tick_(tick), peers_(static_cast<std::size_t>(std::max(npes, 1))) {}

std::string PeerMonitor::name_of(int pe) const {
    const std::string& host = at(pe).host;
    return host.empty() ? fmt::format("PE {}", pe) : fmt::format("PE {} on host {}", pe, host);
}

bool PeerMonitor::record_loss(int pe, Code code) {
    if (failure(pe) != Code::ok) return false;
    at(pe).failure = code;
    return true;
}

PeerMonitor::Finding PeerMonitor::check(int pe) {
    Peer& peer = at(pe);
    if (!peer.added || peer.failure != Code::ok) return Finding::alive;
    if (std::exchange(peer.last_activity_count, peer.activity_count) != peer.activity_count) {
        peer.silent_ticks = 0;
        return Finding::alive;
    }
    ++peer.silent_ticks;
    if (timeout_ != std::chrono::milliseconds::zero() && peer.silent_ticks * tick_ > timeout_) return Finding::silent;
    constexpr std::uint32_t ticks_per_ping = 2;
    return peer.silent_ticks % ticks_per_ping == 0 ? Finding::needs_ping : Finding::alive;
}

std::string PeerMonitor::silence_of(int pe) const {
    const Peer& peer = at(pe);
    return fmt::format(
        "it has been silent for {:.1f} s{}", std::chrono::duration<double>(peer.silent_ticks * tick_).count(),
        peer.activity_count == 0 ? " and has never sent anything (does a firewall block it, is the host up?)"
                                 : " (is the cable in, is the host up?)");
}

}  // namespace npushmem::network
