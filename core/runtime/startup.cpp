// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/startup.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <new>

#include "core/base/awaited_bytes.hpp"
#include "core/base/liveness.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/collectives_choice.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

bool maps_all_pes(const RuntimeParts& parts) { return parts.slices->fast_map().all_mapped != 0; }

// Completes the wait services for waits that depend on other PEs.
void watch_peers(RuntimeParts& parts) {
    if (!maps_all_pes(parts)) {
        WaitProgress& progress = parts.waiting->progress;
        // Logs failures for waits: they end through the liveness, which does not report the reason.
        progress.drive = [&remote = parts.transports->remote(), &log = *parts.log] {
            if (const Status event = remote.progress(); !event.ok()) log.line(LogLevel::error, "ops", event.message());
        };
        // The slice outlives the transports.
        progress.reports_arrivals = parts.transports->report_arrivals(
            [](void* slice) { wake_all_sleepers_in(static_cast<std::byte*>(slice)); }, parts.slices->heap().base());
    }
    parts.waiting->liveness.watch(
        parts.job->my_pe(), [&slices = *parts.slices](int pe) { return slices.control_of(pe); },
        [&departures = *parts.departures](std::uint64_t barriers) { return departures.any(barriers); },
        [&world = parts.teams->world().barrier()] { return world.barriers(); });
    std::vector<int> unseen;
    for (const int pe : parts.job->local_pes())
        if (!parts.job->sees_process_of(pe)) unseen.push_back(pe);
    parts.waiting->liveness.watch_unseen(std::move(unseen),
                                         [&slices = *parts.slices](int pe) { return slices.has_ended_unseen(pe); });
    if (parts.config->settings().survives_deaths && parts.job->layout().hosts() > 1)
        parts.waiting->liveness.on_own_finding([&departures = *parts.departures, &transports = *parts.transports](
                                                   int pe) { return departures.report_death(transports, pe); });
    parts.waiting->recorder.start(
        {parts.job->my_pe(), parts.job->npes(), parts.job->local_pes(),
         [&slices = *parts.slices](int pe) { return slices.control_of(pe); }, parts.config->settings().report_after,
         [&liveness = parts.waiting->liveness](int pe) { return liveness.remote_state(pe); }},
        *parts.log);
}

// The PEs share their kernel records only if every PE maps every PE: accesses to other PEs are not recorded, nor is the
// order that they create. Other launchers, such as mpirun, may provide other ways to order the hosts.
void keep_kernel_records(RuntimeParts& parts) {
    const Settings& settings = parts.config->settings();
    if (!settings.npu_check || !maps_all_pes(parts) || !parts.job->sees_all_processes()) return;
    if (settings.launcher_fd.empty()) return;
    ControlBlock& control = parts.slices->heap().control();
    control.checking.records.store(KernelRecords::kept);
    if (parts.job->my_pe() == 0) parts.kernel_records = KernelRecordsMemory::make(control);
}

// Returns how kernels reach PEs that are not mapped, and the reason.
RemoteModeChoice remote_mode_of(const RuntimeParts& parts) {
    bool other_hosts = false;
    for (int pe = 0; pe < parts.job->npes() && !other_hosts; ++pe) {
        const Route& route = parts.transports->map().route(pe);
        other_hosts = !route.maps() && route.reach.has(NPUSHMEM_CAP_REMOTE);
    }
    return choose_remote_mode(parts.config->settings().ib_enable_ibgda, other_hosts, parts.waiting->share);
}

// One start: makes the parts of a runtime step by step. Everything else here lives only until the start ends.
class Startup {
public:
    Startup(Config config, Sources& sources, const StartRequest& request) : sources_(sources), request_(request) {
        parts_.config = std::make_unique<Config>(std::move(config));
        parts_.log = std::make_unique<Log>();
    }

    Result<std::unique_ptr<Runtime>> run();

private:
    // The steps, in order.
    Status open_log();
    Status join_job();
    Status exchange_pe_records();
    Status make_memory();
    Status open_transports();
    Status open_remote_candidates();
    Status assign_nics();
    Status choose_remote_transport();
    Status exchange_endpoints();
    Status build_map();
    Status map_peers();
    Status open_collectives();
    Status make_world();
    Status report();

    // Runs the step. std::bad_alloc is a failure of the step, which abort() reports to the other PEs.
    Status run_step(Status (Startup::*step)());
    // Reports the failure of `step` to the other PEs. Returns the failure with its cause, which may be another PE's.
    Status abort(const char* step, const Status& found);
    [[nodiscard]] const Settings& settings() const { return parts_.config->settings(); }
    [[nodiscard]] npushmem_transport_params transport_params() const;
    [[nodiscard]] JobReport job_report() const;

    Sources& sources_;
    const StartRequest& request_;
    RuntimeParts parts_;
    std::string collectives_text_;       // the choice of COLL_LIBRARY; empty: none
    std::string remote_transport_text_;  // the choice for other hosts and its reason; empty: no choice was needed
    HostNics nics_;
    SharingPes sharing_pes_;
};

// All of start-up. Each step may use the results of the steps before it; a failed step ends the start on every PE.
Result<std::unique_ptr<Runtime>> Startup::run() {
    struct Step {
        const char* name;
        Status (Startup::*run)();
    };
    static constexpr Step steps[] = {
        {"logging", &Startup::open_log},
        {"bootstrap", &Startup::join_job},                          // rank, size; allgather and barrier from here on
        {"exchange of PE records", &Startup::exchange_pe_records},  // versions, host identities, PEs of each host
        {"symmetric memory", &Startup::make_memory},  // one shared segment per host, this PE's heap and variables
        {"transports", &Startup::open_transports},    // in the order of NPUSHMEM_TRANSPORTS
        {"remote transports", &Startup::open_remote_candidates},  // for PEs of other hosts, if there are any
        {"NIC assignment", &Startup::assign_nics},                // once per host, then each PE takes its own
        {"choice of the remote transport", &Startup::choose_remote_transport},  // by costs, which depend on the NICs
        {"exchange of endpoints", &Startup::exchange_endpoints},
        {"transport map", &Startup::build_map},                  // which transport serves which PE
        {"mapping of peers", &Startup::map_peers},               // where the CPU finds mapped peers
        {"library of collectives", &Startup::open_collectives},  // of NPUSHMEM_COLL_LIBRARY
        {"world team", &Startup::make_world},  // its barrier, used by everything collective from here on
        {"start report", &Startup::report},
    };
    for (const Step& step : steps) {
        Status done = run_step(step.run);
        parts_.log->write(LogLevel::debug, "start", "{}: {}", step.name, done.ok() ? "done" : done.message());
        if (!done.ok()) return abort(step.name, done);
    }
    parts_.slices->statics().release_write_guard();
    parts_.job->discard_records();
    return std::make_unique<Runtime>(std::move(parts_));
}

Status Startup::run_step(Status (Startup::*step)()) {
    try {
        return (this->*step)();
    } catch (const std::bad_alloc&) {
        return {Code::memory, no_private_memory};
    }
}

// Error codes that may only be symptoms of another PE's failure. A failure that a PE finds by itself keeps its code,
// although other PEs that found the same one have aborted before.
bool may_be_symptom(Code code) {
    return code == Code::system || code == Code::memory || code == Code::protocol || code == Code::peer_dead ||
           code == Code::timeout || code == Code::aborted;
}

// A failure here may be a symptom of another PE's failure, for instance missing memory: then the failure that the other
// PE reported is the cause. The same failure of another PE is no cause: all PEs report equal lines, which the launcher
// merges. PEs that wait for this one at the world's barrier get no report through the bootstrap, so
// they must find this PE finalized.
Status Startup::abort(const char* step, const Status& found) {
    Status failure = found.within(fmt::format("start-up failed at {}", step));
    if (!parts_.job) return failure;
    const Status cause = parts_.job->bootstrap().check();
    const auto includes = [](const Status& text, const Status& part) {
        return text.message().find(part.message()) != std::string::npos;
    };
    if (!cause.ok() && !includes(failure, cause) && !includes(cause, failure))
        failure = {may_be_symptom(found.code()) ? cause.code() : found.code(),
                   fmt::format("{}; because {}", failure.message(), cause.message())};
    parts_.job->abort(failure.message());
    if (parts_.slices) parts_.slices->publish_finalized();
    return failure;
}

Status Startup::open_log() {
    auto opened = Log::open(settings());
    if (!opened.ok()) return opened.status();
    *parts_.log = std::move(opened).value();
    parts_.services = std::make_unique<PluginServices>(*parts_.config, *parts_.log);
    return {};
}

Status Startup::join_job() {
    npushmem_bootstrap_params params{};
    params.struct_size = sizeof params;
    params.rank = request_.rank;
    params.nranks = request_.nranks;
    params.uniqueid = request_.uniqueid ? request_.uniqueid->data() : nullptr;
    params.attribute = request_.attribute;
    auto opened = sources_.open_bootstrap(*parts_.config, parts_.services->table(), params);
    if (!opened.ok()) return opened.status();
    parts_.job = std::make_unique<JobMembership>(std::move(opened).value());
    if (Status sound = parts_.job->check_rank(); !sound.ok()) return sound;
    const std::string pe = fmt::format("pe {}/{}", parts_.job->my_pe(), parts_.job->npes());
    parts_.log->set_prefix(request_.world == 0 ? pe : fmt::format("world {}, {}", request_.world, pe));
    return {};
}

Status Startup::exchange_pe_records() {
    JobMembership& job = *parts_.job;
    ProgramImage image = request_.world == 0 ? image_of_this_program() : ProgramImage{};
    StaticVariablesRecord statics = StaticVariables::record_of(settings(), image);
    if (request_.world != 0) statics.state = StaticVariablesRecord::other_world;
    if (Status same = job.exchange_records(settings(), statics); !same.ok()) return same;
    parts_.waiting = std::make_unique<WaitServices>(job.records(), job.pes(), job.layout(), job.my_pe());
    if (settings().survives_deaths) parts_.waiting->liveness.survive_deaths();
    parts_.slices = std::make_unique<MappedSlices>(job, std::move(image));
    parts_.departures = std::make_unique<Departures>(job, *parts_.slices);
    return {};
}

Status Startup::make_memory() { return parts_.slices->create(settings()); }

npushmem_transport_params Startup::transport_params() const {
    const JobMembership& job = *parts_.job;
    npushmem_transport_params params{};
    params.struct_size = sizeof params;
    params.pe = job.my_pe();
    params.npes = job.npes();
    params.local_index = job.local_index();
    params.local_count = job.local_pes().count;
    params.process_id = job.pes().process(job.my_pe()).pid;
    params.host = job.pes().traits(job.my_pe()).host;
    return params;
}

Status Startup::open_transports() {
    auto opened = sources_.open_transports(*parts_.config, parts_.services->table(), transport_params());
    if (!opened.ok()) return opened.status();
    parts_.transports = std::make_unique<JobTransports>(*parts_.job, std::move(opened).value());
    return {};
}

Status Startup::open_remote_candidates() {
    JobTransports& transports = *parts_.transports;
    if (parts_.job->layout().hosts() > 1) {
        auto candidates = npushmem::open_remote_candidates(
            settings(), transports.serves_other_hosts(), has_fabric_device(), parts_.job->bootstrap(),
            [this](const std::string& name) {
                return sources_.open_transport(name, *parts_.config, parts_.services->table(), transport_params());
            });
        if (!candidates.ok()) return candidates.status();
        transports.add(std::move(candidates).value());
    }
    return transports.complete_selection();
}

Status Startup::choose_remote_transport() {
    JobTransports& transports = *parts_.transports;
    const bool had_nics = transports.has_nics();
    auto choice = transports.choose_candidate();
    if (!choice.ok()) return choice.status();
    remote_transport_text_ = std::move(choice).value();
    if (had_nics && !transports.has_nics()) {
        nics_ = {};
        transports.hold({});
    }
    if (transports.pins_memory()) parts_.slices->heap().retain_pages();
    return {};
}

Status Startup::assign_nics() {
    const JobMembership& job = *parts_.job;
    const bool may_need_nics = !job.records().are_alike() || parts_.transports->has_nics();
    auto done = NicStep{settings(),
                        job.bootstrap(),
                        parts_.slices->host_memory(),
                        job.layout(),
                        parts_.transports->named(),
                        job.pes(),
                        job.my_pe(),
                        may_need_nics}
                    .run();
    if (!done.ok()) return done.status();
    nics_ = std::move(done.value().nics);
    parts_.transports->hold(std::move(done.value().claims));
    if (!done.value().warning.empty()) parts_.log->line(LogLevel::warn, "topology", done.value().warning);
    return {};
}

Status Startup::exchange_endpoints() {
    const HostMemory& memory = parts_.slices->host_memory();
    return parts_.transports->exchange_endpoints(
        memory.describe_slice(parts_.job->local_index(), parts_.slices->heap().bytes()),
        memory.reserved(HostMemory::Publication::endpoint_rows));
}

Status Startup::build_map() {
    Status built = parts_.transports->build_map(*parts_.waiting, settings().timeout);
    if (!built.ok() && !remote_transport_text_.empty())
        return {built.code(),
                fmt::format("{}\n  transport between hosts: {}", built.message(), remote_transport_text_)};
    return built;
}

Status Startup::map_peers() {
    auto sharing_pes = parts_.slices->map_peers(parts_.transports->map(), parts_.transports->remote_peers());
    if (!sharing_pes.ok()) return sharing_pes.status();
    sharing_pes_ = std::move(sharing_pes).value();
    if (sharing_pes_.all_map_all) {
        // The PE itself may be one that it does not map.
        if (maps_all_pes(parts_))
            parts_.transports->discard_endpoints();
        else
            parts_.transports->keep_endpoints();
        return {};
    }
    if (parts_.job->local_index() != 0) return {};
    if (const Status published = parts_.transports->publish_endpoints(parts_.slices->host_memory()); !published.ok())
        parts_.log->line(LogLevel::debug, "start",
                         "each PE of this host keeps the addresses of all transports: " + published.message());
    return {};
}

Status Startup::open_collectives() {
    const JobMembership& job = *parts_.job;
    npushmem_collectives_params params{};
    params.struct_size = sizeof params;
    params.pe = job.my_pe();
    params.npes = job.npes();
    auto chosen = choose_collectives(
        settings(), job.bootstrap(),
        [&] { return sources_.open_collectives(*parts_.config, parts_.services->table(), params); }, job.tuning(),
        [&log = *parts_.log](const std::string& line) { log.line(LogLevel::debug, "coll", line); });
    if (!chosen.ok()) return chosen.status();
    if (chosen.value().is_rejected() && job.my_pe() == 0)
        parts_.log->line(LogLevel::warn, "coll", "collectives: " + chosen.value().text);
    collectives_text_ = std::move(chosen.value().text);
    parts_.collectives = std::move(chosen.value().library);
    return {};
}

Status Startup::make_world() {
    const JobMembership& job = *parts_.job;
    MappedSlices& slices = *parts_.slices;
    RemoteAccess& remote = parts_.transports->remote();
    WaitServices& waiting = *parts_.waiting;
    const double pes_per_core = max_pes_per_core(job.records(), job.npes());
    const std::uint64_t sample_every = settings().stats ? static_cast<std::uint64_t>(settings().stats_every) : 0;
    const auto slice_of = [&slices](int pe) { return slices.slice_of(pe); };
    const auto report_lost = [&liveness = waiting.liveness](int pe) {
        liveness.mark_lost(pe);
        (void)liveness.find_dead(PeRange::one(pe));
    };
    const auto commit = [&memory = slices.host_memory(), local = job.local_index()](
                            std::uint64_t offset, std::uint64_t bytes) { return memory.commit(local, offset, bytes); };
    auto teams =
        TeamTable::make({job.my_pe(),
                         job.npes(),
                         pes_per_core,
                         slices.fast_map(),
                         slice_of,
                         slices.heap().base(),
                         slices.host_memory().sleepers(),
                         remote,
                         waiting.driving_waiter,
                         settings().timeout,
                         settings().barrier_algo,
                         job.tuning(),
                         job.layout(),
                         sample_every,
                         &waiting.os,
                         report_lost,
                         [&liveness = waiting.liveness] { return liveness.awaited_pes(); },
                         &waiting.liveness,
                         parts_.collectives.get(),
                         sharing_pes_.hosts_map},
                        slices.heap().tail(), commit, Members::listed(sharing_pes_.pes), sharing_pes_.all_map_all);
    if (!teams.ok()) return teams.status();
    parts_.teams = std::move(teams).value();
    watch_peers(parts_);
    // Release: pairs with the acquire load in JobLiveness.
    slices.heap().control().state.store(static_cast<std::uint32_t>(PeState::running), std::memory_order_release);
    keep_kernel_records(parts_);
    // The barrier's state must exist on every PE before the first signal; from here on the world's barrier is used.
    if (Status done = job.bootstrap().barrier(); !done.ok()) return done;
    parts_.transports->share_endpoints(slices.host_memory());
    // A PE whose call of the bootstrap failed is missing here, so all PEs fail.
    if (Status started = parts_.teams->world().sync(); !started.ok()) return started;
    HostMemory& memory = slices.host_memory();
    if (job.local_index() == 0 && !parts_.transports->reads_endpoints_in(memory))
        memory.discard(HostMemory::Publication::endpoint_rows);
    return {};
}

JobReport Startup::job_report() const {
    const JobMembership& job = *parts_.job;
    const HostLayout& layout = job.layout();
    const TeamBarrier& world = parts_.teams->world().barrier();
    JobReport out;
    out.rank = job.my_pe();
    out.pes = job.npes();
    out.distribution = layout.distribution();
    out.even = layout.even();
    for (int host = 0; host < layout.hosts(); ++host)
        out.host_names.push_back(job.pes().traits(layout.pes_of(host).at(0)).host_name);
    out.heap_bytes = settings().symmetric_size.value;
    out.standard = parts_.config->describe_standard();
    out.static_data = parts_.slices->statics().describe();
    out.bootstrap = sources_.bootstrap_selection();
    out.between_hosts = remote_transport_text_;
    if (!maps_all_pes(parts_)) out.kernels = remote_mode_of(parts_);
    out.collectives = collectives_text_;
    out.barrier = world.default_choice();
    out.barrier_input = world.selection_input();
    out.waiting = describe(parts_.waiting->share, parts_.waiting->budget);
    return out;
}

// Ignores failures: a job does not fail because its output cannot be written.
void print_error(const std::string& text) { (void)std::fputs(text.c_str(), stderr); }

Status Startup::report() {
    JobReport job = job_report();
    if (job.kernels) parts_.remote_mode = job.kernels->mode;
    parts_.reports = std::make_unique<RuntimeReports>(
        RuntimeReports::Subjects{settings(), *parts_.job, *parts_.waiting, *parts_.slices, *parts_.transports},
        std::move(job), std::move(nics_));
    if (parts_.job->my_pe() != 0) return {};
    Config& config = *parts_.config;
    const Log& log = *parts_.log;
    if (!config.unknown_variables().empty()) sources_.declare_all(config);
    if (has_gained_privileges())
        log.line(
            LogLevel::warn, "config",
            "this program is set-user-ID or set-group-ID or has file capabilities: npushmem ignores its environment "
            "and uses the defaults of all variables");
    for (const auto& sentence : config.unknown_variables()) log.line(LogLevel::warn, "config", sentence);
    for (const auto& sentence : missing_directories(settings().plugin_path))
        log.line(LogLevel::warn, "config", sentence);
    if (const barrier::Tuning& tuning = parts_.job->tuning(); !tuning.library_rules().empty()) {
        std::vector<std::string> known = sources_.collectives_names(config);
        if (parts_.collectives) known.push_back(parts_.collectives->name());  // its file may be elsewhere
        for (const auto& sentence : unknown_libraries(tuning, std::move(known)))
            log.line(LogLevel::warn, "config", sentence);
    }
    if (settings().version && settings().info == StartReportForm::none)
        print_error(
            fmt::format("npushmem {}.{}.{}\n", library_version.major, library_version.minor, library_version.patch));
    if (settings().info == StartReportForm::json) print_error(parts_.reports->json(config) + "\n");
    if (settings().info == StartReportForm::text)
        print_error(fmt::format("{}{}transport map of PE 0:\n{}NIC assignment of this host:\n{}",
                                config.is_standard_variable_set("INFO") ? describe_standard_variables() : "",
                                parts_.reports->job_text(), parts_.reports->map_text(), parts_.reports->nic_text()));
    return {};
}

}  // namespace

Result<std::unique_ptr<Runtime>> start_runtime(Config config, Sources& sources, const StartRequest& request) {
    const Version built = request.compiled_with;
    if (built.major != library_version.major || built.minor > library_version.minor)
        return Status{Code::mismatch,
                      fmt::format("the program was compiled with npushmem {}.{}.{} and runs with {}.{}.{}; compile it "
                                  "again or install the other library",
                                  built.major, built.minor, built.patch, library_version.major, library_version.minor,
                                  library_version.patch)};
    return Startup(std::move(config), sources, request).run();
}

}  // namespace npushmem
