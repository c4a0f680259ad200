// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/runtime_reports.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "topology/report/describe.hpp"

namespace npushmem {

namespace {

double microseconds(std::uint64_t nanoseconds, std::uint64_t count) {
    return count == 0 ? 0.0 : static_cast<double>(nanoseconds) / static_cast<double>(count) / 1000.0;
}

double milliseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

std::string line(std::string_view who, const PeStatistics& pe) {
    return fmt::format(
        "{:>5} {:>10} {:>10.2f} {:>10.1f} {:>8} {:>10.2f} {:>10} {:>10.1f} {:>12} {:>10} {:>8} {:>8} {:>8}\n", who,
        pe.barriers, microseconds(pe.nanoseconds, pe.timed), microseconds(pe.longest, 1), pe.last,
        microseconds(pe.late_nanoseconds, pe.last), pe.waits, milliseconds(pe.wait_nanoseconds), pe.spins, pe.yields,
        pe.sleeps, pe.parks, pe.wakes);
}

std::string header() {
    return fmt::format("{:>5} {:>10} {:>10} {:>10} {:>8} {:>10} {:>10} {:>10} {:>12} {:>10} {:>8} {:>8} {:>8}\n", "PE",
                       "barriers", "mean us", "longest us", "last", "late us", "waits", "waited ms", "spins", "yields",
                       "sleeps", "parked", "woken");
}

PeStatistics sum(const std::vector<PeStatistics>& pes) {
    PeStatistics all;
    for (const PeStatistics& pe : pes) {
        all.barriers += pe.barriers;
        all.timed += pe.timed;
        all.nanoseconds += pe.nanoseconds;
        all.longest = std::max(all.longest, pe.longest);
        all.last += pe.last;
        all.late_nanoseconds += pe.late_nanoseconds;
        all.waits += pe.waits;
        all.wait_nanoseconds += pe.wait_nanoseconds;
        all.spins += pe.spins;
        all.yields += pe.yields;
        all.sleeps += pe.sleeps;
        all.parks += pe.parks;
        all.liveness_checks += pe.liveness_checks;
        all.wakes += pe.wakes;
    }
    return all;
}

}  // namespace

void publish(const WaitCounters& waits, BarrierCounters& counts) {
    // Relaxed: the barrier that follows orders them.
    const auto copy = [](const std::atomic<std::uint64_t>& from, std::atomic<std::uint64_t>& to) {
        to.store(from.load(std::memory_order_relaxed), std::memory_order_relaxed);
    };
    copy(waits.waits, counts.waits);
    copy(waits.time, counts.wait_nanoseconds);
    copy(waits.spins, counts.spins);
    copy(waits.yields, counts.yields);
    copy(waits.sleeps, counts.sleeps);
    copy(waits.parks, counts.parks);
    copy(waits.liveness_checks, counts.liveness_checks);
    copy(waits.wakes, counts.wakes);
}

PeStatistics read_statistics(const BarrierCounters& counts) {
    const auto of = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
    return {.barriers = of(counts.barriers),
            .timed = of(counts.timed),
            .nanoseconds = of(counts.nanoseconds),
            .longest = of(counts.longest),
            .last = of(counts.entered_last),
            .late_nanoseconds = of(counts.late_nanoseconds),
            .waits = of(counts.waits),
            .wait_nanoseconds = of(counts.wait_nanoseconds),
            .spins = of(counts.spins),
            .yields = of(counts.yields),
            .sleeps = of(counts.sleeps),
            .parks = of(counts.parks),
            .liveness_checks = of(counts.liveness_checks),
            .wakes = of(counts.wakes)};
}

std::string describe_statistics(const std::vector<PeStatistics>& pes, std::uint64_t every, std::size_t max_shown) {
    std::vector<std::size_t> shown(pes.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    std::string text = fmt::format("npushmem statistics of {} PEs; one barrier in {} was timed\n", pes.size(), every);
    if (pes.size() > max_shown) {
        std::stable_sort(shown.begin(), shown.end(),
                         [&](std::size_t a, std::size_t b) { return pes[a].last > pes[b].last; });
        shown.resize(max_shown);
        text += fmt::format("the {} that arrived last most often:\n", max_shown);
    }
    text += header();
    for (const std::size_t pe : shown) text += line(fmt::to_string(pe), pes[pe]);
    const PeStatistics all = sum(pes);
    text += line("all", all);
    // Every timed barrier that is examined has a last PE.
    if (pes.size() > 1 && all.timed != 0 && all.last == 0)
        text += "last arrivals are unknown where PEs do not map each other\n";
    return text +
           "last: timed barriers at which this PE arrived last on its host; late: mean delay after the last but one; "
           "parked: sleeps that a writer could end; woken: sleepers that this PE woke\n";
}

namespace {

constexpr std::size_t max_described_pes = 16;

}  // namespace

// No transport of this job drives a NIC, so none was assigned at start. The preview has the NICs that such a transport
// would get.
const NicPreview& RuntimeReports::nic_preview() {
    if (nic_preview_) return *nic_preview_;
    const auto local = subjects_.job.local_pes();
    auto preview = preview_nics(subjects_.settings, {local.begin(), local.end()});
    nic_preview_ = preview.ok() ? NicPreview{std::move(preview).value(), {}} : NicPreview{{}, preview.status()};
    return *nic_preview_;
}

const std::string& RuntimeReports::nic_text() {
    const std::lock_guard guard(lock_);
    if (!nic_text_.empty()) return nic_text_;
    if (!nics_.transport.empty()) {
        nic_text_ = topology::describe(nics_.assignment, max_described_pes);
        return nic_text_;
    }
    const NicPreview& preview = nic_preview();
    nic_text_ = preview.failure.ok() ? topology::describe(preview.assignment, max_described_pes) +
                                           "  (no transport in use drives a NIC)\n"
                                     : fmt::format("NIC assignment: none; {}\n", preview.failure.message());
    return nic_text_;
}

PeNics RuntimeReports::nics_of(int pe) const {
    const bool other_host = !subjects_.job.is_local(pe);
    return npushmem::nics_of(nics_, pe, {subjects_.job.my_pe(), other_host, subjects_.job.pes().traits(pe).host_name});
}

RouteReport RuntimeReports::route(int pe) const {
    const JobMembership& job = subjects_.job;
    RouteReport report;
    report.pe = pe;
    report.route = subjects_.transports.map().range_of(pe).route;
    report.transport = subjects_.transports.named()[static_cast<std::size_t>(report.route.transport)].name;
    report.host_name = job.pes().traits(pe).host_name;
    report.host = job.layout().host_of(pe);
    report.same_host = job.is_local(pe);
    report.proxied = !report.route.maps() && job_.kernels && job_.kernels->mode == npu::RemoteMode::proxy;
    if (report.transport == nics_.transport) {
        report.own_nics = nics_of(job.my_pe());
        report.peer_nics = nics_of(pe);
    } else {
        report.own_nics.is_known = report.peer_nics.is_known = true;
    }
    return report;
}

std::string RuntimeReports::json(const Config& config) {
    std::vector<TransportReport> transports;
    const std::uint64_t in_use = subjects_.transports.map().transports_in_use();
    for (const OwnedTransport& opened : subjects_.transports.opened())
        transports.push_back({opened.name, opened.why, opened.remote, (in_use >> transports.size() & 1) != 0});
    const std::lock_guard guard(lock_);
    const NicPreview* const preview = nics_.transport.empty() ? &nic_preview() : nullptr;
    return to_json({job_, transports, subjects_.transports.map().ranges(), nics_, preview, config});
}

void RuntimeReports::publish_counters() {
    publish(subjects_.waiting.counters, subjects_.slices.heap().control().counts);
}

PeStatistics RuntimeReports::statistics() {
    publish_counters();
    return read_statistics(subjects_.slices.heap().control().counts);
}

// A PE that has arrived at the last barrier has left the ones before.
Status RuntimeReports::print_statistics() {
    std::vector<PeStatistics> all;
    for (int pe = 0; pe < subjects_.job.npes(); ++pe) {
        constexpr std::uint64_t offset = offsetof(ControlBlock, counts);
        BarrierCounters copy{};
        const void* counts = subjects_.slices.mapped(pe, offset);
        if (counts == nullptr) {
            Status fetched =
                subjects_.transports.remote().get(pe, offset, &copy, sizeof copy, RemoteAccess::Completion::local);
            if (!fetched.ok()) return fetched.within("statistics");
            counts = &copy;
        }
        all.push_back(read_statistics(*static_cast<const BarrierCounters*>(counts)));
    }
    // A job does not fail because its output cannot be written.
    (void)std::fputs(describe_statistics(all, static_cast<std::uint64_t>(subjects_.settings.stats_every)).c_str(),
                     stderr);
    return {};
}

}  // namespace npushmem
