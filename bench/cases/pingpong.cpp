// SPDX-License-Identifier: BSD-3-Clause
// A signal from PE 0 to PE 1 and back; the report has the time of one way. Further PEs are idle.
#include <cstring>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "npushmem.h"

namespace npushmem::bench {
namespace {

constexpr std::size_t payload_words = 8;  // of put_signal, in the line after the signal's
constexpr std::size_t words_per_line = raw_line_bytes / sizeof(std::uint64_t);

// State shared by all variants: the line, because its place determines the time of a hand-over, and therefore also the
// last sent number, which only grows.
struct PingPongChannel {
    std::byte* own;
    std::size_t payload;  // bytes in the line after it
    int pe;
    int polls;  // before a raw wait yields
    std::uint64_t* count;

    [[nodiscard]] int other() const { return pe == 0 ? 1 : 0; }
    [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(own); }
};

// `send(n)` to the other and `wait(n)` for its n. PE 0 serves.
template <class Send, class Wait>
Batch exchange(const PingPongChannel& channel, Send send, Wait wait) {
    return [count = channel.count, pe = channel.pe, send, wait](std::uint64_t iterations) {
        if (pe > 1) return;
        std::uint64_t n = *count;
        for (const std::uint64_t end = n + iterations; n < end;) {
            ++n;
            if (pe == 0) send(n);
            wait(n);
            if (pe == 1) send(n);
        }
        *count = n;
    };
}

template <class Send>
Variant signalled(const PingPongChannel& channel, Send send) {
    auto wait = [word = channel.word()](std::uint64_t n) { npushmem_signal_wait_until(word, NPUSHMEM_CMP_GE, n); };
    return {
        "npushmem",
        exchange(
            channel, [send, word = channel.word(), other = channel.other()](std::uint64_t n) { send(word, n, other); },
            wait),
        false};
}

template <Pause pause>
Variant raw_handover(const PingPongChannel& channel) {
    auto send = [there = static_cast<std::byte*>(npushmem_ptr(channel.own, channel.other())),
                 payload = channel.payload](std::uint64_t n) {
        const std::uint64_t words[payload_words] = {n};
        std::memcpy(there + raw_line_bytes, words, payload);
        raw_set(there, n);
    };
    auto wait = [channel](std::uint64_t n) { raw_wait<pause>(channel.own, n, channel.polls); };
    return {pause == Pause::none ? "raw line hand-over" : "raw, pause in each poll", exchange(channel, send, wait)};
}

template <class Send>
Point point_of(const char* name, const PingPongChannel& channel, bool mapped, Send send) {
    Point point{.name = name, .parts = 2, .shared = true};
    point.variants.push_back(signalled(channel, send));
    if (!mapped) {
        point.no_baseline = "it needs loads and stores on memory of all PEs, and some PEs do not map each other";
        return point;
    }
    point.variants.push_back(raw_handover<Pause::none>(channel));
    point.variants.push_back(raw_handover<Pause::each_poll>(channel));
    return point;
}

void put_signal(std::uint64_t* word, std::uint64_t n, int pe) {
    const std::uint64_t payload[payload_words] = {n};
    npushmem_uint64_put_signal(word + words_per_line, payload, payload_words, word, n, NPUSHMEM_SIGNAL_OP_SET, pe);
}

std::vector<Point> points(const Arena& arena) {
    if (arena.pes < 2) return {};
    auto count = std::make_shared<std::uint64_t>(0);
    const PingPongChannel bare{arena.own, 0, arena.pe, raw_polls(arena.pes), count.get()};
    PingPongChannel loaded = bare;
    loaded.payload = payload_words * sizeof(std::uint64_t);
    std::vector<Point> all{
        point_of("signal_set, one way", bare, arena.all_mapped,
                 [](std::uint64_t* word, std::uint64_t n, int pe) { npushmem_signal_set(word, n, pe); }),
        point_of("p, one way", bare, arena.all_mapped,
                 [](std::uint64_t* word, std::uint64_t n, int pe) { npushmem_uint64_p(word, n, pe); }),
        point_of("put_signal 64 B, one way", loaded, arena.all_mapped, put_signal)};
    for (Point& point : all) point.memory.push_back(count);
    return all;
}

}  // namespace

Case pingpong_case() { return {"pingpong", 2 * raw_line_bytes, points}; }

}  // namespace npushmem::bench
