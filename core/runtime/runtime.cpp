#include "core/runtime/runtime.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/hash.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/liveness.hpp"
#include "core/base/parking.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/remote_transport.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

// The PEs share their kernel records only if every PE maps every PE: accesses to other PEs are not recorded, nor is the
// order that they create. Other launchers, such as mpirun, may provide other ways to order the hosts.
bool keeps_kernel_records(const Settings& settings, const FastMap& map) {
    return settings.npu_check && map.all_mapped != 0 && !settings.launcher_fd.empty();
}

// Error codes that may only be symptoms of another PE's failure. A failure that a PE finds by itself keeps its code,
// although other PEs that found the same one have aborted before.
bool may_be_symptom(Code code) {
    return code == Code::system || code == Code::memory || code == Code::protocol || code == Code::peer_dead ||
           code == Code::timeout || code == Code::aborted;
}

}  // namespace

struct Runtime::Step {
    const char* name;
    Status (Runtime::*run)();
};

// All of start-up. Each step may use the results of the steps before it; a failed step ends the start on every PE.
Result<std::unique_ptr<Runtime>> Runtime::start(Config config, Sources& sources, const StartRequest& request) {
    static constexpr Step steps[] = {
        {"logging", &Runtime::open_log},
        {"bootstrap", &Runtime::join_job},                          // rank, size; allgather and barrier from here on
        {"exchange of PE records", &Runtime::exchange_pe_records},  // versions, host identities, PEs of each host
        {"symmetric memory", &Runtime::make_memory},  // one shared segment per host, this PE's heap and variables
        {"transports", &Runtime::open_transports},    // in the order of NPUSHMEM_TRANSPORTS
        {"remote transport", &Runtime::choose_remote_transport},  // for PEs of other hosts, if there are any
        {"NIC assignment", &Runtime::assign_nics},                // once per host, then each PE takes its own
        {"exchange of endpoints", &Runtime::exchange_endpoints},
        {"transport map", &Runtime::build_map},     // which transport serves which PE
        {"mapping of peers", &Runtime::map_peers},  // where the CPU finds mapped peers
        {"world team", &Runtime::make_world},       // its barrier, used by everything collective from here on
        {"start report", &Runtime::report},
    };
    const Version built = request.compiled_with;
    if (built.major != library_version.major || built.minor > library_version.minor)
        return Status{Code::mismatch,
                      fmt::format("the program was compiled with npushmem {}.{}.{} and runs with {}.{}.{}; compile it "
                                  "again or install the other library",
                                  built.major, built.minor, built.patch, library_version.major, library_version.minor,
                                  library_version.patch)};
    std::unique_ptr<Runtime> runtime(new Runtime(std::move(config)));
    runtime->sources_ = &sources;
    runtime->request_ = &request;
    for (const Step& step : steps) {
        Status done = (runtime.get()->*step.run)();
        runtime->log_.write(LogLevel::debug, "start", "{}: {}", step.name, done.ok() ? "done" : done.message());
        if (done.ok()) continue;
        return runtime->abort_start(step.name, done);
    }
    runtime->statics_.release_write_guard();
    runtime->sources_ = nullptr;
    runtime->request_ = nullptr;
    return runtime;
}

// A failure here may be a symptom of another PE's failure, for instance missing memory: then the failure that the other
// PE reported is the cause. PEs that wait for this one at the world's barrier get no report through the bootstrap, so
// they must find this PE finalized.
Status Runtime::abort_start(const char* step, const Status& found) {
    Status failure = found.within(fmt::format("start-up failed at {}", step));
    if (!bootstrap_) return failure;
    const Status cause = bootstrap_->check();
    if (!cause.ok() && failure.message().find(cause.message()) == std::string::npos)
        failure = {may_be_symptom(found.code()) ? cause.code() : found.code(),
                   fmt::format("{}; because {}", failure.message(), cause.message())};
    bootstrap_->abort(failure.message());
    if (heap_) publish_finalized();
    return failure;
}

void Runtime::publish_finalized() {
    // Release: pairs with the acquire load in JobLiveness.
    heap_->control().state.store(static_cast<std::uint32_t>(PeState::finalized), std::memory_order_release);
    memory_->record_departure();
}

Runtime::~Runtime() {
    if (SymmetricGlobals* const data = statics_.data())
        if (Status restored = data->restore_private(); !restored.ok())
            log_.line(LogLevel::warn, "memory", restored.message());
    teams_.reset();
    world_.reset();
    remote_.reset();
    remote_peers_.reset();
    for (std::size_t i = 0; i < regions_.size(); ++i)
        (void)named_transports_[i].transport->deregister_memory(regions_[i]);
}

Status Runtime::open_log() {
    auto opened = Log::open(settings());
    if (!opened.ok()) return opened.status();
    log_ = std::move(opened).value();
    services_ = std::make_unique<PluginServices>(config_, log_);
    return {};
}

Status Runtime::join_job() {
    npushmem_bootstrap_params params{};
    params.struct_size = sizeof params;
    params.rank = request_->rank;
    params.nranks = request_->nranks;
    params.uniqueid = request_->uniqueid ? request_->uniqueid->data() : nullptr;
    params.attribute = request_->attribute;
    auto opened = sources_->open_bootstrap(config_, services_->table(), params);
    if (!opened.ok()) return opened.status();
    bootstrap_ = std::move(opened).value();
    my_pe_ = bootstrap_->rank();
    npes_ = bootstrap_->nranks();
    if (npes_ < 1 || my_pe_ < 0 || my_pe_ >= npes_)
        return {Code::protocol, fmt::format("the bootstrap gave rank {} of {}", my_pe_, npes_)};
    log_.set_prefix(fmt::format("pe {}/{}", my_pe_, npes_));
    return {};
}

Status Runtime::exchange_pe_records() {
    auto tuning = barrier::Tuning::read(settings().coll_tuning_file);
    if (!tuning.ok()) return tuning.status().within("NPUSHMEM_COLL_TUNING_FILE");
    tuning_ = std::move(tuning).value();
    ProgramImage image = image_of_this_program();
    auto mine = make_pe_record(settings(), tuning_.hash(), StaticVariables::record_of(settings(), image));
    if (!mine.ok()) return mine.status();
    auto all = gather(*bootstrap_, mine.value());
    if (!all.ok()) return all.status();
    records_ = std::move(all).value();
    if (Status same = check_pe_records(records_, my_pe_); !same.ok()) return same;
    std::vector<npushmem_host_id> identities;
    for (const auto& record : records_) identities.push_back(record.host);
    layout_ = HostLayout(identities);
    wait_services_ = std::make_unique<WaitServices>(records_, layout_, my_pe_);
    statics_ = {std::move(image), records_, my_pe_};
    return {};
}

npushmem_transport_params Runtime::transport_params() const {
    npushmem_transport_params params{};
    params.struct_size = sizeof params;
    params.pe = my_pe_;
    params.npes = npes_;
    params.local_index = layout_.local_index(my_pe_);
    params.local_count = static_cast<std::int32_t>(layout_.pes_of(layout_.host_of(my_pe_)).size());
    params.process_id = records_[static_cast<std::size_t>(my_pe_)].process;
    params.host = records_[static_cast<std::size_t>(my_pe_)].host;
    return params;
}

Status Runtime::open_transports() {
    auto opened = sources_->open_transports(config_, services_->table(), transport_params());
    if (!opened.ok()) return opened.status();
    transports_ = std::move(opened).value();
    return {};
}

Status Runtime::choose_remote_transport() {
    if (layout_.hosts() > 1) {
        const bool served =
            std::any_of(transports_.begin(), transports_.end(), [](const auto& one) { return one.remote; });
        auto choice =
            npushmem::choose_remote_transport(settings(), served, *bootstrap_, [this](const std::string& name) {
                return sources_->open_transport(name, config_, services_->table(), transport_params());
            });
        if (!choice.ok()) return choice.status();
        remote_transport_text_ = std::move(choice.value().explanation);
        if (choice.value().transport) transports_.push_back(std::move(*choice.value().transport));
    }
    constexpr std::size_t max_transports = 64;  // one bit each in the map's set
    if (transports_.size() > max_transports)
        return {Code::config, fmt::format("{} transports were selected; at most {} are possible", transports_.size(),
                                          max_transports)};
    for (const auto& owned : transports_) named_transports_.push_back({owned.name, owned.transport.get()});
    if (std::any_of(transports_.begin(), transports_.end(), [](const auto& one) { return one.pins; }))
        heap_->retain_pages();
    return {};
}

Status Runtime::assign_nics() {
    auto done = NicStep{settings(), *bootstrap_, *memory_, layout_, named_transports_, records_, my_pe_}.run();
    if (!done.ok()) return done.status();
    nic_text_ = std::move(done.value().text);
    nic_claims_ = std::move(done.value().claims);
    if (!done.value().warning.empty()) log_.line(LogLevel::warn, "topology", done.value().warning);
    return {};
}

Result<EndpointRecord> Runtime::endpoint_of(const NamedTransport& named) {
    EndpointRecord endpoint;
    endpoint.transport = hash_bytes(named.name);
    auto address = named.transport->address();
    if (!address.ok()) return address.status().within(fmt::format("transport {}", named.name));
    endpoint.address = std::move(address).value();
    auto registered =
        named.transport->register_memory(memory_->describe_slice(layout_.local_index(my_pe_), heap_->bytes()));
    if (!registered.ok())
        return registered.status().within(fmt::format("transport {} cannot use the symmetric heap", named.name));
    regions_.push_back(registered.value().region);
    endpoint.handle = std::move(registered.value().handle);
    return endpoint;
}

Status Runtime::exchange_endpoints() {
    std::vector<EndpointRecord> mine;
    for (const auto& named : named_transports_) {
        auto endpoint = endpoint_of(named);
        if (!endpoint.ok()) return endpoint.status();
        mine.push_back(std::move(endpoint).value());
    }
    auto gathered = GatheredBytes::gather(*bootstrap_, pack_endpoints(mine));
    if (!gathered.ok()) return gathered.status();
    peer_addresses_ = PeerAddressTable(std::move(gathered).value(), npes_);
    return {};
}

npushmem_peer Runtime::peer_of(int transport, int pe) const {
    const PeRecord& record = records_[static_cast<std::size_t>(pe)];
    const auto address =
        peer_addresses_.address(hash_bytes(named_transports_[static_cast<std::size_t>(transport)].name), pe);
    npushmem_peer peer{};
    peer.struct_size = sizeof peer;
    peer.pe = pe;
    peer.host = record.host;
    peer.process_id = record.process;
    peer.address_bytes = static_cast<std::uint32_t>(address.size());
    peer.address = address.data();
    peer.host_name = record.host_name;
    return peer;
}

PeerDirectory Runtime::directory() const {
    return {[this](int transport, int pe) { return peer_of(transport, pe); },
            [this](int transport, int pe) {
                return peer_addresses_.handle(hash_bytes(named_transports_[static_cast<std::size_t>(transport)].name),
                                              pe);
            }};
}

Status Runtime::build_map() {
    auto built = TransportMap::build(named_transports_, layout_, my_pe_,
                                     [this](int transport, int pe) { return peer_of(transport, pe); });
    if (!built.ok() && !remote_transport_text_.empty())
        return {built.status().code(),
                fmt::format("{}\n  transport between hosts: {}", built.status().message(), remote_transport_text_)};
    if (!built.ok()) return built.status();
    map_ = std::make_unique<TransportMap>(std::move(built).value());
    remote_peers_ = std::make_unique<RemotePeers>(named_transports_, *map_, directory(),
                                                  wait_services_->transport_waiter, settings().timeout);
    remote_ = std::make_unique<RemoteAccess>(*remote_peers_);
    remote_peers_->on_event([this](int pe, Code code) {
        if (pe >= 0 && ends_a_peer(code)) wait_services_->liveness.mark_lost(pe);
    });
    return {};
}

// Mapped PEs get the fast path if they are consecutive and their slices are where the host's memory places them. Others
// are found in the table of slices, a few nanoseconds later.
Status Runtime::map_peers() {
    fast_.heap = reinterpret_cast<std::uintptr_t>(heap_->base());
    fast_.heap_bytes = heap_->tail();  // the memory behind it belongs to the runtime
    if (statics_.same_on_all_pes()) {
        fast_.statics = statics_.image().begin;
        fast_.statics_bytes = statics_.image().bytes;
        fast_.statics_offset = statics_.offset();
    }
    const auto local = layout_.pes_of(layout_.host_of(my_pe_));
    bool all = true;
    local_slices_.assign(local.size(), nullptr);
    for (std::size_t i = 0; i < local.size(); ++i) {
        if (map_->route(local[i]).maps()) {
            auto address = remote_peers_->map(local[i]);
            if (!address.ok()) return address.status();
            local_slices_[i] = static_cast<std::byte*>(address.value());
        }
        all = all && local[i] == local[0] + static_cast<int>(i) &&
              local_slices_[i] == memory_->slice(static_cast<int>(i));
    }
    std::vector<bool> mapped;
    for (const std::byte* slice : local_slices_) mapped.push_back(slice != nullptr);
    auto sharing_pes = find_sharing_pes(*bootstrap_, layout_, my_pe_, std::move(mapped));
    if (!sharing_pes.ok()) return sharing_pes.status();
    sharing_pes_ = std::move(sharing_pes).value();
    const bool self = map_->route(my_pe_).maps();
    if (self) local_slices_[static_cast<std::size_t>(layout_.local_index(my_pe_))] = heap_->base();
    fast_.peers = all ? memory_->slices() : heap_->base();
    fast_.stride = memory_->stride();
    fast_.copy = choose_block_copy();
    fast_.first_pe = static_cast<std::uint32_t>(all ? local.front() : my_pe_);
    fast_.mapped_pes = all ? static_cast<std::uint32_t>(local.size()) : self ? 1U : 0U;
    fast_.all_mapped = fast_.mapped_pes == static_cast<std::uint32_t>(npes_) ? 1U : 0U;
    return {};
}

Status Runtime::make_world() {
    const double pes_per_core = max_pes_per_core(records_);
    const std::uint64_t sample_every = settings().stats ? static_cast<std::uint64_t>(settings().stats_every) : 0;
    auto made =
        WorldTeam::make({my_pe_, npes_, pes_per_core, layout_, sharing_pes_.all_map_all, fast_,
                         [this](int pe) { return slice_of(pe); }, *remote_, wait_services_->driving_waiter,
                         settings().timeout, settings().barrier_algo, tuning_, sample_every, &wait_services_->os},
                        *heap_);
    if (!made.ok()) return made.status();
    world_ = std::move(made).value();
    const int local = layout_.local_index(my_pe_);
    auto teams = TeamTable::make(
        {my_pe_, npes_, pes_per_core, fast_, [this](int pe) { return slice_of(pe); }, heap_->base(), *remote_,
         wait_services_->driving_waiter, settings().timeout, settings().barrier_algo, tuning_,
         [this] { return world_->sync(); }, sample_every, &wait_services_->os},
        heap_->tail(),
        [this, local](std::uint64_t offset, std::uint64_t bytes) { return memory_->commit(local, offset, bytes); },
        Members::listed(sharing_pes_.pes), sharing_pes_.all_map_all);
    if (!teams.ok()) return teams.status();
    teams_ = std::move(teams).value();
    collective_heap_ = std::make_unique<CollectiveHeap>(*heap_, *this);
    if (fast_.all_mapped == 0) wait_services_->progress = [this] { make_progress(); };
    wait_services_->liveness.watch(
        my_pe_, [this](int pe) { return control_of(pe); }, [this] { return has_departures(); },
        [this] { return world_->barriers(); });
    // Release: pairs with the acquire load in JobLiveness.
    heap_->control().state.store(static_cast<std::uint32_t>(PeState::running), std::memory_order_release);
    const bool records_kernels = keeps_kernel_records(settings(), fast_);
    if (records_kernels) heap_->control().checking.records.store(KernelRecords::kept);
    if (records_kernels && my_pe_ == 0) kernel_records_ = KernelRecordsMemory::make(heap_->control());
    // The barrier's state must exist on every PE before the first signal; from here on the world's barrier is used.
    if (Status met = bootstrap_->barrier(); !met.ok()) return met;
    return world_->sync();
}

// The host's memory contains the block, whichever PEs the transports map.
ControlBlock* Runtime::control_of(int pe) const {
    if (layout_.host_of(pe) != layout_.host_of(my_pe_)) return nullptr;
    return reinterpret_cast<ControlBlock*>(memory_->slice(layout_.local_index(pe)));
}

// Relaxed: JobLiveness checks again. After the last barrier all PEs finalize, and each keeps its memory until all have
// passed: a wait for a finalized PE still ends.
bool Runtime::has_departures() const {
    if (passed_last_barrier_.load(std::memory_order_relaxed)) return false;
    return memory_->has_departures() || std::ranges::any_of(heap_->control().departures, [](const auto& slot) {
               return slot.load(std::memory_order_relaxed) != 0;
           });
}

// Logs failures for waits: they end through the liveness, which does not report the reason.
void Runtime::make_progress() {
    if (const Status event = remote_->progress(); !event.ok()) log_.line(LogLevel::error, "ops", event.message());
}

Status Runtime::quiet() {
    if (fast_.all_mapped == 0)
        if (Status done = remote_->quiet(); !done.ok()) return done;
    // Stores to mapped memory must leave this CPU before any later load. Pairs with the same fence of a PE that loads
    // what was stored and then stores what this PE loads.
    full_fence();
    return {};
}

// Stores to mapped memory need no fence here: each signal of the barrier releases what its sender stored or acquired
// before, so every PE that leaves the barrier sees the stores of all.
Status Runtime::barrier_all(const barrier::Plan& plan) {
    if (fast_.all_mapped == 0)
        if (Status done = quiet(); !done.ok()) return done;
    return world_->sync(plan);
}

Status Runtime::barrier_all(std::string_view text) {
    auto choice = world_->choose(text);
    return choice.ok() ? barrier_all(choice.value().plan) : choice.status();
}

Result<npu::Device*> Runtime::npu_device() {
    const std::lock_guard guard(npu_lock_);
    if (!npu_) {
        auto made = NpuBinding::create(*this, *wait_services_);
        if (!made.ok()) return made.status();
        npu_ = std::move(made).value();
    }
    return &npu_->device();
}

std::unique_ptr<KernelRecordsLink> Runtime::attach_kernel_records() {
    if (heap_->control().checking.records.load() != KernelRecords::kept) return nullptr;
    return KernelRecordsLink::attach(my_pe_, npes_, [this](int pe) -> ControlBlock& { return *control_of(pe); });
}

Status Runtime::finish() {
    // Finalize completes kernels that are still queued; the program must ask for their failures.
    if (npu_) (void)npu_->device().synchronize();
    npu_.reset();
    publish(wait_services_->counters, heap_->control().counts);
    world_->disable_statistics();  // so that no PE writes what PE 0 reads after the last barrier
    Status met = barrier_all();
    if (met.ok()) {
        passed_last_barrier_.store(true, std::memory_order_relaxed);
        heap_->control().last_barrier.store(world_->barriers(), std::memory_order_relaxed);
        publish_finalized();
    }
    if (met.ok() && settings().stats && my_pe_ == 0)
        if (Status printed = print_statistics(); !printed.ok()) log_.line(LogLevel::warn, "report", printed.message());
    // No PE may release its memory or its transports while the last signals of another are in flight. The bootstrap has
    // its own connections, so it can synchronise the PEs here.
    return met.ok() ? wait_for_others() : met;
}

// The other PEs arrive within moments, unless they have not called finalize: then they wait for this PE at a barrier.
Status Runtime::wait_for_others() {
    constexpr std::chrono::milliseconds departure_delay{500};
    std::unique_ptr<DelayedTask> departure;
    if (layout_.hosts() > 1)
        departure = DelayedTask::start(departure_delay, [this](const DelayedTask& task) { send_departure(task); });
    return bootstrap_->barrier();
}

// Sends the departure to the PEs of other hosts that this PE has connected to. They include all PEs that wait for a
// signal from it.
void Runtime::send_departure(const DelayedTask& task) {
    const Departure own{my_pe_, static_cast<std::uint32_t>(world_->barriers())};
    const RemoteAccess::WaitFunction until_cancelled = [&task](const std::function<bool()>& ready, const WaitFor&) {
        while (!ready())
            if (task.wait_for_cancel(std::chrono::milliseconds(1)))
                return Status{Code::timeout, "the other PEs have arrived"};
        return Status{};
    };
    for (const int pe : remote_peers_->connected()) {
        if (layout_.host_of(pe) == layout_.host_of(my_pe_)) continue;
        npushmem_atomic op{};
        op.pe = pe;
        op.operation = NPUSHMEM_ATOMIC_SET;
        op.width = 8;
        op.offset = offsetof(ControlBlock, departures) + departure_slot(my_pe_) * sizeof(std::uint64_t);
        op.operand = own.packed();
        // A PE that does not receive it finds this PE gone when the bootstrap's barrier has failed.
        (void)remote_->atomic(op, RemoteAccess::Completion::deferred, &until_cancelled);
    }
}

}  // namespace npushmem
