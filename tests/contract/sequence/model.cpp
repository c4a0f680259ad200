// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/model.hpp"

#include <algorithm>
#include <cstring>

#include "npushmem/plugin/transport.h"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract::sequence {
namespace {

// With more members, the set of possible values would be large.
constexpr std::size_t max_group_members = 8;

// Classes of operations that commute with each other.
enum Commuting { reads_only, exclusive, adds, ands, ors, xors, signal_adds };

Commuting class_of(std::uint8_t operation) {
    switch (operation) {
        case NPUSHMEM_ATOMIC_FETCH: return reads_only;
        case NPUSHMEM_ATOMIC_ADD:
        case NPUSHMEM_ATOMIC_FETCH_ADD: return adds;
        case NPUSHMEM_ATOMIC_AND:
        case NPUSHMEM_ATOMIC_FETCH_AND: return ands;
        case NPUSHMEM_ATOMIC_OR:
        case NPUSHMEM_ATOMIC_FETCH_OR: return ors;
        case NPUSHMEM_ATOMIC_XOR:
        case NPUSHMEM_ATOMIC_FETCH_XOR: return xors;
        default: return exclusive;
    }
}

bool commute(Commuting a, Commuting b) {
    if (a == reads_only || b == reads_only) return a != exclusive && b != exclusive;
    return a == b && a != exclusive;
}

std::uint64_t truncated(std::uint64_t value, std::uint8_t width) { return width == 4 ? value & 0xffffffffU : value; }

// The word's value after the operation.
std::uint64_t updated(const Operation& op, std::uint64_t old) {
    switch (op.operation) {
        case NPUSHMEM_ATOMIC_SET:
        case NPUSHMEM_ATOMIC_SWAP: return truncated(op.operand, op.width);
        case NPUSHMEM_ATOMIC_COMPARE_SWAP:
            return truncated(old == truncated(op.compare, op.width) ? op.operand : old, op.width);
        default: break;
    }
    switch (class_of(op.operation)) {
        case adds: return truncated(old + op.operand, op.width);
        case ands: return truncated(old & op.operand, op.width);
        case ors: return truncated(old | op.operand, op.width);
        case xors: return truncated(old ^ op.operand, op.width);
        default: return old;
    }
}

bool overlap(std::uint64_t begin, std::uint64_t end, std::uint64_t other_begin, std::uint64_t other_end) {
    return begin < other_end && other_begin < end;
}

std::uint64_t value_of(std::span<const std::byte> bytes) {
    std::uint64_t out = 0;  // little-endian: the low bytes come first
    std::memcpy(&out, bytes.data(), std::min(bytes.size(), sizeof out));
    return out;
}

}  // namespace

Model::Model(const World& world) : world_(world) {
    for (int pe = 0; pe < world.npes; ++pe) {
        memory_[{pe, main_region}].resize(region_bytes[main_region]);
        queues_.insert({pe, 0});
    }
}

std::vector<Model::Access> Model::accesses_of(const Operation& op) {
    std::vector<Access> out;
    const bool atomic = op.kind == Kind::atomic;
    const std::uint64_t blocks = blocks_of(op);
    const std::uint64_t bytes = atomic ? op.width : blocks == 0 ? 0 : op.bytes;
    const bool updates = atomic ? op.operation != NPUSHMEM_ATOMIC_FETCH : op.kind != Kind::get;
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(blocks, 1); ++i) {
        const std::uint64_t begin = op.offset + i * op.stride;
        out.push_back({op, op.region, begin, begin + bytes, updates, false, false});
    }
    if (op.kind == Kind::put_signal)
        out.push_back({op, op.signal_region, op.signal_offset, op.signal_offset + 8, true, true, false});
    return out;
}

bool Model::can_access(int pe, int to, int region) const {
    return region == main_region ? memory_.contains({to, region}) : imports_.contains({pe, to});
}

bool Model::in_use(int pe, int to, int region) const {
    return std::any_of(outstanding_.begin(), outstanding_.end(), [&](const Access& access) {
        return access.op.pe == pe && access.op.to == to && access.region == region;
    });
}

bool Model::fits(const Operation& op, const Access& access) const {
    return can_access(op.pe, op.to, access.region) && access.begin >= region_guard &&
           access.end <= region_bytes[access.region] - region_guard;
}

// Whether a fence orders the outstanding access before the operation.
bool Model::is_ordered(const Access& earlier, const Operation& op) {
    return earlier.op.pe == op.pe && earlier.op.queue == op.queue && earlier.op.to == op.to && earlier.updates &&
           earlier.fenced;
}

// Whether the operation commutes with all of the latest group of its word, to which the other belongs. To commute with
// the other alone is not enough: a fetch commutes with every class, but must be in the group whose values it may find.
bool Model::joins_group_of(const Operation& op, const Operation& other) const {
    const auto latest = groups_.find({{op.to, op.region}, op.offset});
    if (latest == groups_.end() || latest->second->width != op.width) return false;
    const auto& members = latest->second->members;
    return commute(class_of(op.operation), static_cast<Commuting>(latest->second->commuting)) &&
           std::any_of(members.begin(), members.end(), [&](const Operation& each) { return each.id == other.id; });
}

// Whether the order of this access and of all outstanding ones on its bytes is given or does not matter.
bool Model::is_determined(const Access& access) const {
    return std::all_of(outstanding_.begin(), outstanding_.end(), [&](const Access& other) {
        if (other.op.to != access.op.to || other.region != access.region) return true;
        if (!overlap(access.begin, access.end, other.begin, other.end)) return true;
        if (!access.updates && !other.updates) return true;
        if (is_ordered(other, access.op)) return true;
        if (access.begin != other.begin || access.end != other.end) return false;
        if (access.is_signal || other.is_signal)
            return access.is_signal && other.is_signal && access.op.operation == NPUSHMEM_SIGNAL_ADD &&
                   other.op.operation == NPUSHMEM_SIGNAL_ADD;
        return access.op.kind == Kind::atomic && other.op.kind == Kind::atomic && joins_group_of(access.op, other.op);
    });
}

bool Model::admits_atomic(const Operation& op, const Offer& offer) const {
    const std::uint32_t offered = op.width == 4 ? offer.atomic_32 : offer.atomic_64;
    if ((op.width != 4 && op.width != 8) || op.operation >= NPUSHMEM_ATOMIC_COUNT) return false;
    if ((offered >> op.operation & 1U) == 0 || op.offset % op.width != 0) return false;
    const auto latest = groups_.find({{op.to, op.region}, op.offset});
    return latest == groups_.end() || latest->second->members.size() < max_group_members;
}

bool Model::admits_data(const Operation& op) const {
    const Offer* const offer = world_.find(op.pe, op.to);
    if (offer == nullptr || !queue_exists(op.pe, op.queue)) return false;
    const std::uint64_t needs = op.kind == Kind::put           ? NPUSHMEM_CAP_PUT
                                : op.kind == Kind::get         ? NPUSHMEM_CAP_GET
                                : op.kind == Kind::put_signal  ? NPUSHMEM_CAP_PUT_SIGNAL
                                : op.kind == Kind::put_strided ? NPUSHMEM_CAP_PUT_STRIDED
                                                               : NPUSHMEM_CAP_ATOMIC;
    if ((offer->capabilities & needs) == 0) return false;
    if (op.kind == Kind::atomic && !admits_atomic(op, *offer)) return false;
    if (op.kind == Kind::put_strided && op.stride < op.bytes) return false;
    const auto accesses = accesses_of(op);
    if (op.kind == Kind::put_signal) {
        if (op.signal_offset % 8 != 0) return false;
        if (op.region == op.signal_region &&
            overlap(accesses[0].begin, accesses[0].end, accesses[1].begin, accesses[1].end))
            return false;
    }
    return std::all_of(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return fits(op, access) && is_determined(access); });
}

bool Model::admits(const Operation& op) const {
    const auto uses_queue = [&](const Access& access) { return access.op.pe == op.pe && access.op.queue == op.queue; };
    switch (op.kind) {
        case Kind::put:
        case Kind::get:
        case Kind::atomic:
        case Kind::put_signal:
        case Kind::put_strided: return admits_data(op);
        case Kind::fence:
        case Kind::quiet: return queue_exists(op.pe, op.queue);
        case Kind::wait:
        case Kind::poll: {
            const auto token = tokens_.find(op.waits_for);
            return token != tokens_.end() && token->second.pe == op.pe;
        }
        case Kind::create_queue: return !queue_exists(op.pe, op.queue) && op.queue < queue_count;
        // A queue may be destroyed with operations in flight, but whether they take effect is not determined.
        case Kind::destroy_queue:
            return op.queue != 0 && queue_exists(op.pe, op.queue) &&
                   std::none_of(outstanding_.begin(), outstanding_.end(), uses_queue);
        case Kind::register_region: return !region_exists(op.pe, second_region);
        case Kind::deregister_region:
            return region_exists(op.pe, second_region) &&
                   std::none_of(imports_.begin(), imports_.end(),
                                [&](const PeAndNumber& import) { return import.second == op.pe; });
        case Kind::import_region:
            return world_.find(op.pe, op.to) != nullptr && region_exists(op.to, second_region) &&
                   !imports_.contains({op.pe, op.to});
        case Kind::release_region: return imports_.contains({op.pe, op.to}) && !in_use(op.pe, op.to, second_region);
    }
    return false;
}

std::uint64_t Model::word(const Operation& op) const {
    const auto& bytes = memory_.at({op.to, op.region});
    return value_of(std::span(bytes).subspan(op.offset, op.width));
}

// The latest group of the word if one of its members is outstanding and the operation commutes with it, else a new one.
std::shared_ptr<Model::Group> Model::group_for(const Operation& op) {
    auto& latest = groups_[{{op.to, op.region}, op.offset}];
    const Commuting mine = class_of(op.operation);
    const auto is_member = [&](const Access& access) {
        return std::any_of(latest->members.begin(), latest->members.end(),
                           [&](const Operation& member) { return member.id == access.op.id; });
    };
    const bool joins = latest != nullptr && latest->width == op.width &&
                       commute(mine, static_cast<Commuting>(latest->commuting)) &&
                       std::any_of(outstanding_.begin(), outstanding_.end(), is_member);
    if (!joins) {
        latest = std::make_shared<Group>();
        latest->base = word(op);
        latest->width = op.width;
        latest->commuting = mine;
    }
    if (latest->commuting == reads_only) latest->commuting = mine;
    return latest;
}

// The members that are complete, or that a fence orders before the operation.
std::set<int> Model::members_before(const Group& group, const Operation& op) const {
    std::set<int> out;
    for (const Operation& member : group.members) out.insert(member.id);
    for (const Access& access : outstanding_)
        if (!is_ordered(access, op)) out.erase(access.op.id);
    return out;
}

void Model::drop_finished_groups() {
    std::erase_if(groups_, [&](const auto& entry) {
        const auto& members = entry.second->members;
        return std::none_of(outstanding_.begin(), outstanding_.end(), [&](const Access& access) {
            return std::any_of(members.begin(), members.end(),
                               [&](const Operation& member) { return member.id == access.op.id; });
        });
    });
}

void Model::apply_atomic(const Operation& op) {
    const auto group = group_for(op);
    if (fetches(op.operation)) fetched_[op.id] = {group, members_before(*group, op)};
    group->members.push_back(op);
    const std::uint64_t value = updated(op, word(op));
    std::memcpy(memory_.at({op.to, op.region}).data() + op.offset, &value, op.width);
}

void Model::put_blocks(const Operation& op) {
    const auto data = data_of(op);
    const auto to = std::span(memory_.at({op.to, op.region}));
    for (std::uint64_t i = 0; i < blocks_of(op); ++i)
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(i * op.bytes), op.bytes,
                    to.begin() + static_cast<std::ptrdiff_t>(op.offset + i * op.stride));
}

void Model::apply_data(const Operation& op) {
    if (op.kind == Kind::atomic) {
        apply_atomic(op);
    } else if (op.kind == Kind::get) {
        const auto from = std::span(memory_.at({op.to, op.region})).subspan(op.offset, op.bytes);
        expected_[op.id].assign(from.begin(), from.end());
    } else {
        put_blocks(op);
    }
    if (op.kind == Kind::put_signal) {
        std::byte* const signal = memory_.at({op.to, op.signal_region}).data() + op.signal_offset;
        const std::uint64_t old = value_of({signal, 8});
        const std::uint64_t value = op.operation == NPUSHMEM_SIGNAL_ADD ? old + op.operand : op.operand;
        std::memcpy(signal, &value, sizeof value);
    }
    // The bytes of other operations no longer belong to a word's group: its members are ordered before.
    for (const Access& access : accesses_of(op)) {
        outstanding_.push_back(access);
        std::erase_if(groups_, [&](const auto& entry) {
            const auto& [place, at] = entry.first;
            const std::uint64_t end = at + entry.second->width;
            const bool own = op.kind == Kind::atomic && at == op.offset && entry.second->width == op.width;
            return access.updates && !own && place == PeAndNumber{op.to, access.region} &&
                   overlap(access.begin, access.end, at, end);
        });
    }
    if (op.has_token) tokens_[op.id] = {op.pe, op.queue};
}

void Model::finish_queue(int pe, int queue) {
    std::erase_if(outstanding_, [&](const Access& access) { return access.op.pe == pe && access.op.queue == queue; });
    std::erase_if(tokens_, [&](const auto& token) { return token.second.pe == pe && token.second.queue == queue; });
    drop_finished_groups();
}

void Model::apply(const Operation& op) {
    switch (op.kind) {
        case Kind::put:
        case Kind::get:
        case Kind::atomic:
        case Kind::put_signal:
        case Kind::put_strided: apply_data(op); break;
        case Kind::fence:
            for (Access& access : outstanding_)
                if (access.op.pe == op.pe && access.op.queue == op.queue) access.fenced = true;
            break;
        case Kind::quiet: finish_queue(op.pe, op.queue); break;
        case Kind::wait:
            tokens_.erase(op.waits_for);
            std::erase_if(outstanding_,
                          [&](const Access& access) { return access.op.id == op.waits_for && !access.updates; });
            drop_finished_groups();
            break;
        case Kind::poll: break;  // whether the token is complete is not known
        case Kind::create_queue: queues_.insert({op.pe, op.queue}); break;
        case Kind::destroy_queue: queues_.erase({op.pe, op.queue}); break;
        case Kind::register_region: memory_[{op.pe, second_region}].assign(region_bytes[second_region], {}); break;
        case Kind::deregister_region:
            memory_.erase({op.pe, second_region});
            std::erase_if(groups_, [&](const auto& entry) {
                return entry.first.first == PeAndNumber{op.pe, second_region};
            });
            break;
        case Kind::import_region: imports_.insert({op.pe, op.to}); break;
        case Kind::release_region: imports_.erase({op.pe, op.to}); break;
    }
}

std::vector<int> Model::waitable(int pe) const {
    std::vector<int> out;
    for (const auto& [id, token] : tokens_)
        if (token.pe == pe) out.push_back(id);
    return out;
}

// The word as the operation may find it: with all members that are ordered before it, and any of the others.
std::set<std::uint64_t> Model::possible_values(const Fetch& fetch, int id) {
    std::set<std::uint64_t> values{fetch.group->base};
    for (const Operation& member : fetch.group->members) {
        if (member.id == id) continue;
        std::set<std::uint64_t> after;
        for (const std::uint64_t value : values) after.insert(updated(member, value));
        if (fetch.earlier.contains(member.id))
            values = std::move(after);
        else
            values.merge(after);
    }
    return values;
}

std::optional<std::string> Model::check_fetched(int id, std::span<const std::byte> value) const {
    if (const auto get = expected_.find(id); get != expected_.end()) {
        const auto [real, right] = std::mismatch(value.begin(), value.end(), get->second.begin(), get->second.end());
        if (real == value.end() && right == get->second.end()) return std::nullopt;
        return "get " + std::to_string(id) + " fetched " + hex(std::to_integer<unsigned>(*real)) + " as its byte " +
               std::to_string(real - value.begin()) + ", expected " + hex(std::to_integer<unsigned>(*right));
    }
    const auto atomic = fetched_.find(id);
    if (atomic == fetched_.end()) return std::nullopt;
    const auto possible = possible_values(atomic->second, id);
    if (possible.contains(value_of(value))) return std::nullopt;
    std::string expected;
    for (const std::uint64_t each : possible) expected += (expected.empty() ? "" : " or ") + hex(each);
    return "atomic " + std::to_string(id) + " fetched " + hex(value_of(value)) + ", expected " + expected;
}

std::optional<std::string> Model::check_region(int pe, int region, std::span<const std::byte> real) const {
    const auto& model = memory_.at({pe, region});
    std::vector<bool> changing(model.size());
    for (const Access& access : outstanding_)
        if (access.updates && access.op.to == pe && access.region == region)
            std::fill(changing.begin() + static_cast<std::ptrdiff_t>(access.begin),
                      changing.begin() + static_cast<std::ptrdiff_t>(access.end), true);
    for (std::size_t i = 0; i < model.size(); ++i)
        if (!changing[i] && real[i] != model[i])
            return "byte " + std::to_string(i) + " of the " + region_name(region) + " region of PE " +
                   std::to_string(pe) + " is " + hex(std::to_integer<unsigned>(real[i])) + ", expected " +
                   hex(std::to_integer<unsigned>(model[i]));
    return std::nullopt;
}

}  // namespace npushmem::contract::sequence
