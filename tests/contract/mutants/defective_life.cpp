// SPDX-License-Identifier: BSD-3-Clause
// The defects of opening, reach, memory, queues and forget.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/contract/mutants/defective.hpp"

namespace npushmem::contract {
namespace {

bool refused(Code code) { return static_cast<int>(code) < 0; }

}  // namespace

void hang(const char* where) {
    std::printf("the defect hangs in %s\n", where);
    for (;;) ::pause();
}

void crash(const char* where) {
    std::printf("the defect crashes in %s\n", where);
    (void)std::raise(SIGSEGV);
}

OpenTransport with_defect(Defect defect, OpenTransport open) {
    if (defect == Defect::none) return open;
    return [defect, open, opens = 0](
               const npushmem_host& host,
               const npushmem_transport_params& params) mutable -> Result<std::unique_ptr<Transport>> {
        constexpr int sound_opens = 10;
        ++opens;
        if (defect == Defect::later_open_fails && opens > sound_opens)
            return Status{Code::system, "the defect: this process has opened it too often"};
        if (defect == Defect::later_open_crashes && opens > sound_opens) crash("open");
        if (defect == Defect::open_leaks_descriptor) (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
        auto inner = open(host, params);
        if (!inner.ok()) return inner.status();
        return std::unique_ptr<Transport>(new Defective(defect, std::move(inner).value(), params));
    };
}

Defective::~Defective() {
    if (has(Defect::close_hangs)) hang("close");
}

Result<std::vector<npushmem_device>> Defective::devices() {
    const bool has_wrong_rail = has(Defect::unknown_rail_is_minus_one);
    const bool has_wrong_reserved = has(Defect::reserved_device_field_set);
    if (!has(Defect::nameless_device) && !has_wrong_rail && !has_wrong_reserved) return inner().devices();
    npushmem_device device{};
    device.struct_size = sizeof device;
    if (!has(Defect::nameless_device)) std::strcpy(device.name, "defect0");
    if (has_wrong_rail) device.rail = ~std::uint32_t{0};
    if (has_wrong_reserved) device.reserved_1 = 1;
    return std::vector<npushmem_device>{device};
}

Reach Defective::reach(const npushmem_peer& peer) {
    npushmem_peer seen = peer;
    if (has(Defect::maps_another_machine)) seen.host.machine = host_.machine;
    if (has(Defect::maps_another_emulated_host)) {
        seen.host.emulated = host_.emulated;
        seen.host.space = host_.space;
    }
    // The fake fabric maps neighbours only.
    if (has(Defect::maps_another_machine) || has(Defect::maps_another_emulated_host)) seen.pe = pe_;
    Reach out = inner().reach(seen);
    if (has(Defect::peer_table_of_8) && peer.pe >= 8) return {0, 0, 0, "the table is full"};
    if (has(Defect::cost_without_path) && peer.pe == 2) return {0, 0, 0, "no path", out.latency_ns, 0};
    if (has(Defect::unknown_latency_is_minus_one)) out.latency_ns = ~std::uint64_t{0};
    if (has(Defect::unknown_bandwidth_is_minus_one)) out.bytes_per_second = ~std::uint64_t{0};
    if (has(Defect::bandwidth_in_gigabytes)) out.bytes_per_second /= 1'000'000'000;
    if (has(Defect::reaches_nobody)) return {0, 0, 0, "nobody"};
    if (has(Defect::reach_not_symmetrical) && pe_ > peer.pe) out.capabilities &= ~NPUSHMEM_CAP_GET;
    if (has(Defect::more_than_declared)) out.capabilities |= NPUSHMEM_CAP_DEVICES;
    if (has(Defect::atomic_without_operations)) out.atomic_32 = out.atomic_64 = 0;
    if (has(Defect::no_reason)) out.why.clear();
    if (has(Defect::no_reason_when_unreachable) && !out.reachable()) out.why.clear();
    return out;
}

Code Defective::deregister_memory(std::uint64_t region) {
    const Code code = inner().deregister_memory(region);
    return has(Defect::unknown_region_deregistered) ? Code::ok : code;
}

Result<std::uint64_t> Defective::import_memory(int pe, std::span<const std::byte> handle) {
    const std::lock_guard lock(mutex_);
    auto& known = imports_[pe];
    if (!known.empty()) {
        const auto& [number, bytes] = known.front();
        const bool is_same = std::equal(bytes.begin(), bytes.end(), handle.begin(), handle.end());
        if (has(Defect::second_import_has_same_number) && is_same) return number;
        if (has(Defect::regions_mixed) && !is_same) return inner().import_memory(pe, bytes);
        if (has(Defect::truncated_handle_accepted) && handle.size() + 1 == bytes.size()) return number;
        if (has(Defect::damaged_handle_accepted) && handle.size() == bytes.size()) return number;
    }
    auto out = inner().import_memory(pe, handle);
    for (const auto& [other, imports] : imports_)
        if (has(Defect::import_under_other_number_breaks_peer) && other != pe && !imports.empty() &&
            std::equal(handle.begin(), handle.end(), imports.front().second.begin(), imports.front().second.end()))
            unreachable_.insert(imports.front().first);
    if (!out.ok() && has(Defect::deregistered_memory_waits)) return *invented_.insert(~std::uint64_t{0}).first;
    if (out.ok()) {
        known.emplace_back(out.value(), Bytes(handle.begin(), handle.end()));
    } else {
        if (has(Defect::garbage_handle_accepted)) return std::uint64_t{1};
        if (has(Defect::refusal_without_message)) return Status{out.status().code(), ""};
    }
    return out;
}

Code Defective::release_memory(std::uint64_t remote) {
    if (has(Defect::released_memory_reachable)) {
        const std::lock_guard lock(mutex_);
        return released_.insert(remote).second ? Code::ok : Code::argument;
    }
    if (has(Defect::deregistered_memory_waits) && invented_.contains(remote)) return Code::ok;
    const Code code = inner().release_memory(remote);
    return has(Defect::unknown_remote_released) ? Code::ok : code;
}

Result<void*> Defective::map(std::uint64_t remote) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::maps_wrong_memory)) remote = imports_[pe_].front().first;
    auto out = inner().map(remote);
    if (!out.ok() && has(Defect::maps_without_capability)) return static_cast<void*>(this);
    if (out.ok()) mapped_[owner_of(remote, pe_)].push_back(out.value());
    return out;
}

Result<std::uint64_t> Defective::create_queue() {
    const std::lock_guard lock(mutex_);
    if (has(Defect::queue_table_of_16) && queues_.size() >= 16) return Status{Code::memory, "no room for a queue"};
    if (has(Defect::queue_number_given_twice) && queues_.size() > 1) return queues_.back();
    auto out = inner().create_queue();
    if (!out.ok()) return out;
    queues_.push_back(out.value());
    if (!has_unfenced_queue()) return out;
    const auto second = inner().create_queue();
    if (!second.ok()) return second;
    unfenced_[out.value()] = second.value();
    return out;
}

Code Defective::destroy_queue(std::uint64_t queue) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::destroy_hangs) && outstanding_.contains(queue)) hang("destroy_queue");
    if (has(Defect::destroy_refuses_outstanding) && outstanding_.contains(queue)) return Code::state;
    if (has(Defect::destroyed_queue_writes)) return destroyed_.insert(queue).second ? Code::ok : Code::argument;
    if (has(Defect::destroyed_twice) && destroyed_.contains(queue)) return Code::ok;
    if (has(Defect::destroy_loses_put_of_other_queue)) lose_next_put_ = true;
    if (const auto second = unfenced_.extract(queue); !second.empty()) (void)inner().destroy_queue(second.mapped());
    std::erase(queues_, queue);
    outstanding_.erase(queue);
    destroyed_.insert(queue);
    const Code code = inner().destroy_queue(queue);
    return has(Defect::unknown_queue_accepted) && refused(code) ? Code::ok : code;
}

void Defective::forget_all() {
    for (const auto& [pe, imports] : imports_)
        if (pe != pe_) (void)inner().forget(pe);
}

Code Defective::forget_unknown(int pe) {
    if (has(Defect::forget_of_unknown_pe_fails)) return Code::state;
    if (has(Defect::forget_of_unknown_pe_crashes)) crash("forget");
    if (has(Defect::forget_of_unknown_pe_ends_all)) forget_all();
    if (has(Defect::forget_of_unknown_pe_is_event)) has_event_ = true;
    return inner().forget(pe);
}

Code Defective::report_arrivals(void (*arrived)(void* context), void* context) {
    if (has(Defect::arrivals_not_reported)) return Code::ok;
    if (!has(Defect::first_arrivals_only)) return inner().report_arrivals(arrived, context);
    on_arrival_ = [arrived, context] { arrived(context); };
    const auto report_once = [](void* self) {
        // Steps of one thread at a time: the fake fabric holds its lock.
        if (auto once = std::exchange(static_cast<Defective*>(self)->on_arrival_, nullptr)) once();
    };
    return inner().report_arrivals(report_once, this);
}

Code Defective::forget(int pe) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::forget_is_always_event)) has_event_ = true;
    if (!imports_.contains(pe)) return forget_unknown(pe);
    const bool is_first = forgotten_.insert(pe).second;
    if (has(Defect::second_forget_fails) && !is_first) return Code::state;
    if (has(Defect::forget_leaves_a_token) && !tokens_.empty()) lost_tokens_.insert(tokens_.rbegin()->first);
    if (has(Defect::forget_fails_for_ever))
        for (const std::uint64_t queue : queues_) failed_[queue] = Code::peer_dead;
    if (has(Defect::forget_ends_other_peers)) forget_all();
    for (void* address : mapped_[pe])
        if (has(Defect::forget_unmaps) && ::mprotect(address, 4096, PROT_NONE) == 0)
            std::printf("the defect has unmapped memory of PE %d\n", pe);
    return inner().forget(pe);
}

}  // namespace npushmem::contract
