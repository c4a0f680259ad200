// Several PEs in one process: their symmetric memory is one array, cut into equal parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// How one PE sees the array. `windowed`: offers the computed addresses, too.
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
    // From here on the others are not mapped: `remote` reaches them.
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
    // Launches and synchronizes; the first failure.
    template <class Kernel, class... Args>
    Status run(const npu::LaunchConfig& config, Kernel&& kernel, Args&&... args) const {
        Status status = npu::launch(stream(), config, std::forward<Kernel>(kernel), std::forward<Args>(args)...);
        return status.ok() ? stream().synchronize() : status;
    }

    ArrayFabric fabric;
    std::unique_ptr<npu::Device> device;
};

// Runs `body(pe)` for each PE in a thread of its own, all at once.
inline void on_all_pes(int pes, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int pe = 0; pe < pes; ++pe) threads.emplace_back(body, pe);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace npushmem::fakes
