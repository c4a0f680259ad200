// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/dispatch_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/dispatch/dispatch_kernel.hpp"

namespace npushmem::moe {

namespace {

// Calls visit(rank) for the ranks that the host serves, starting after this one.
template <class Visit>
void for_each_host_served(SymmetricMemory& memory, const DispatchWork& work, const Visit& visit) {
    for (std::int32_t i = 1; i <= work.layout.ranks(); ++i) {
        const std::int32_t rank = (memory.my_pe() + i) % work.layout.ranks();
        if (work.is_host_served(rank)) visit(rank);
    }
}

void put_expert(SymmetricMemory& memory, const DispatchWork& work, std::int32_t expert, int holder) {
    const std::uint64_t begin = work.tables.begins[expert];
    const std::uint64_t count = work.tables.begins[expert + 1] - begin;
    const Bytes row = work.layout.row_bytes();
    if (count == 0) return;
    std::byte* x = work.x() + (row * work.tables.starts[expert]).value();
    for (std::uint64_t i = 0; i < count; ++i) {
        if (work.through_relays != nullptr && work.through_relays[begin + i] != 0) continue;
        memory.put(x + row.value() * i, work.row_of(work.tables.order[begin + i]), row, holder);
    }
    const std::uint32_t* slots = work.slots_to_send();
    if (slots == nullptr) return;
    memory.put(reinterpret_cast<std::byte*>(work.slots() + work.tables.starts[expert]),
               reinterpret_cast<const std::byte*>(slots + begin), bytes_of(Rows{count}, Bytes{sizeof *slots}), holder);
    if (work.row_choices == nullptr) return;
    const Bytes each{work.layout.choices_per_row() * sizeof(Choice)};
    memory.put(reinterpret_cast<std::byte*>(work.choices_here()) + (each * work.tables.starts[expert]).value(),
               reinterpret_cast<const std::byte*>(work.row_choices) + (each * begin).value(), each * count, holder);
}

void put_records(SymmetricMemory& memory, const DispatchWork& work) {
    const Bytes record = work.layout.record(work.epoch, memory.my_pe());
    for_each_host_served(memory, work, [&](int rank) {
        memory.put(work.region + record.value(), work.tables.record, Bytes{work.record_bytes()}, rank);
    });
}

void put_rows(SymmetricMemory& memory, const DispatchWork& work) {
    for_each_host_served(memory, work, [&](int rank) {
        for (std::int32_t e = work.placement.first_expert(rank); e < work.placement.first_expert(rank + 1); ++e) {
            put_expert(memory, work, e, rank);
        }
    });
}

// Ordered behind the puts.
void signal_all(SymmetricMemory& memory, const DispatchWork& work, Bytes word) {
    memory.fence();
    for_each_host_served(memory, work, [&](int rank) { memory.signal(work.word(word), work.epoch, rank); });
}

}  // namespace

void publish_counts_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    put_records(memory, work);
    signal_all(memory, work, work.layout.counts(memory.my_pe()));
}

void put_rows_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    put_rows(memory, work);
    signal_all(memory, work, work.layout.arrived(memory.my_pe()));
}

void send_fixed_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    if (work.accepts) put_rows(memory, work);
    put_records(memory, work);
    signal_all(memory, work, work.layout.arrived(memory.my_pe()));
}

void signal_dispatch_abort_remotely(SymmetricMemory& memory, const DispatchWork& work) {
    // Ordered behind the puts of a failed call.
    memory.fence();
    for_each_host_served(memory, work, [&](int rank) {
        memory.add(work.word(work.layout.counts(memory.my_pe())), abort_bit, rank);
        memory.add(work.word(work.layout.arrived(memory.my_pe())), abort_bit, rank);
    });
}

DispatchResults::DispatchResults(const DispatchLayout& layout, const ExpertPlacement& placement, Rows choices)
    : layout_(layout), placement_(placement), record_(layout.record_bytes().value()) {
    for (RowPlaces* places : {&current_, &next_}) {
        places->order.resize(choices.value());
        places->begins.resize(static_cast<std::size_t>(layout.experts()) + 1);
        places->starts.resize(static_cast<std::size_t>(layout.experts()));
        places->totals.resize(static_cast<std::size_t>(layout.ranks()));
    }
}

void DispatchResults::set_record(const Status& own_status, DispatchKind kind, const RoutingId& cached) {
    DispatchRecord record;
    record.kind = kind;
    record.cached = cached;
    record.refused = static_cast<std::int32_t>(own_status.code());
    own_status.message().copy(record.reason.data(), record.reason.size() - 1);
    std::memcpy(record_.data(), &record, sizeof record);
}

void DispatchResults::use_next(DispatchWork& work, CombinePlan& plan, std::vector<std::uint8_t> through_relays) {
    next_.through_relays = std::move(through_relays);
    use(next_, work, plan);
}

void DispatchResults::use(RowPlaces& places, DispatchWork& work, CombinePlan& plan) {
    work.tables = {record_.data(),       places.order.data(), places.begins.data(),     places.starts.data(),
                   places.totals.data(), &accepted_,          plan.offset_table.data(), plan.length_table.data()};
    work.through_relays = places.through_relays.empty() ? nullptr : places.through_relays.data();
}

RowPlaces DispatchResults::places() const {
    RowPlaces places = current_;
    places.order.resize(places.begins.back());
    return places;
}

void DispatchResults::set_places(const RowPlaces& places) {
    std::ranges::copy(places.order, current_.order.begin());
    current_.begins = places.begins;
    current_.starts = places.starts;
    current_.totals = places.totals;
    current_.through_relays = places.through_relays;
    current_.relayed = places.relayed;
}

Status DispatchResults::refusal(const DispatchWork& work, std::int32_t self, const Status& own) const {
    for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank) {
        DispatchRecord record;
        std::memcpy(&record, work.region + layout_.record(work.epoch, rank).value(), sizeof record);
        if (record.refused == 0) continue;
        if (rank == self) return own;
        return {static_cast<Code>(record.refused), fmt::format("rank {} refused: {}", rank, record.reason.data())};
    }
    for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank) {
        if (Status s = other_layout(work, rank, self); !s.ok()) return s;
    }
    const std::vector<std::uint64_t>& totals = next_.totals;
    const auto above = std::ranges::find_if(totals, [&](std::uint64_t n) { return n > layout_.capacity().value(); });
    return capacity_error(work, static_cast<std::int32_t>(above - totals.begin()));
}

// Rejects the rank's call if its rows do not travel by the same routing.
Status DispatchResults::other_layout(const DispatchWork& work, std::int32_t rank, std::int32_t self) const {
    DispatchRecord record;
    DispatchRecord own;
    std::memcpy(&record, work.region + layout_.record(work.epoch, rank).value(), sizeof record);
    std::memcpy(&own, record_.data(), sizeof own);
    if (record.kind == own.kind && record.cached == own.cached) return {};
    const auto text = [](const DispatchRecord& of) {
        switch (of.kind) {
            case DispatchKind::routes: return std::string("rows by a new routing");
            case DispatchKind::cached: return fmt::format("rows by routing {}", of.cached.number);
            case DispatchKind::gradients: return fmt::format("gradients by routing {}", of.cached.number);
        }
        return std::string("unknown rows");
    };
    const char* of_another = record.cached.origin != own.cached.origin && record.kind == own.kind
                                 ? " of another handle, or from before a reset"
                                 : "";
    return {Code::mismatch,
            fmt::format(
                "dispatch, call {}: rank {} sends {}{}, rank {} {}; all ranks must make the same call by one routing",
                work.epoch, rank, text(record), of_another, self, text(own))};
}

// Returns an error that names the first fragment that exceeds the capacity.
Status DispatchResults::capacity_error(const DispatchWork& work, std::int32_t holder) const {
    std::uint64_t rows = 0;
    for (std::int32_t expert = placement_.first_expert(holder); expert < placement_.first_expert(holder + 1);
         ++expert) {
        for (std::int32_t rank = 0; rank < layout_.ranks(); ++rank) {
            std::byte* record = work.region + layout_.record(work.epoch, rank).value();
            const auto count = static_cast<std::uint64_t>(DispatchWork::counts_of(record)[expert]);
            rows += count;
            // The rows of the expert end where those of the next one may begin.
            if (rank == layout_.ranks() - 1) rows = layout_.expert_rows().next(rows);
            if (rows <= layout_.capacity().value()) continue;
            // With one row per rank, `expert` is the rank.
            const std::string of_expert = layout_.choices_per_row() == 0 ? fmt::format("expert {}, ", expert) : "";
            return {Code::range,
                    fmt::format("dispatch, call {}: {}rank {}: with these {} rows, rank {} would hold {} "
                                "({} in all), above its capacity of {}; raise the capacity or send fewer tokens",
                                work.epoch, of_expert, rank, count, holder, rows,
                                next_.totals[static_cast<std::size_t>(holder)], layout_.capacity().value())};
        }
    }
    return {Code::protocol, fmt::format("dispatch, call {}: rejected, but no rank gives a reason", work.epoch)};
}

DispatchLaunches::DispatchLaunches(SymmetricMemory& memory, npu::Device& device, const std::byte* region)
    : memory_(memory),
      device_(device),
      host_served_(unmapped_ranks(device.fabric(), memory, region)),
      stream_(device) {}

Status DispatchLaunches::launch(const char* name, void (*kernel)(npu::Core&, const DispatchWork&),
                                const DispatchWork& work) {
    const int blocks = device_.config().blocks;
    const int wanted = work.route == CopyRoute::staged ? blocks : memory_.n_pes();
    npu::LaunchConfig config(std::clamp(wanted, 1, blocks), npu::SourceLocation{});
    config.name = name;
    return npu::launch(stream_, config, kernel, work);
}

// Nothing waits for other ranks before finish().
Status DispatchLaunches::start_fixed(const DispatchWork& work) {
    if (host_served_.empty()) return launch("moe_dispatch_sort_and_send_fixed", moe_dispatch_sort_and_send_fixed, work);
    if (Status s = launch("moe_dispatch_sort", moe_dispatch_sort, work); !s.ok()) return s;
    if (Status s = stream_.synchronize(); !s.ok()) return s;
    send_fixed_remotely(memory_, work);
    const Status s = launch("moe_dispatch_send_fixed", moe_dispatch_send_fixed, work);
    const Status sent = memory_.quiet();
    return s.ok() ? sent : s;
}

Status DispatchLaunches::start(const DispatchWork& work) {
    if (work.layout.expert_rows().is_fixed()) return start_fixed(work);
    if (host_served_.empty()) return launch("moe_dispatch", moe_dispatch, work);
    if (Status s = launch("moe_dispatch_publish_counts", moe_dispatch_publish_counts, work); !s.ok()) return s;
    if (Status s = stream_.synchronize(); !s.ok()) return s;
    publish_counts_remotely(memory_, work);
    if (Status s = memory_.quiet(); !s.ok()) return s;
    return launch("moe_dispatch_tables", moe_dispatch_tables, work);
}

Status DispatchLaunches::finish(const DispatchWork& work, const DispatchResults& results) {
    if (work.layout.expert_rows().is_fixed()) {
        const Status s = launch("moe_dispatch_receive_fixed", moe_dispatch_receive_fixed, work);
        return s.ok() ? stream_.synchronize() : s;
    }
    if (Status s = stream_.synchronize(); !s.ok() || host_served_.empty() || !results.accepted()) return s;
    put_rows_remotely(memory_, work);
    if (Status s = launch("moe_dispatch_rows", moe_dispatch_rows, work); !s.ok()) return s;
    if (Status s = memory_.quiet(); !s.ok()) return s;
    if (Status s = launch("moe_dispatch_await", moe_dispatch_await, work); !s.ok()) return s;
    return stream_.synchronize();
}

void DispatchLaunches::signal_abort(const DispatchWork& work) {
    (void)launch("moe_dispatch_signal_abort", moe_dispatch_signal_abort, work);
    (void)stream_.synchronize();
    if (!host_served_.empty()) {
        signal_dispatch_abort_remotely(memory_, work);
        (void)memory_.quiet();
    }
}

}  // namespace npushmem::moe
