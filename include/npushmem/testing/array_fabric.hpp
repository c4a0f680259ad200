// SPDX-License-Identifier: BSD-3-Clause
// Several PEs in one process: their symmetric memory is one array, cut into equal parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "npushmem/npu/npu.hpp"

namespace npushmem::fakes {

class SymmetricArray {
public:
    SymmetricArray(int pes, std::size_t bytes_per_pe)
        : pes_(pes), part_((bytes_per_pe + 63) / 64 * 64), lines_(static_cast<std::size_t>(pes) * part_ / 64) {}

    [[nodiscard]] int pes() const { return pes_; }
    [[nodiscard]] std::size_t part() const { return part_; }
    [[nodiscard]] std::byte* base(int pe) { return lines_[0].bytes + static_cast<std::size_t>(pe) * part_; }
    // The object at `offset` in a PE's part.
    template <class T>
    T* at(int pe, std::size_t offset = 0) {
        return reinterpret_cast<T*>(base(pe) + offset);
    }

private:
    struct alignas(64) Line {
        std::byte bytes[64]{};
    };
    int pes_;
    std::size_t part_;
    std::vector<Line> lines_;
};

// The array as one PE's fabric. `windowed`: it also offers computed addresses.
class ArrayFabric final : public npu::Fabric {
public:
    ArrayFabric(SymmetricArray& array, int pe, bool windowed = true) : array_(array), pe_(pe), windowed_(windowed) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] int n_pes() const override { return array_.pes(); }
    [[nodiscard]] void* remote(const void* symmetric, int pe) const override {
        const auto offset =
            reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(array_.base(pe_));
        if (offset >= array_.part() || pe == unreachable || (remote_ != nullptr && pe != pe_)) return nullptr;
        return array_.base(pe) + offset;
    }
    [[nodiscard]] npu::Window window() const override {
        if (!windowed_) return {};
        return {reinterpret_cast<std::uintptr_t>(array_.base(pe_)),
                array_.part(),
                static_cast<std::ptrdiff_t>(array_.part()),
                pe_,
                remote_ != nullptr ? pe_ : 0,
                remote_ != nullptr ? 1 : array_.pes()};
    }
    [[nodiscard]] npu::RemoteOperations* remote_operations(npu::RemoteMode /*mode*/) const override { return remote_; }
    // From this call on the other PEs are not mapped; `remote` accesses them.
    void unmap_others(npu::RemoteOperations& remote) { remote_ = &remote; }

    int unreachable = -1;

private:
    SymmetricArray& array_;
    int pe_;
    bool windowed_;
    npu::RemoteOperations* remote_ = nullptr;
};

// One PE of such a job: its fabric and its device.
struct ArrayPe {
    ArrayPe(SymmetricArray& array, int pe, const npu::DeviceConfig& config = {}, bool windowed = true)
        : fabric(array, pe, windowed), device(std::move(npu::Device::create(config, fabric)).value()) {}

    [[nodiscard]] npu::Stream& stream() const { return device->default_stream(); }
    // Launches and synchronizes. Returns the first failure.
    template <class Kernel, class... Args>
    Status run(const npu::LaunchConfig& config, Kernel&& kernel, Args&&... args) const {
        Status status = npu::launch(stream(), config, std::forward<Kernel>(kernel), std::forward<Args>(args)...);
        return status.ok() ? stream().synchronize() : status;
    }

    ArrayFabric fabric;
    std::unique_ptr<npu::Device> device;
};

// Runs `body(pe)` for each PE in its own thread, concurrently.
inline void on_all_pes(int pes, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int pe = 0; pe < pes; ++pe) threads.emplace_back(body, pe);
    for (std::thread& thread : threads) thread.join();
}

// A transport between the parts of an array, for PEs that are not mapped to each other. Each operation takes effect
// after some polls.

// For one PE, and one thread at a time.
class ArrayRemote final : public npu::RemoteOperations {
public:
    ArrayRemote(SymmetricArray& array, int pe) : array_(array), pe_(pe) {}

    [[nodiscard]] std::uint64_t offset_of(const void* address) const override {
        const auto offset =
            reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(array_.base(pe_));
        return offset < array_.part() ? offset : no_offset;
    }
    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override {
        return perform("put", pe, wait, [=, this] { std::memcpy(there(target, pe), source, bytes); });
    }
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override {
        return perform("get", pe, wait, [=, this] { std::memcpy(target, there(source, pe), bytes); });
    }
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override {
        return perform("put_signal", pe, wait, [=, this] {
            std::memcpy(there(target, pe), source, bytes);
            __atomic_store_n(static_cast<std::uint64_t*>(there(signal, pe)), value, __ATOMIC_RELEASE);
        });
    }
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override {
        static constexpr const char* names[] = {"set", "add", "fetch", "fetch_add", "swap", "compare_swap"};
        return perform(names[static_cast<int>(operation.kind)], pe, wait, [=, this] {
            const std::uint64_t seen =
                operation.width == 4 ? update(static_cast<std::uint32_t*>(there(operation.object, pe)), operation)
                                     : update(static_cast<std::uint64_t*>(there(operation.object, pe)), operation);
            if (before != nullptr) *before = seen;
        });
    }
    Status fence(npu::RemoteWait& wait) override {
        return perform("fence", -1, wait, [] {});
    }
    Status quiet(npu::RemoteWait& wait) override {
        return perform("quiet", -1, wait, [] {});
    }

    int delay = 2;                     // unsuccessful polls of each operation
    std::function<bool()> gate;        // if set: no operation takes effect before it returns true
    Status failure;                    // result of puts
    std::vector<std::string> calls{};  // started operations

private:
    [[nodiscard]] void* there(const void* symmetric, int pe) const { return array_.base(pe) + offset_of(symmetric); }

    // Acquire and release: pairs with the other updates, and with the waits on this word.
    template <class T>
    static std::uint64_t update(T* object, const npu::RemoteAtomic& operation) {
        using Kind = npu::RemoteAtomic::Kind;
        const T operand = static_cast<T>(operation.operand);
        T expected = static_cast<T>(operation.expected);
        switch (operation.kind) {
            case Kind::fetch: return __atomic_load_n(object, __ATOMIC_ACQUIRE);
            case Kind::set:
            case Kind::swap: return __atomic_exchange_n(object, operand, __ATOMIC_ACQ_REL);
            case Kind::add:
            case Kind::fetch_add: return __atomic_fetch_add(object, operand, __ATOMIC_ACQ_REL);
            case Kind::compare_swap: break;
        }
        __atomic_compare_exchange_n(object, &expected, operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return expected;
    }

    template <class Run>
    Status perform(const char* name, int pe, npu::RemoteWait& wait, Run&& run) {
        calls.push_back(pe < 0 ? name : name + (" " + std::to_string(pe)));
        if (!failure.ok() && calls.back().starts_with("put")) return failure;
        int left = delay;
        Status done = wait.until([&] { return left-- <= 0 && (!gate || gate()); }, name, pe);
        if (done.ok()) run();
        return done;
    }

    SymmetricArray& array_;
    int pe_;
};

}  // namespace npushmem::fakes
