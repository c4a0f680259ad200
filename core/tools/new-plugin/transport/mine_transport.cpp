// SPDX-License-Identifier: BSD-3-Clause
#include "mine_transport.hpp"

#include <charconv>
#include <string>

#include "npushmem/plugin/local_atomic.hpp"

namespace mine_plugin {

using npushmem::Host;
using npushmem::is_same_host;
using npushmem::LogLevel;
using npushmem::Reach;
using npushmem::RegisteredMemory;
using npushmem::Transport;

namespace {

struct Range {
    std::uint64_t min;
    std::uint64_t max;
};

Result<std::uint64_t> read_number(const Host& host, const npushmem_config_row& row, Range range) {
    const std::string text = host.config(row.name, row.default_value);
    std::uint64_t out = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
    const bool good = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
    if (good && out >= range.min && out <= range.max) return out;
    return Status{Code::config, "NPUSHMEM_" + std::string(row.name) + "='" + text + "': expected a number from " +
                                    std::to_string(range.min) + " to " + std::to_string(range.max)};
}

// Checks everything that this side knows, and fills in the request. The target checks again.
Code check(const Import* import, const npushmem_rma& op, Kind kind, Header& data) {
    if (import == nullptr || import->pe != op.pe) return Code::argument;
    if (!fits(op.offset, op.bytes, import->bytes)) return Code::range;
    if (op.bytes > 0 && op.local == nullptr && (kind == Kind::put || kind == Kind::get)) return Code::argument;
    data.kind = kind;
    data.region = import->region;
    data.offset = op.offset;
    data.bytes = op.bytes;
    return Code::ok;
}

}  // namespace

Result<std::unique_ptr<Transport>> MineTransport::open(const Host& host, const npushmem_transport_params& params) {
    const auto depth = read_number(host, config_rows[0], {1, 65536});
    if (!depth.ok()) return depth.status();
    const auto piece = read_number(host, config_rows[1], {64, max_piece});
    if (!piece.ok()) return piece.status();
    if (params.pe < 0 || params.pe >= params.npes || params.npes > 1 << Token::pe_bits)
        return Status{Code::range, "PE " + std::to_string(params.pe) + " of " + std::to_string(params.npes) +
                                       " PEs: expected at most " + std::to_string(1 << Token::pe_bits) + " PEs"};
    auto wire = SocketWire::open(piece.value());
    if (!wire.ok()) return wire.status();
    host.log(LogLevel::debug, "PE " + std::to_string(params.pe) + " listens on @" + wire.value().address().name);
    return std::unique_ptr<Transport>(
        new MineTransport(host, params, {depth.value(), piece.value()}, std::move(wire).value()));
}

Reach MineTransport::reach(const npushmem_peer& peer) {
    if (!npushmem::is_same_host(peer.host, params_.host)) return {0, 0, 0, "different host"};
    if (peer.host.user != params_.host.user) return {0, 0, 0, "same host, but another user"};
    if (peer.address == nullptr) return {0, 0, 0, "the peer has not opened transport mine"};
    return {capabilities, npushmem::all_atomics, npushmem::all_atomics, "same host, Unix socket"};
}

Result<RegisteredMemory> MineTransport::register_memory(const npushmem_memory& memory) {
    Handle handle;
    handle.region = regions_.add(memory);
    handle.bytes = memory.bytes;
    handle.pe = static_cast<std::uint64_t>(params_.pe);
    return RegisteredMemory{handle.region, handle.encode()};
}

Code MineTransport::deregister_memory(std::uint64_t region) {
    return regions_.remove(region) ? Code::ok : Code::argument;
}

Result<std::uint64_t> MineTransport::import_memory(int pe, std::span<const std::byte> handle) {
    const auto decoded = Handle::decode(handle, pe);
    if (!decoded.ok()) return decoded.status();
    return imports_.insert({pe, decoded.value().region, decoded.value().bytes});
}

Code MineTransport::release_memory(std::uint64_t remote) {
    return imports_.remove(remote).has_value() ? Code::ok : Code::argument;
}

Result<std::uint64_t> MineTransport::create_queue() { return queues_.insert(std::make_shared<Queue>()); }

Code MineTransport::destroy_queue(std::uint64_t queue) {
    const auto removed = queues_.remove(queue);
    if (!removed) return Code::argument;
    connections_.drop(**removed);
    return Code::ok;
}

Code MineTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Operation operation;
    operation.local = static_cast<std::byte*>(op.local);
    const Code code = check(imports_.find(op.remote), op, Kind::put, operation.data);
    return code == Code::ok ? connections_.post(queues_.find(queue), op.pe, std::move(operation), token) : code;
}

Code MineTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Operation operation;
    operation.local = static_cast<std::byte*>(op.local);
    const Code code = check(imports_.find(op.remote), op, Kind::get, operation.data);
    return code == Code::ok ? connections_.post(queues_.find(queue), op.pe, std::move(operation), token) : code;
}

Code MineTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    if (op.operation >= NPUSHMEM_ATOMIC_COUNT || (op.width != 4 && op.width != 8)) return Code::argument;
    if (op.offset % op.width != 0) return Code::argument;
    if (npushmem::fetches(op.operation) && op.result == nullptr) return Code::argument;
    Operation operation;
    Header& last = operation.last.emplace();
    const Code code =
        check(imports_.find(op.remote), {op.pe, 0, op.remote, op.offset, nullptr, op.width}, Kind::atomic, last);
    if (code != Code::ok) return code;
    last.bytes = 0;  // no payload
    last.operation = op.operation;
    last.width = op.width;
    last.operand = op.operand;
    last.compare = op.compare;
    operation.result = npushmem::fetches(op.operation) ? op.result : nullptr;
    return connections_.post(queues_.find(queue), op.pe, std::move(operation), token);
}

Code MineTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    if (op.operation > NPUSHMEM_SIGNAL_ADD || op.signal_offset % sizeof op.signal != 0) return Code::argument;
    Operation operation;
    operation.local = static_cast<std::byte*>(op.data.local);
    Code code = check(imports_.find(op.data.remote), op.data, Kind::put, operation.data);
    if (code != Code::ok) return code;
    Header& last = operation.last.emplace();
    code = check(imports_.find(op.signal_remote),
                 {op.data.pe, 0, op.signal_remote, op.signal_offset, nullptr, sizeof op.signal}, Kind::signal, last);
    if (code != Code::ok) return code;
    last.bytes = 0;  // no payload
    last.operation = static_cast<std::uint8_t>(op.operation);
    last.operand = op.signal;
    return connections_.post(queues_.find(queue), op.data.pe, std::move(operation), token);
}

// A target executes the requests of this PE in the order in which they were posted.
Code MineTransport::fence(std::uint64_t queue) { return queues_.find(queue) != nullptr ? Code::ok : Code::argument; }

Code MineTransport::quiet(std::uint64_t queue) {
    const std::shared_ptr<Queue>* const found = queues_.find(queue);
    if (found == nullptr) return Code::argument;
    if (!(*found)->is_quiet()) (void)connections_.progress(0);
    return (*found)->is_quiet() ? (*found)->take_failures() : Code::again;
}

Code MineTransport::test(std::uint64_t queue, std::uint64_t token) {
    const std::shared_ptr<Queue>* const found = queues_.find(queue);
    return found != nullptr ? connections_.test(**found, token) : Code::argument;
}

}  // namespace mine_plugin
