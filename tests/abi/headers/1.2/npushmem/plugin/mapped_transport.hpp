// SPDX-License-Identifier: BSD-3-Clause
// The data path of transports that have their peers' memory in this process's address space: every operation is a copy
// or an atomic instruction, complete when the call returns. Derive, implement reach, and convert handles to windows.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "npushmem/plugin/local_atomic.hpp"
#include "npushmem/plugin/slot_table.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// A peer's region at its address in this process.
struct MappedWindow {
    int pe = -1;
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::shared_ptr<const void> mapping;  // keeps `base` valid; null if another object does
};

// The whole data path over a mapping. The target takes no part in it.
constexpr std::uint64_t mapped_capabilities = NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET |
                                              NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL |
                                              NPUSHMEM_CAP_TARGET_PROGRESS;

class MappedTransport : public Transport {
public:
    Code release_memory(std::uint64_t remote) override {
        return windows_.remove(remote).has_value() ? Code::ok : Code::argument;
    }
    Result<void*> map(std::uint64_t remote) override {
        MappedWindow* window = windows_.find(remote);
        if (window == nullptr)
            return Status{Code::argument, "no imported memory has the number " + std::to_string(remote)};
        return static_cast<void*>(window->base);
    }

    Result<std::uint64_t> create_queue() override { return queues_.insert(Queue{}); }
    Code destroy_queue(std::uint64_t queue) override {
        return queues_.remove(queue).has_value() ? Code::ok : Code::argument;
    }

    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        void* target = nullptr;
        if (Code code = locate(queue, op.remote, op.pe, op.offset, op.bytes, target); code != Code::ok) return code;
        return copy(target, op.local, op.local, op.bytes, token);
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        void* source = nullptr;
        if (Code code = locate(queue, op.remote, op.pe, op.offset, op.bytes, source); code != Code::ok) return code;
        return copy(op.local, source, op.local, op.bytes, token);
    }
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override {
        void* target = nullptr;
        if (Code code = locate(queue, op.remote, op.pe, op.offset, op.width, target); code != Code::ok) return code;
        if (token != nullptr) *token = 0;
        return apply_atomic(target, op);
    }
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override {
        void* signal = nullptr;
        const Code located =
            locate(queue, op.signal_remote, op.data.pe, op.signal_offset, sizeof(std::uint64_t), signal);
        if (located != Code::ok) return located;
        if (op.operation > NPUSHMEM_SIGNAL_ADD || reinterpret_cast<std::uintptr_t>(signal) % sizeof op.signal != 0)
            return Code::argument;
        const Code copied = put(queue, op.data, token);
        return copied == Code::ok ? apply_signal(signal, op.signal, op.operation) : copied;
    }

    // Orders earlier stores before later ones.
    Code fence(std::uint64_t queue) override {
        if (queues_.find(queue) == nullptr) return Code::argument;
        full_fence();
        return Code::ok;
    }
    // Orders earlier stores before later loads too: after it, this PE may read the results of other PEs.
    Code quiet(std::uint64_t queue) override { return fence(queue); }
    Code test(std::uint64_t queue, std::uint64_t token) override {
        return token == 0 && queues_.find(queue) != nullptr ? Code::ok : Code::argument;
    }

protected:
    std::uint64_t add_window(MappedWindow window) { return windows_.insert(std::move(window)); }

private:
    struct Queue {};

    // Checks the queue and the window, and computes the address of the operation.
    Code locate(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset, std::uint64_t bytes,
                void*& address) {
        const MappedWindow* window = windows_.find(remote);
        if (window == nullptr || window->pe != pe || queues_.find(queue) == nullptr) return Code::argument;
        if (offset > window->bytes || bytes > window->bytes - offset) return Code::range;
        address = window->base + offset;
        return Code::ok;
    }
    static Code copy(void* to, const void* from, const void* local, std::uint64_t bytes, std::uint64_t* token) {
        if (token != nullptr) *token = 0;
        if (bytes == 0) return Code::ok;
        if (local == nullptr) return Code::argument;
        // A word may be a flag that another PE is reading: it is written atomically, after the bytes that were copied
        // before it.
        if (bytes == sizeof(std::uint64_t) && both_aligned(to, from, bytes))
            copy_word<std::uint64_t>(to, from);
        else if (bytes == sizeof(std::uint32_t) && both_aligned(to, from, bytes))
            copy_word<std::uint32_t>(to, from);
        else
            std::memmove(to, from, bytes);  // a PE may copy within its own memory
        return Code::ok;
    }
    static bool both_aligned(const void* to, const void* from, std::uint64_t bytes) {
        return (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % bytes == 0;
    }
    // Acquire and release: pair with those of other PEs that write and read the word.
    template <class Word>
    static void copy_word(void* to, const void* from) {
        std::atomic_ref<Word> source(*static_cast<Word*>(const_cast<void*>(from)));
        std::atomic_ref<Word>(*static_cast<Word*>(to))
            .store(source.load(std::memory_order_acquire), std::memory_order_release);
    }
    // Sequentially consistent: pairs with the same fence, and with the atomics, of the other PEs.
    static void full_fence() {
#if defined(__SANITIZE_THREAD__)
        // The thread sanitizer does not support fences; it sees the order through the atomics that publish the data.
        std::atomic_signal_fence(std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }

    SlotTable<MappedWindow> windows_;
    SlotTable<Queue> queues_;
};

}  // namespace npushmem
