// SPDX-License-Identifier: BSD-3-Clause
// Several PEs as threads of one process over one array: PE p's symmetric memory is the p-th part of it. Allocation
// increments an offset per PE, so equal calls give equal offsets, as on a real heap.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/moe/common/symmetric_memory.hpp"
#include "npushmem/npu/fabric.hpp"

namespace npushmem::fakes {

class ThreadWorld {
public:
    ThreadWorld(int pes, std::size_t bytes_per_pe)
        : pes_(pes),
          part_(bytes_per_pe),
          memory_(allocate(static_cast<std::size_t>(pes) * bytes_per_pe)),
          barrier_(pes) {}

    [[nodiscard]] int pes() const { return pes_; }
    [[nodiscard]] std::size_t part() const { return part_; }
    [[nodiscard]] std::byte* base(int pe) const { return memory_.get() + static_cast<std::size_t>(pe) * part_; }
    void barrier() { barrier_.arrive_and_wait(); }
    // From now on that PE counts as dead.
    void kill(int pe) { dead_ = pe; }
    [[nodiscard]] int dead() const { return dead_; }

    // Runs body(pe) on a thread per PE and waits for all. Barriers no longer wait for a PE that has returned.
    void run(const std::function<void(int)>& body) {
        std::vector<std::thread> threads;
        for (int pe = 0; pe < pes_; ++pe) {
            threads.emplace_back([this, &body, pe] {
                body(pe);
                barrier_.arrive_and_drop();
            });
        }
        for (std::thread& thread : threads) thread.join();
    }

private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    static std::unique_ptr<std::byte, Free> allocate(std::size_t bytes) {
        auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
        if (memory == nullptr) throw std::bad_alloc();
        return std::unique_ptr<std::byte, Free>(memory);
    }

    int pes_;
    std::size_t part_;
    std::unique_ptr<std::byte, Free> memory_;
    std::barrier<> barrier_;
    std::atomic<int> dead_{-1};
};

// The device's fabric. With `window` it computes remote addresses, else it looks each one up.
class ThreadFabric final : public npu::Fabric {
public:
    ThreadFabric(const ThreadWorld& world, int pe, bool window = true) : world_(world), pe_(pe), window_(window) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] int n_pes() const override { return world_.pes(); }
    [[nodiscard]] void* remote(const void* symmetric, int pe) const override {
        const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(symmetric) - world_.base(pe_));
        if (offset >= world_.part() || pe < 0 || pe >= world_.pes() || unmapped_.contains(pe)) return nullptr;
        return world_.base(pe) + offset;
    }
    [[nodiscard]] npu::Window window() const override {
        if (!window_) return {};
        return {reinterpret_cast<std::uintptr_t>(world_.base(pe_)),
                world_.part(),
                static_cast<std::ptrdiff_t>(world_.part()),
                pe_,
                0,
                world_.pes()};
    }
    // Makes one PE unmappable.
    void unmap(int pe) { unmapped_.insert(pe); }

private:
    const ThreadWorld& world_;
    int pe_;
    bool window_;
    std::set<int> unmapped_;
};

class ThreadMemory final : public moe::SymmetricMemory {
public:
    ThreadMemory(ThreadWorld& world, int pe) : world_(world), pe_(pe) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] int n_pes() const override { return world_.pes(); }
    [[nodiscard]] int live() const { return live_; }
    Result<std::byte*> allocate(moe::Bytes size) override {
        const std::size_t bytes = moe::aligned_up(size, 128).value();
        if (bytes > world_.part() - used_) {
            return Status{Code::memory, "the fake heap has " + std::to_string(world_.part() - used_) + " bytes left"};
        }
        std::byte* memory = world_.base(pe_) + used_;
        used_ += bytes;
        ++live_;
        std::memset(memory, 0, bytes);
        return memory;
    }
    void release(std::byte* memory) override { live_ -= memory != nullptr ? 1 : 0; }
    Status barrier() override {
        world_.barrier();
        return {};
    }
    Status fetch(void* target, const std::byte* symmetric, moe::Bytes size, int pe) override {
        if (!failing_fetches_.ok()) return failing_fetches_;
        std::memcpy(target, world_.base(pe) + (symmetric - world_.base(pe_)), size.value());
        return {};
    }
    Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                       int pe) override {
        // Acquire and release: pairs with the other ranks' calls.
        __atomic_compare_exchange_n(there(symmetric, pe), &expected, desired, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
        return expected;
    }

    // A put arrives as late as it may: with a signal or an addition to the same PE behind a fence, or at quiet.
    void put(std::byte* symmetric, const std::byte* source, moe::Bytes size, int pe) override {
        pending_.push_back({pe, there(symmetric, pe), source, size.value(), false});
        ++puts_;
        ++puts_by_size_[size.value()];
    }
    void add(std::uint64_t* symmetric, std::uint64_t value, int pe) override {
        arrive([&](const Put& put) { return put.pe == pe && put.is_fenced; });
        __atomic_fetch_add(there(symmetric, pe), value, __ATOMIC_ACQ_REL);
    }
    void fence() override {
        for (Put& put : pending_) put.is_fenced = true;
    }
    void signal(std::uint64_t* symmetric, std::uint64_t value, int pe) override {
        arrive([&](const Put& put) { return put.pe == pe && put.is_fenced; });
        if (pe == no_signals_to_) return;
        // Release: pairs with the acquire of the peer's wait.
        __atomic_store_n(there(symmetric, pe), value, __ATOMIC_RELEASE);
    }
    Status quiet() override {
        arrive([](const Put&) { return true; });
        return {};
    }
    Status wait(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override {
        const auto begin = std::chrono::steady_clock::now();
        while (!ready()) {
            const bool late = timeout.count() > 0 && std::chrono::steady_clock::now() - begin > timeout;
            if (late) return {Code::timeout, "no longer than " + std::to_string(timeout.count()) + " ns"};
            std::this_thread::yield();
        }
        return {};
    }
    // Faults, until they are taken back: signals to that PE get lost (-1: none), and fetches fail (ok: none).
    void lose_signals_to(int pe) { no_signals_to_ = pe; }
    void fail_fetches(const Status& with) { failing_fetches_ = with; }
    // Number of rows sent by put().
    [[nodiscard]] int puts() const { return puts_; }
    [[nodiscard]] int puts_of(std::size_t bytes) const {
        const auto found = puts_by_size_.find(bytes);
        return found == puts_by_size_.end() ? 0 : found->second;
    }

private:
    template <class T>
    T* there(T* symmetric, int pe) const {
        return reinterpret_cast<T*>(world_.base(pe) + (reinterpret_cast<std::byte*>(symmetric) - world_.base(pe_)));
    }

    struct Put {
        int pe;
        std::byte* target;
        const std::byte* source;
        std::size_t bytes;
        bool is_fenced;
    };
    template <class Which>
    void arrive(const Which& which) {
        for (const Put& put : pending_)
            if (which(put)) std::memcpy(put.target, put.source, put.bytes);
        std::erase_if(pending_, which);
    }

    ThreadWorld& world_;
    int pe_;
    std::vector<Put> pending_;
    int no_signals_to_ = -1;
    Status failing_fetches_;
    int puts_ = 0;
    std::map<std::size_t, int> puts_by_size_;
    std::size_t used_ = 0;
    int live_ = 0;
};

}  // namespace npushmem::fakes
