// A transport between the parts of an array, for PEs that shall not be mapped to each other: each call happens when it
// has been asked for some times.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "tests/fakes/array_fabric.hpp"

namespace npushmem::fakes {

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

    int delay = 2;                     // times that each is asked for in vain
    std::function<bool()> gate;        // not empty: nothing happens before it is true
    Status failure;                    // what puts end with
    std::vector<std::string> calls{};  // begun

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
