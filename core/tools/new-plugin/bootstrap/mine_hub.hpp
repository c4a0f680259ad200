// SPDX-License-Identifier: BSD-3-Clause
// The hub of a job: a thread of rank 0's process that collects the parts of all ranks and sends the results.
//
// It is a thread, so that a failure reaches all ranks at once, whatever rank 0 is doing.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "mine_channel.hpp"

namespace mine_plugin {

class Hub {
public:
    // `rank_0` is the hub's end of rank 0's connection. The other ranks connect to `listener`, which is closed when all
    // have. timeout: limit of the wait for a rank to connect, or to enter a call that another rank has entered.
    Hub(Channel listener, Channel rank_0, int nranks, Milliseconds timeout);
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;
    // Rank 0 must have closed its end. The hub has then sent every result that it owes.
    ~Hub();

private:
    struct Peer {
        explicit Peer(Channel given) : channel(std::move(given)) {}
        Channel channel;
        int rank = -1;      // before the hello
        bool left = false;  // in an orderly manner
        bool has_part = false;
        Message part;
    };

    void run();
    void poll_once();
    void serve(Peer& peer);
    void handle(Peer& peer, Message message);
    void join(Peer& peer, const Message& hello);
    void collect(Peer& peer, Message message);
    void answer();
    void expire();
    // Reports the first failure to every rank that has joined, except `source`.
    void fail(Code code, const std::string& cause, int source = -1);
    void send_to(Peer& peer, Kind kind, Code code, std::span<const std::byte> payload) const;
    [[nodiscard]] Peer* of_rank(int rank);
    [[nodiscard]] std::string missing(bool in_call);
    [[nodiscard]] bool everyone_joined() const { return joined_ == nranks_; }

    Channel listener_;
    const int nranks_;
    const Milliseconds timeout_;
    std::map<int, Peer> peers_;  // by descriptor
    int joined_ = 0;
    int arrived_ = 0;  // ranks that are in the current call
    Clock::time_point deadline_;
    Status failure_;  // the first one
    bool rank_0_left_ = false;
    std::thread thread_;
};

}  // namespace mine_plugin
