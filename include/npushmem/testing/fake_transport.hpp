// SPDX-License-Identifier: BSD-3-Clause
// A fabric in memory: transports of several PEs in one process. The test decides when operations arrive, or a seeded
// pseudo-random sequence does.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/local_atomic.hpp"
#include "npushmem/plugin/transport.hpp"
#include "npushmem/testing/fake_fabric.hpp"

namespace npushmem::fakes {

class FakeTransport final : public Transport {
public:
    // Reaches PEs of every host and process.
    FakeTransport(FakeFabric& fabric, int pe) : fabric_(fabric), pe_(pe) {}
    // Reaches only the PEs of this process, as their npushmem_peer states.
    FakeTransport(FakeFabric& fabric, const npushmem_transport_params& params)
        : fabric_(fabric), pe_(params.pe), place_({params.host, params.process_id}) {}
    ~FakeTransport() override {
        const std::lock_guard lock(fabric_.mutex_);
        std::erase_if(fabric_.held_, [this](const auto& held) { return queues_.contains(held.queue); });
        fabric_.listeners_.erase(this);
    }

    Reach reach(const npushmem_peer& peer) override {
        if (place_ && !is_same_host(peer.host, place_->host)) return {0, 0, 0, "different host"};
        if (place_ && peer.process_id != place_->process) return {0, 0, 0, "different process"};
        return reach_of(peer.pe);
    }
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        const std::lock_guard lock(fabric_.mutex_);
        const std::uint64_t number = ++fabric_.last_number_;
        fabric_.regions_[number] = {static_cast<std::byte*>(memory.base), memory.bytes};
        const Handle handle{handle_mark, number};
        RegisteredMemory out{number, Bytes(sizeof handle)};
        std::memcpy(out.handle.data(), &handle, sizeof handle);
        return out;
    }
    // Drops the operations on the region that are held: its memory may go.
    Code deregister_memory(std::uint64_t region) override {
        const std::lock_guard lock(fabric_.mutex_);
        std::erase_if(fabric_.held_,
                      [region](const auto& held) { return held.regions[0] == region || held.regions[1] == region; });
        return fabric_.regions_.erase(region) == 1 ? Code::ok : Code::argument;
    }
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> bytes) override {
        const std::lock_guard lock(fabric_.mutex_);
        Handle handle{};
        if (bytes.size() == sizeof handle) std::memcpy(&handle, bytes.data(), sizeof handle);
        if (handle.mark != handle_mark)
            return Status{Code::protocol, "no handle of the fake fabric: " + std::to_string(bytes.size()) + " bytes"};
        if (!fabric_.regions_.contains(handle.region))
            return Status{Code::argument, "no region has the number " + std::to_string(handle.region)};
        imports_[++fabric_.last_number_] = {pe, handle.region};
        return fabric_.last_number_;
    }
    Code release_memory(std::uint64_t remote) override {
        const std::lock_guard lock(fabric_.mutex_);
        return imports_.erase(remote) == 1 ? Code::ok : Code::argument;
    }
    Result<void*> map(std::uint64_t remote) override {
        const std::lock_guard lock(fabric_.mutex_);
        const auto import = imports_.find(remote);
        if (import == imports_.end())
            return Status{Code::argument, "no imported memory has the number " + std::to_string(remote)};
        if (!reach_of(import->second.pe).has(NPUSHMEM_CAP_MAP))
            return Status{Code::unsupported, "the fake fabric does not map PE " + std::to_string(import->second.pe)};
        const auto region = fabric_.regions_.find(import->second.region);
        if (region == fabric_.regions_.end()) return Status{Code::argument, "the region is no longer registered"};
        return static_cast<void*>(region->second.base);
    }
    Result<std::uint64_t> create_queue() override {
        const std::lock_guard lock(fabric_.mutex_);
        queues_[++fabric_.last_number_] = {};
        return fabric_.last_number_;
    }
    Code destroy_queue(std::uint64_t queue) override {
        const std::lock_guard lock(fabric_.mutex_);
        while (fabric_.is_adversarial() && fabric_.below(8) != 0 && run_step_of(queue)) {
        }
        std::erase_if(fabric_.held_, [&](const auto& held) { return held.queue == queue; });
        return queues_.erase(queue) == 1 ? Code::ok : Code::argument;
    }

    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const Located at = locate(op.pe, op.remote, op.offset, op.bytes);
        if (at.code != Code::ok) return at.code;
        if (op.bytes > 0 && op.local == nullptr) return Code::argument;
        return post(queue, op.pe, {at.region, 0}, token, true,
                    [&](bool& buffered) { return put_steps(at.address, op, buffered); });
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const Located at = locate(op.pe, op.remote, op.offset, op.bytes);
        if (at.code != Code::ok) return at.code;
        if (op.bytes > 0 && op.local == nullptr) return Code::argument;
        return post(queue, op.pe, {at.region, 0}, token, false,
                    [&](bool&) { return copy_steps(op.local, at.address, op.bytes); });
    }
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const Located at = locate(op.pe, op.remote, op.offset, op.width);
        if (at.code != Code::ok) return at.code;
        if (op.operation >= NPUSHMEM_ATOMIC_COUNT || (op.width != 4 && op.width != 8) || op.offset % op.width != 0 ||
            (fetches(op.operation) && op.result == nullptr))
            return Code::argument;
        const bool is_update = op.operation != NPUSHMEM_ATOMIC_FETCH;
        return post(queue, op.pe, {at.region, 0}, token, is_update, [&](bool& buffered) {
            buffered = !fetches(op.operation);
            return FakeFabric::Steps{[=] { (void)apply_atomic(at.address, op); }};
        });
    }
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const Located at = locate(op.data.pe, op.data.remote, op.data.offset, op.data.bytes);
        const Located word = locate(op.data.pe, op.signal_remote, op.signal_offset, sizeof op.signal);
        if (at.code != Code::ok) return at.code;
        if (word.code != Code::ok) return word.code;
        if ((op.data.bytes > 0 && op.data.local == nullptr) || op.operation > NPUSHMEM_SIGNAL_ADD ||
            op.signal_offset % sizeof op.signal != 0)
            return Code::argument;
        return post(queue, op.data.pe, {at.region, word.region}, token, true, [&](bool& buffered) {
            auto steps = put_steps(at.address, op.data, buffered);
            steps.push_back([=] { (void)apply_signal(word.address, op.signal, op.operation); });
            return steps;
        });
    }
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const std::uint64_t extent = extent_of(op);
        const Located at = locate(op.block.pe, op.block.remote, op.block.offset, extent);
        if (at.code != Code::ok) return at.code;
        if (extent > 0 && op.block.local == nullptr) return Code::argument;
        return post(queue, op.block.pe, {at.region, 0}, token, true,
                    [&](bool& buffered) { return put_strided_steps(at.address, op, buffered); });
    }
    Code fence(std::uint64_t queue) override {
        const std::lock_guard lock(fabric_.mutex_);
        const auto found = queues_.find(queue);
        if (found == queues_.end()) return Code::argument;
        ++found->second.fences;
        return Code::ok;
    }
    Code quiet(std::uint64_t queue) override {
        const std::lock_guard lock(fabric_.mutex_);
        const auto found = queues_.find(queue);
        if (found == queues_.end()) return Code::argument;
        make_progress([&](const auto& held) { return held.queue == queue; });
        if (holds([&](const auto& held) { return held.queue == queue; })) return Code::again;
        return std::exchange(found->second.failed, {}).empty() ? Code::ok : Code::peer_dead;
    }
    Code test(std::uint64_t queue, std::uint64_t token) override {
        const std::lock_guard lock(fabric_.mutex_);
        const auto found = queues_.find(queue);
        if (found == queues_.end()) return Code::argument;
        make_progress([&](const auto& held) { return held.queue == queue; });
        if (token != 0 && found->second.failed.erase(token) == 1) return Code::peer_dead;
        return token != 0 && holds([&](const auto& held) { return held.token == token; }) ? Code::again : Code::ok;
    }
    Code progress() override {
        const std::lock_guard lock(fabric_.mutex_);
        return make_progress([this](const auto& held) { return queues_.contains(held.queue); }) ? Code::ok
                                                                                                : Code::again;
    }
    // The held operations to the PE fail with peer_dead; `adversarial` delivers some of them before. Later operations
    // to it are refused with peer_dead; `adversarial` accepts some, which fail afterwards. Operations of the PE to this
    // one still arrive. There is no event.
    Code forget(int pe) override {
        const std::lock_guard lock(fabric_.mutex_);
        if (pe < 0 || pe == pe_) return Code::argument;
        forgotten_.insert(pe);
        const auto is_to_it = [&](const auto& held) { return held.to == pe && queues_.contains(held.queue); };
        while (fabric_.is_adversarial() && fabric_.below(8) != 0 && fabric_.run_any_step(is_to_it)) {
        }
        for (const auto& held : fabric_.held_)
            if (is_to_it(held)) queues_.at(held.queue).failed.insert(held.token);
        std::erase_if(fabric_.held_, is_to_it);
        return Code::ok;
    }
    // The thread that delivers an operation reports it.
    Code report_arrivals(void (*arrived)(void* context), void* context) override {
        const std::lock_guard lock(fabric_.mutex_);
        fabric_.listeners_[this] = [arrived, context] { arrived(context); };
        return Code::ok;
    }

private:
    struct Place {
        npushmem_host_id host;
        std::int32_t process;
    };
    struct Import {
        int pe;
        std::uint64_t region;
    };
    struct Queue {
        std::uint64_t fences = 0;        // so far
        std::set<std::uint64_t> failed;  // tokens whose failure was not reported yet; 0: of complete tokens
    };
    struct Handle {
        std::uint64_t mark;
        std::uint64_t region;
    };
    struct Located {
        Code code = Code::argument;
        std::byte* address = nullptr;
        std::uint64_t region = 0;
    };
    static constexpr std::uint64_t handle_mark = 0x6661'6b65'2066'6162U;
    static constexpr std::size_t max_held_per_queue = 64;  // adversarial

    [[nodiscard]] Reach reach_of(int pe) const {
        if (fabric_.reach_) return fabric_.reach_(pe_, pe);
        return {NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL |
                    NPUSHMEM_CAP_PUT_STRIDED,
                all_atomics, all_atomics, "fake fabric"};
    }
    [[nodiscard]] Located locate(int pe, std::uint64_t remote, std::uint64_t offset, std::uint64_t bytes) const {
        const auto import = imports_.find(remote);
        if (import == imports_.end() || import->second.pe != pe) return {};
        const auto region = fabric_.regions_.find(import->second.region);
        if (region == fabric_.regions_.end()) return {};
        if (offset > region->second.bytes || bytes > region->second.bytes - offset) return {Code::range};
        return {Code::ok, region->second.base + offset, import->second.region};
    }

    // A word may be a flag that another thread is reading: it is written atomically, after the bytes before it.
    static void copy(void* to, const void* from, std::uint64_t bytes) {
        const auto either = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
        if (bytes == sizeof(std::uint64_t) && either % bytes == 0)
            copy_word<std::uint64_t>(to, from);
        else if (bytes == sizeof(std::uint32_t) && either % bytes == 0)
            copy_word<std::uint32_t>(to, from);
        else if (bytes > 0)
            std::memmove(to, from, bytes);
    }
    // Acquire and release: pair with those of the threads that write and read the word.
    template <class Word>
    static void copy_word(void* to, const void* from) {
        std::atomic_ref<Word> source(*static_cast<Word*>(const_cast<void*>(from)));
        std::atomic_ref<Word>(*static_cast<Word*>(to))
            .store(source.load(std::memory_order_acquire), std::memory_order_release);
    }
    // Adversarial: large data in pieces, in ascending or descending order.
    FakeFabric::Steps copy_steps(void* to, const void* from, std::uint64_t bytes) {
        constexpr std::uint64_t min_piece = 64;
        constexpr std::uint64_t pieces = 4;
        const bool whole = !fabric_.is_adversarial() || bytes <= pieces * min_piece;
        const std::uint64_t piece = whole ? bytes : bytes / pieces / min_piece * min_piece;
        const bool ascending = whole || fabric_.below(2) == 0;
        FakeFabric::Steps out;
        for (std::uint64_t at = 0; at < bytes || out.empty(); at += piece) {
            const std::uint64_t size = std::min(piece, bytes - at);
            out.emplace_back([to, from, at, size] {
                if (size > 0) copy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, size);
            });
        }
        if (!ascending) std::reverse(out.begin(), out.end());
        return out;
    }
    // Adversarial: some sources are copied now (`buffered`), so that the token completes long before the delivery;
    // others are read when the data is delivered.
    FakeFabric::Steps put_steps(void* to, const npushmem_rma& op, bool& buffered) {
        constexpr std::uint64_t max_buffered = 4096;
        buffered = op.bytes == 0 || (fabric_.is_adversarial() && op.bytes <= max_buffered && fabric_.below(2) == 0);
        if (!buffered || op.bytes == 0) return copy_steps(to, op.local, op.bytes);
        // In words, so that the copy is aligned if the source is.
        const auto words = std::make_shared<std::vector<std::uint64_t>>((op.bytes + 7) / 8);
        std::memcpy(words->data(), op.local, op.bytes);
        auto steps = copy_steps(to, words->data(), op.bytes);
        for (auto& step : steps) step = [words, run = std::move(step)] { run(); };
        return steps;
    }

    // Adversarial: as put_steps, and the blocks arrive in up to four parts, in ascending or descending order.
    FakeFabric::Steps put_strided_steps(std::byte* to, const npushmem_put_strided& op, bool& buffered) {
        constexpr std::uint64_t max_parts = 4;
        if (extent_of(op) == 0) return put_steps(to, {}, buffered);
        buffered = fabric_.is_adversarial() && fabric_.below(2) == 0;
        const std::uint64_t bytes = op.block.bytes;
        const auto* from = static_cast<const std::byte*>(op.block.local);
        std::uint64_t stride = op.local_stride;
        const auto words = std::make_shared<std::vector<std::uint64_t>>();
        if (buffered) {
            words->resize((op.count * bytes + 7) / 8);
            auto* const copied = reinterpret_cast<std::byte*>(words->data());
            for (std::uint64_t i = 0; i < op.count; ++i) std::memcpy(copied + i * bytes, from + i * stride, bytes);
            from = copied;
            stride = bytes;
        }
        const std::uint64_t parts = fabric_.is_adversarial() ? std::min(op.count, max_parts) : 1;
        FakeFabric::Steps out;
        for (std::uint64_t part = 0; part < parts; ++part) {
            const std::uint64_t first = op.count * part / parts;
            const std::uint64_t end = op.count * (part + 1) / parts;
            out.emplace_back([=, remote_stride = op.remote_stride] {
                (void)words;  // owns the copy
                for (std::uint64_t i = first; i < end; ++i) copy(to + i * remote_stride, from + i * stride, bytes);
            });
        }
        if (parts > 1 && fabric_.below(2) == 0) std::reverse(out.begin(), out.end());
        return out;
    }

    template <class Match>
    bool holds(Match match) const {
        return std::any_of(fabric_.held_.begin(), fabric_.held_.end(), match);
    }
    bool run_step_of(std::uint64_t queue) {
        return fabric_.run_any_step([queue](const auto& held) { return held.queue == queue; });
    }
    // Adversarial: every second call runs a step of one of these operations. Returns whether it ran one.
    template <class Match>
    bool make_progress(Match match) {
        return fabric_.is_adversarial() && fabric_.below(2) == 0 && fabric_.run_any_step(match);
    }
    // `make` returns the steps; it sets its argument if the operation needs its caller's memory no more.
    template <class Make>
    Code post(std::uint64_t queue, int to, std::array<std::uint64_t, 2> regions, std::uint64_t* token, bool is_update,
              Make make) {
        const auto found = queues_.find(queue);
        if (found == queues_.end()) return Code::argument;
        if (fabric_.no_room_ > 0 && fabric_.no_room_-- > 0) return Code::again;
        if (fabric_.is_adversarial() && has_no_room(queue)) return Code::again;
        if (forgotten_.contains(to)) return post_to_forgotten(found->second, token);
        bool buffered = false;
        FakeFabric::Steps steps = make(buffered);
        const bool at_once = fabric_.delivery_ == FakeFabric::Delivery::at_once;
        const bool complete = at_once || (fabric_.is_adversarial() && buffered);
        const std::uint64_t number = complete ? 0 : ++fabric_.last_number_;
        if (token != nullptr) *token = number;
        if (!at_once)
            fabric_.held_.push_back({queue, to, found->second.fences, is_update, number, regions, std::move(steps)});
        else
            for (const auto& step : steps) fabric_.run(step);
        return Code::ok;
    }
    Code post_to_forgotten(Queue& queue, std::uint64_t* token) {
        if (!fabric_.is_adversarial() || fabric_.below(2) == 0) return Code::peer_dead;
        const std::uint64_t number = ++fabric_.last_number_;
        queue.failed.insert(number);
        if (token != nullptr) *token = number;
        return Code::ok;
    }
    // Makes room, because a caller may wait for it by repeating its post.
    bool has_no_room(std::uint64_t queue) {
        const auto of_queue = [queue](const auto& held) { return held.queue == queue; };
        const bool full = static_cast<std::size_t>(std::count_if(fabric_.held_.begin(), fabric_.held_.end(),
                                                                 of_queue)) >= max_held_per_queue;
        if (full) (void)run_step_of(queue);
        return full || fabric_.below(8) == 0;
    }

    FakeFabric& fabric_;
    int pe_;
    std::optional<Place> place_;
    std::map<std::uint64_t, Import> imports_;
    std::map<std::uint64_t, Queue> queues_;  // by number
    std::set<int> forgotten_;                // PEs
};

}  // namespace npushmem::fakes
