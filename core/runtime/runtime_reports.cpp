#include "core/runtime/runtime_reports.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace npushmem {

namespace {

constexpr std::size_t max_described_pes = 16;

}  // namespace

const std::string& RuntimeReports::nic_text() {
    const std::lock_guard guard(lock_);
    if (!nic_text_.empty()) return nic_text_;
    // No transport of this job drives a NIC, so none was assigned at start. The text shows the NICs that such a
    // transport would get.
    const auto local = subjects_.job.local_pes();
    const auto text = preview_nics(subjects_.settings, {local.begin(), local.end()}, max_described_pes);
    nic_text_ = text.ok() ? text.value() + "  (no transport in use drives a NIC)\n"
                          : fmt::format("NIC assignment: none; {}\n", text.status().message());
    return nic_text_;
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
