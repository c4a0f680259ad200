// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/fabric_machine.hpp"

#include <algorithm>

#include "tests/contract/patterns.hpp"

namespace npushmem::contract::sequence {
namespace {

constexpr std::uint64_t page_bytes = 4096;

Machine::Outcome outcome_of(Code code) {
    if (code == Code::ok) return {};
    return {"the transport returned '" + std::string(name_of(code)) + "'", code == Code::timeout, false};
}

Machine::Outcome outcome_of(const Status& status) {
    if (status.ok()) return {};
    return {"the transport returned '" + std::string(name_of(status.code())) + "' (" + status.message() + ")", false,
            false};
}

bool is_source_of(Kind kind) { return kind == Kind::put || kind == Kind::put_signal || kind == Kind::put_strided; }

}  // namespace

World world_of(const Fabric& fabric) {
    World out;
    out.npes = fabric.npes();
    for (int from = 0; from < fabric.npes(); ++from) {
        for (int to = 0; to < fabric.npes(); ++to) {
            if (!fabric.pe(from).is_connected(to)) continue;
            const Reach& reach = fabric.pe(from).reach(to);
            out.offers.push_back({from, to, reach.capabilities, reach.atomic_32, reach.atomic_64});
        }
    }
    return out;
}

FabricMachine::Buffer::Buffer(int id, std::span<const std::byte> content)
    : lead_(static_cast<std::size_t>(id) % 8), bytes_(lead_ + content.size()) {
    std::copy(content.begin(), content.end(), used().begin());
}

FabricMachine::Buffer::Buffer(int id, std::uint64_t bytes, std::uint64_t alignment)
    : lead_(static_cast<std::size_t>(id) * alignment % 16), bytes_(lead_ + bytes, std::byte{0xa5}) {}

FabricMachine::FabricMachine(Fabric& fabric) : fabric_(fabric) {
    for (int pe = 0; pe < fabric_.npes(); ++pe) {
        const auto memory = fabric_.pe(pe).memory().subspan(offset(main_region, 0), region_bytes[main_region]);
        std::fill(memory.begin(), memory.end(), std::byte{0});
    }
}

FabricMachine::~FabricMachine() {
    for (const auto& [place, queue] : queues_) {
        (void)fabric_.pe(place.first).quiet(queue);
        (void)fabric_.pe(place.first).transport().destroy_queue(queue);
    }
    for (int pe = 0; pe < fabric_.npes(); ++pe) {
        if (fabric_.pe(pe).quiet() == Code::timeout) {
            // The transport may still write to these buffers. They remain until the process ends.
            static std::vector<std::map<int, Buffer>> still_in_use;
            still_in_use.push_back(std::move(buffers_));
            buffers_.clear();
        }
    }
    for (const auto& [place, remote] : imports_) (void)fabric_.pe(place.first).transport().release_memory(remote);
    for (const auto& [owner, second] : second_)
        (void)fabric_.pe(owner).transport().deregister_memory(second.registered.region);
}

std::uint64_t FabricMachine::offset(int region, std::uint64_t offset) {
    return (region == main_region ? page_bytes - region_bytes[main_region] / 2 : 0) + offset;
}

std::uint64_t FabricMachine::queue_number(int pe, int queue) const {
    return queue == 0 ? fabric_.pe(pe).queue() : queues_.at({pe, queue});
}

std::uint64_t FabricMachine::remote(const Operation& op, int region) const {
    return region == main_region ? pe(op).remote(op.to) : imports_.at({op.pe, op.to});
}

std::span<const std::byte> FabricMachine::region(int pe, int region) const {
    if (region == second_region) return second_.at(pe).slice->bytes().first(region_bytes[second_region]);
    return fabric_.pe(pe).memory().subspan(offset(main_region, 0), region_bytes[main_region]);
}

npushmem_rma FabricMachine::rma(const Operation& op, std::span<std::byte> local) const {
    return {op.to,   0, remote(op, op.region), offset(op.region, op.offset), op.bytes == 0 ? nullptr : local.data(),
            op.bytes};
}

npushmem_atomic FabricMachine::atomic(const Operation& op, std::span<std::byte> result) const {
    npushmem_atomic out{};
    out.pe = op.to;
    out.operation = op.operation;
    out.width = op.width;
    out.remote = remote(op, op.region);
    out.offset = offset(op.region, op.offset);
    out.operand = op.operand;
    out.compare = op.width == 4 ? op.compare & 0xffffffffU : op.compare;
    out.result = fetches(op.operation) ? result.data() : nullptr;
    return out;
}

npushmem_put_signal FabricMachine::put_signal(const Operation& op, std::span<std::byte> local) const {
    npushmem_put_signal out{};
    out.data = rma(op, local);
    out.signal_remote = remote(op, op.signal_region);
    out.signal_offset = offset(op.signal_region, op.signal_offset);
    out.signal = op.operand;
    out.operation = op.operation;
    return out;
}

npushmem_put_strided FabricMachine::put_strided(const Operation& op, std::span<std::byte> local) const {
    return {rma(op, local), op.count, op.stride, op.bytes};
}

Code FabricMachine::post_once(const Operation& op, std::uint64_t* token) {
    Transport& transport = pe(op).transport();
    const std::uint64_t queue = queue_number(op.pe, op.queue);
    const auto local = buffers_.at(op.id).used();
    switch (op.kind) {
        case Kind::put: return transport.put(queue, rma(op, local), token);
        case Kind::get: return transport.get(queue, rma(op, local), token);
        case Kind::atomic: return transport.atomic(queue, atomic(op, local), token);
        case Kind::put_strided: return transport.put_strided(queue, put_strided(op, local), token);
        default: return transport.put_signal(queue, put_signal(op, local), token);
    }
}

Machine::Outcome FabricMachine::post(const Operation& op) {
    if (is_source_of(op.kind))
        buffers_.insert_or_assign(op.id, Buffer(op.id, data_of(op)));
    else
        buffers_.insert_or_assign(op.id, Buffer(op.id, fetched_bytes(op), op.kind == Kind::atomic ? op.width : 1));
    std::uint64_t number = ~std::uint64_t{0};
    Code code = Code::again;
    const Code waited =
        pe(op).until([&] { return (code = post_once(op, op.has_token ? &number : nullptr)) != Code::again; });
    Outcome out = outcome_of(waited != Code::ok ? waited : code);
    if (!out.error.empty() || !op.has_token) return out;
    Token& token = tokens_.insert_or_assign(op.id, Token{number, op.pe, op.queue, is_source_of(op.kind)}).first->second;
    if (number == 0) record_completion(op.id, token);
    out.is_complete = number == 0;
    return out;
}

// The source of a complete put may be changed: a transport that still reads it sends wrong bytes.
void FabricMachine::record_completion(int id, Token& token) {
    token.number = 0;
    if (!token.is_source) return;
    const auto source = buffers_.at(id).used();
    std::fill(source.begin(), source.end(), std::byte{0x5a});
}

// The token of a complete operation is not tested again.
Machine::Outcome FabricMachine::test(const Operation& op) {
    Token& token = tokens_.at(op.waits_for);
    Code code = Code::ok;
    if (token.number != 0) {
        const std::uint64_t queue = queue_number(token.pe, token.queue);
        code = op.kind == Kind::wait ? pe(op).wait(token.number, queue) : pe(op).transport().test(queue, token.number);
    }
    if (op.kind == Kind::poll && code == Code::again) return {};
    Outcome out = outcome_of(code);
    if (!out.error.empty()) return out;
    record_completion(op.waits_for, token);
    out.is_complete = true;
    return out;
}

Machine::Outcome FabricMachine::quiet(const Operation& op) {
    Outcome out = outcome_of(pe(op).quiet(queue_number(op.pe, op.queue)));
    if (!out.error.empty()) return out;
    for (auto& [id, token] : tokens_)
        if (token.pe == op.pe && token.queue == op.queue) record_completion(id, token);
    std::erase_if(tokens_, [&](const auto& each) { return each.second.pe == op.pe && each.second.queue == op.queue; });
    return out;
}

Machine::Outcome FabricMachine::create_queue(const Operation& op) {
    const auto made = pe(op).transport().create_queue();
    if (!made.ok()) return outcome_of(made.status());
    queues_[{op.pe, op.queue}] = made.value();
    return {};
}

Machine::Outcome FabricMachine::destroy_queue(const Operation& op) {
    const auto queue = queues_.extract({op.pe, op.queue});
    return outcome_of(pe(op).transport().destroy_queue(queue.mapped()));
}

Machine::Outcome FabricMachine::register_region(const Operation& op) {
    auto slices = make_slices(Layout::own_files, 1, 2 * page_bytes);
    auto registered = pe(op).transport().register_memory(slices[0]->describe());
    if (!registered.ok()) return outcome_of(registered.status());
    second_[op.pe] = {std::move(slices[0]), std::move(registered).value()};
    return {};
}

Machine::Outcome FabricMachine::deregister_region(const Operation& op) {
    const auto second = second_.extract(op.pe);
    return outcome_of(pe(op).transport().deregister_memory(second.mapped().registered.region));
}

Machine::Outcome FabricMachine::import_region(const Operation& op) {
    const auto imported = pe(op).transport().import_memory(op.to, second_.at(op.to).registered.handle);
    if (!imported.ok()) return outcome_of(imported.status());
    imports_[{op.pe, op.to}] = imported.value();
    return {};
}

Machine::Outcome FabricMachine::release_region(const Operation& op) {
    const auto import = imports_.extract({op.pe, op.to});
    return outcome_of(pe(op).transport().release_memory(import.mapped()));
}

Machine::Outcome FabricMachine::perform(const Operation& op) {
    switch (op.kind) {
        case Kind::put:
        case Kind::get:
        case Kind::atomic:
        case Kind::put_signal:
        case Kind::put_strided: return post(op);
        case Kind::fence: return outcome_of(pe(op).fence(queue_number(op.pe, op.queue)));
        case Kind::quiet: return quiet(op);
        case Kind::wait:
        case Kind::poll: return test(op);
        case Kind::create_queue: return create_queue(op);
        case Kind::destroy_queue: return destroy_queue(op);
        case Kind::register_region: return register_region(op);
        case Kind::deregister_region: return deregister_region(op);
        case Kind::import_region: return import_region(op);
        case Kind::release_region: return release_region(op);
    }
    return {"unknown operation"};
}

}  // namespace npushmem::contract::sequence
