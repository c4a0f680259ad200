// The texts of the runtime: at start, on request, and at finalize.
#include <fmt/core.h>

#include <cstdio>

#include "core/base/config.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/runtime.hpp"

namespace npushmem {

namespace {

constexpr std::size_t max_described_pes = 16;

// Ignores failures: a job does not fail because its output cannot be written.
void print_error(const std::string& text) { (void)std::fputs(text.c_str(), stderr); }

}  // namespace

void Runtime::describe_job() {
    job_text_ = fmt::format("npushmem {}.{}.{}: {} PEs on {} host{} ({}{}), symmetric heap {} each\n",
                            library_version.major, library_version.minor, library_version.patch, npes_, layout_.hosts(),
                            layout_.hosts() == 1 ? "" : "s", name_of(layout_.distribution()),
                            layout_.even() ? "" : ", uneven", format_size(settings().symmetric_size.value));
    job_text_ += config_.describe_standard();
    job_text_ += fmt::format("static data: {}\n", statics_.describe());
    job_text_ += fmt::format("bootstrap: {}\n", sources_->bootstrap_description());
    if (!remote_transport_text_.empty()) job_text_ += fmt::format("between hosts: {}\n", remote_transport_text_);
    if (fast_.all_mapped == 0) job_text_ += fmt::format("kernels: {}\n", remote_mode().text);
    job_text_ += fmt::format("barrier: {}\n", world_->choice());
    job_text_ += fmt::format("waiting: {}\n", describe(wait_services_->share, wait_services_->budget));
}

Status Runtime::report() {
    describe_job();
    if (my_pe_ != 0) return {};
    if (!config_.unknown_variables().empty()) sources_->declare_all(config_);
    for (const auto& sentence : config_.unknown_variables()) log_.line(LogLevel::warn, "config", sentence);
    for (const auto& sentence : missing_directories(settings().plugin_path))
        log_.line(LogLevel::warn, "config", sentence);
    if (settings().version && !settings().info)
        print_error(
            fmt::format("npushmem {}.{}.{}\n", library_version.major, library_version.minor, library_version.patch));
    if (settings().info)
        print_error(fmt::format("{}{}transport map of PE 0:\n{}NIC assignment of this host:\n{}",
                                config_.is_standard_variable_set("INFO") ? describe_standard_variables() : "",
                                job_text_, map_text(), nic_text()));
    return {};
}

RemoteModeChoice Runtime::remote_mode() const {
    bool other_hosts = false;
    for (int pe = 0; pe < npes_ && !other_hosts; ++pe) {
        const Route& route = map_->route(pe);
        other_hosts = !route.maps() && route.reach.has(NPUSHMEM_CAP_REMOTE);
    }
    return choose_remote_mode(settings().ib_enable_ibgda, other_hosts, wait_services_->share);
}

const std::string& Runtime::nic_text() {
    const std::lock_guard guard(text_lock_);
    if (!nic_text_.empty()) return nic_text_;
    // No transport of this job drives a NIC, so none was assigned at start. The text shows the NICs that such a
    // transport would get.
    const auto local = layout_.pes_of(layout_.host_of(my_pe_));
    const auto text = preview_nics(settings(), {local.begin(), local.end()}, max_described_pes);
    nic_text_ = text.ok() ? text.value() + "  (no transport in use drives a NIC)\n"
                          : fmt::format("NIC assignment: none; {}\n", text.status().message());
    return nic_text_;
}

PeStatistics Runtime::statistics() {
    publish(wait_services_->counters, heap_->control().counts);
    return read_statistics(heap_->control().counts);
}

// Call it after the last barrier: counters no longer change, and all memory still exists. A PE that has arrived at that
// barrier has left the ones before.
Status Runtime::print_statistics() {
    std::vector<PeStatistics> all;
    for (int pe = 0; pe < npes_; ++pe) {
        constexpr std::uint64_t offset = offsetof(ControlBlock, counts);
        BarrierCounters copy{};
        const void* counts = mapped(pe, offset);
        if (counts == nullptr) {
            Status fetched = remote_->get(pe, offset, &copy, sizeof copy, RemoteAccess::Completion::local);
            if (!fetched.ok()) return fetched.within("statistics");
            counts = &copy;
        }
        all.push_back(read_statistics(*static_cast<const BarrierCounters*>(counts)));
    }
    print_error(describe_statistics(all, static_cast<std::uint64_t>(settings().stats_every)));
    return {};
}

}  // namespace npushmem
