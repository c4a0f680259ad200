// SPDX-License-Identifier: BSD-3-Clause
// A Transport over a table and an instance: the runtime's side of the boundary, and a decorator's view of the transport
// that it wraps.
#pragma once

#include <cstddef>

#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// The caller guarantees a table with every pointer of its minor version set (as in the loader's copy) and keeps it, and
// the library it points into, alive. Owning: the destructor closes the instance.
//
// One class, although it has more than twenty methods: it implements the transport interface, one method per function
// of the table, and each method only calls that function.
class TableTransport : public Transport {
public:
    enum class Owning : bool { no, yes };

    TableTransport(const npushmem_transport_v1& table, void* self, Owning owning)
        : table_(table), self_(self), owning_(owning) {}
    ~TableTransport() override {
        if (owning_ == Owning::yes) table_.close(self_);
    }

    Result<std::vector<npushmem_device>> devices() override {
        ErrorBuffer error;
        std::uint32_t count = 0;
        std::int32_t code = table_.devices(self_, nullptr, sizeof(npushmem_device), &count, &error);
        std::vector<npushmem_device> out(count);
        if (code == NPUSHMEM_OK && count > 0)
            code = table_.devices(self_, out.data(), sizeof(npushmem_device), &count, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        if (count < out.size()) out.resize(count);
        return out;
    }
    Status use_devices(std::span<const std::uint32_t> index) override {
        ErrorBuffer error;
        const std::int32_t code =
            table_.use_devices(self_, index.data(), static_cast<std::uint32_t>(index.size()), &error);
        return status_from(code, error);
    }
    Result<Bytes> address() override {
        ErrorBuffer error;
        Bytes out(NPUSHMEM_ADDRESS_MAX);
        auto bytes = static_cast<std::uint32_t>(out.size());
        const std::int32_t code = table_.address(self_, out.data(), &bytes, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        if (bytes > out.size()) return overlong("address", bytes);
        out.resize(bytes);
        return out;
    }
    Reach reach(const npushmem_peer& peer) override {
        npushmem_reach out{};
        out.struct_size = sizeof out;
        const std::int32_t code = table_.reach(self_, &peer, &out);
        if (code != NPUSHMEM_OK) {
            const std::string why = text_of(out.why);
            return {0, 0, 0, "reach failed: " + (why.empty() ? std::string(name_of(static_cast<Code>(code))) : why)};
        }
        // A peer cannot offer more than the plugin declares: the loader checked only the plugin's capabilities.
        return {out.capabilities & table_.capabilities,
                out.atomic_32,
                out.atomic_64,
                text_of(out.why),
                out.latency_ns,
                out.bytes_per_second};
    }
    Status connect(const npushmem_peer& peer) override {
        ErrorBuffer error;
        const std::int32_t code = table_.connect(self_, &peer, &error);
        return status_from(code, error);
    }
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        ErrorBuffer error;
        RegisteredMemory out;
        out.handle.resize(NPUSHMEM_HANDLE_MAX);
        auto bytes = static_cast<std::uint32_t>(out.handle.size());
        const std::int32_t code =
            table_.register_memory(self_, &memory, &out.region, out.handle.data(), &bytes, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        if (bytes > out.handle.size()) return overlong("register_memory", bytes);
        out.handle.resize(bytes);
        return out;
    }
    Code deregister_memory(std::uint64_t region) override { return as_code(table_.deregister_memory(self_, region)); }
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override {
        ErrorBuffer error;
        std::uint64_t remote = 0;
        const std::int32_t code =
            table_.import_memory(self_, pe, handle.data(), static_cast<std::uint32_t>(handle.size()), &remote, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        return remote;
    }
    Code release_memory(std::uint64_t remote) override { return as_code(table_.release_memory(self_, remote)); }
    Result<void*> map(std::uint64_t remote) override {
        ErrorBuffer error;
        void* base = nullptr;
        const std::int32_t code = table_.map(self_, remote, &base, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        return base;
    }
    Result<std::uint64_t> create_queue() override {
        ErrorBuffer error;
        std::uint64_t queue = 0;
        const std::int32_t code = table_.create_queue(self_, &queue, &error);
        if (code != NPUSHMEM_OK) return status_from(code, error);
        return queue;
    }
    Code destroy_queue(std::uint64_t queue) override { return as_code(table_.destroy_queue(self_, queue)); }
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        return as_code(table_.put(self_, queue, &op, token));
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        return as_code(table_.get(self_, queue, &op, token));
    }
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override {
        return as_code(table_.atomic(self_, queue, &op, token));
    }
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override {
        return as_code(table_.put_signal(self_, queue, &op, token));
    }
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override {
        return has(&npushmem_transport_v1::put_strided) ? as_code(table_.put_strided(self_, queue, &op, token))
                                                        : Code::unsupported;
    }
    Code fence(std::uint64_t queue) override { return as_code(table_.fence(self_, queue)); }
    Code quiet(std::uint64_t queue) override { return as_code(table_.quiet(self_, queue)); }
    Code test(std::uint64_t queue, std::uint64_t token) override { return as_code(table_.test(self_, queue, token)); }
    Code progress() override { return as_code(table_.progress(self_)); }
    Code poll_event(npushmem_event& out) override {
        out.struct_size = sizeof out;  // the rest stays unset: calls are frequent and mostly find nothing
        return as_code(table_.poll_event(self_, &out));
    }
    Code forget(int pe) override {
        return has(&npushmem_transport_v1::forget) ? as_code(table_.forget(self_, pe)) : Code::ok;
    }
    Code report_arrivals(void (*arrived)(void* context), void* context) override {
        return has(&npushmem_transport_v1::report_arrivals) ? as_code(table_.report_arrivals(self_, arrived, context))
                                                            : Code::unsupported;
    }

    // For the loader, which passes them to a decorator's `open`.
    [[nodiscard]] const npushmem_transport_v1& table() const { return table_; }
    [[nodiscard]] void* self() const { return self_; }

private:
    static Status overlong(const char* call, std::uint32_t bytes) {
        return {Code::protocol, std::string(call) + " of the plugin claims to have written " + std::to_string(bytes) +
                                    " bytes, more than it was given room for"};
    }
    // Whether the table has a function of a later minor version than 0: a decorator gets its inner table from the host,
    // which may be of an earlier version.
    template <class Function>
    [[nodiscard]] bool has(Function npushmem_transport_v1::*function) const {
        const auto* const end = reinterpret_cast<const std::byte*>(&(table_.*function)) + sizeof(Function);
        return end - reinterpret_cast<const std::byte*>(&table_) <= std::ptrdiff_t{table_.struct_size} &&
               table_.*function != nullptr;
    }
    static Code as_code(std::int32_t code) { return static_cast<Code>(code); }

    const npushmem_transport_v1& table_;
    void* self_;
    Owning owning_;
};

}  // namespace npushmem
