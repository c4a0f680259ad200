// SPDX-License-Identifier: BSD-3-Clause
// The state of a PE's peers, and the events that report their failures. The transport's lock guards both classes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

// Asynchronous errors until the program polls them.
class EventQueue {
public:
    void report(Code code, int pe, const std::string& text);
    // Takes the lock only when there may be an event. Code::again: there is none.
    Code poll(std::mutex& lock, npushmem_event& out);

private:
    std::deque<npushmem_event> events_;
    std::atomic<bool> has_events_{false};  // read without the lock: a caller that sees an old value asks again
};

// Knows which peers the wire can reach, and detects peers that have been silent for too long. A live peer answers a
// ping even while its program computes.
class PeerMonitor {
public:
    enum class Finding { alive, needs_ping, silent };

    // A peer that has been silent for `timeout` is lost; 0: never. check() is called for each peer every `tick`.
    PeerMonitor(int npes, std::chrono::milliseconds timeout, std::chrono::milliseconds tick);

    [[nodiscard]] int count() const { return static_cast<int>(peers_.size()); }
    [[nodiscard]] bool contains(int pe) const { return pe >= 0 && pe < count(); }
    void set_host(int pe, const char* host) { at(pe).host = host; }
    // For people: "PE 3 on host a".
    [[nodiscard]] std::string name_of(int pe) const;

    // True when the wire has this peer's address.
    [[nodiscard]] bool is_added(int pe) const { return at(pe).added; }
    void record_added(int pe) { at(pe).added = true; }
    // Not ok: the peer is lost.
    [[nodiscard]] Code failure(int pe) const { return at(pe).failure; }
    // False when the peer was lost before.
    bool record_loss(int pe, Code code);

    void record_activity(int pe) { ++at(pe).activity_count; }
    Finding check(int pe);
    // For people: describes the silence that the last check() found.
    [[nodiscard]] std::string silence_of(int pe) const;

private:
    struct Peer {
        bool added = false;
        Code failure = Code::ok;
        std::string host;                       // for people
        std::uint64_t activity_count = 0;       // signs of life
        std::uint64_t last_activity_count = 0;  // at the last check
        std::uint32_t silent_ticks = 0;
    };

    [[nodiscard]] Peer& at(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
    [[nodiscard]] const Peer& at(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }

    std::chrono::milliseconds timeout_;
    std::chrono::milliseconds tick_;
    std::vector<Peer> peers_;
};

}  // namespace npushmem::network
