// One PE's runtime between init and finalize. The members are in the order in which start-up creates them, and are
// destroyed in reverse.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "core/map/host_layout.hpp"
#include "core/map/transport_map.hpp"
#include "core/memory/collective_heap.hpp"
#include "core/memory/host_memory.hpp"
#include "core/ops/fast_map.hpp"
#include "core/ops/remote_access.hpp"
#include "core/runtime/job_liveness.hpp"
#include "core/runtime/kernel_records.hpp"
#include "core/runtime/nic_assignment.hpp"
#include "core/runtime/npu_binding.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/remote_transport.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/runtime/start_request.hpp"
#include "core/runtime/static_variables.hpp"
#include "core/runtime/statistics_report.hpp"
#include "core/team/team_table.hpp"

namespace npushmem {

class Runtime final : public HeapPeers {
public:
    // Collective. On failure everything made so far is destroyed, the other PEs are informed, and the status names the
    // cause.
    static Result<std::unique_ptr<Runtime>> start(Config config, Sources& sources, const StartRequest& request);
    ~Runtime() override;

    // Collective: completes everything and synchronises with the other PEs; then the destructor may run.
    Status finish();

    [[nodiscard]] int my_pe() const override { return my_pe_; }
    [[nodiscard]] int npes() const override { return npes_; }
    [[nodiscard]] const Settings& settings() const { return config_.settings(); }
    [[nodiscard]] const Log& log() const { return log_; }
    [[nodiscard]] const FastMap& fast_map() const { return fast_; }
    [[nodiscard]] const HostLayout& layout() const { return layout_; }
    [[nodiscard]] const Waiter& waiter() const { return wait_services_->driving_waiter; }
    // The remote access of the default context and of the library itself.
    [[nodiscard]] RemoteAccess& remote() { return *remote_; }
    // Creates the remote access of other contexts, which must end before the runtime.
    [[nodiscard]] RemotePeers& remote_peers() { return *remote_peers_; }
    [[nodiscard]] SymmetricHeap& heap() { return *heap_; }
    [[nodiscard]] const SymmetricHeap& heap() const { return *heap_; }
    [[nodiscard]] CollectiveHeap& collective_heap() { return *collective_heap_; }
    [[nodiscard]] const PeRecord& record(int pe) const { return records_[static_cast<std::size_t>(pe)]; }

    // Completes all operations of this PE on the default context and makes them visible.
    Status quiet();
    Status sync_all() { return world_->sync(); }
    Status barrier_all() { return barrier_all(world_->default_plan()); }
    // Uses the algorithm that `text` names, in the form of NPUSHMEM_BARRIER_ALGO.
    Status barrier_all(std::string_view text);
    [[nodiscard]] TeamTable& teams() { return *teams_; }
    // Returns this PE's counters; those of barriers count only with NPUSHMEM_STATS. Any thread.
    [[nodiscard]] PeStatistics statistics();
    // Returns how kernels reach PEs that are not mapped, and the reason.
    [[nodiscard]] RemoteModeChoice remote_mode() const;
    // Returns this PE's emulated NPU, which the first call creates. Any thread.
    Result<npu::Device*> npu_device();
    // Returns null if this PE checks its kernels alone.
    [[nodiscard]] std::unique_ptr<KernelRecordsLink> attach_kernel_records();
    // Tells the kernel checker that this PE's host is about to order accesses by other means than a barrier of all PEs.
    void note_host_call() {
        if (settings().npu_check) npushmem::note_host_call(heap_->control());
    }
    // Tells the kernel checker that the host gets the address of another PE's memory, through which it may order
    // accesses at any time.
    void note_host_access() {
        if (settings().npu_check) npushmem::note_host_access(heap_->control());
    }
    // Reports to the other PEs that this one aborts.
    void abort(const std::string& reason) { bootstrap_->abort(reason); }

    // Returns the offset of a symmetric object in every slice; no_offset if it does not begin in this PE's slice.
    static constexpr std::uint64_t no_offset = ~std::uint64_t{0};
    [[nodiscard]] std::uint64_t offset_of(const void* object) const;
    // Returns the number of bytes from such an offset to the end of the heap, or of the variables.
    [[nodiscard]] std::uint64_t bytes_to_end(std::uint64_t offset) const;
    [[nodiscard]] const StaticVariables& statics() const { return statics_; }

    // Returns the address of the slice of `pe` (0 <= pe < npes); null if it is not mapped.
    [[nodiscard]] std::byte* slice_of(int pe) const;
    // Returns the address of a slice offset on `pe`; null if its memory is not mapped here.
    [[nodiscard]] void* mapped(int pe, std::uint64_t offset) const;

    [[nodiscard]] const std::string& job_text() const { return job_text_; }
    [[nodiscard]] const std::string& map_text() const { return map_->describe(); }
    // The first call inspects the machine. Any thread.
    [[nodiscard]] const std::string& nic_text();

private:
    explicit Runtime(Config config) : config_(std::move(config)) {}

    // The steps of start-up, in order.
    struct Step;
    Status open_log();
    Status join_job();
    Status exchange_pe_records();
    Status make_memory();
    Status open_transports();
    Status choose_remote_transport();
    Status assign_nics();
    Status exchange_endpoints();
    Status build_map();
    Status map_peers();
    Status make_world();
    Status report();

    // Reports the failure of `step` to the other PEs. Returns the failure with its cause, which may be another PE's.
    Status abort_start(const char* step, const Status& found);

    [[nodiscard]] npushmem_transport_params transport_params() const;
    [[nodiscard]] npushmem_peer peer_of(int transport, int pe) const;
    [[nodiscard]] PeerDirectory directory() const;
    [[nodiscard]] Result<EndpointRecord> endpoint_of(const NamedTransport& named);
    Status barrier_all(const barrier::Plan& plan);
    void describe_job();
    void publish_finalized();
    // Returns null for a PE of another host.
    [[nodiscard]] ControlBlock* control_of(int pe) const;
    [[nodiscard]] bool has_departures() const;
    Status wait_for_others();
    void send_departure(const DelayedTask& task);
    void make_progress();
    Status print_statistics();
    Status heap_barrier() override { return barrier_all(); }
    [[nodiscard]] std::uint64_t next_barrier() const override { return world_->barriers() + 1; }
    Result<HeapRecord> record_of(int pe, unsigned parity) override;

    Sources* sources_ = nullptr;             // during start-up
    const StartRequest* request_ = nullptr;  // during start-up

    Config config_;
    Log log_;
    std::unique_ptr<PluginServices> services_;
    std::unique_ptr<Bootstrap> bootstrap_;
    int my_pe_ = -1;
    int npes_ = -1;
    std::vector<PeRecord> records_;
    barrier::Tuning tuning_;
    HostLayout layout_{std::span<const npushmem_host_id>{}};
    std::unique_ptr<WaitServices> wait_services_;
    std::unique_ptr<HostMemory> memory_;
    std::unique_ptr<SymmetricHeap> heap_;
    StaticVariables statics_;
    std::vector<OwnedTransport> transports_;
    std::vector<NamedTransport> named_transports_;
    std::vector<std::uint64_t> regions_;  // of the own slice, per transport
    PeerAddressTable peer_addresses_;
    std::unique_ptr<TransportMap> map_;
    std::unique_ptr<RemotePeers> remote_peers_;
    std::unique_ptr<RemoteAccess> remote_;
    FastMap fast_;
    std::vector<std::byte*> local_slices_;  // of this host's PEs, by local index; null where not mapped
    SharingPes sharing_pes_;
    std::unique_ptr<TeamTable> teams_;
    TeamBarrier* world_ = nullptr;  // the barrier of the team of all PEs, in teams_
    std::unique_ptr<CollectiveHeap> collective_heap_;
    std::atomic<bool> passed_last_barrier_{false};
    std::mutex npu_lock_;
    std::unique_ptr<KernelRecordsMemory> kernel_records_;
    std::unique_ptr<NpuBinding> npu_;  // under npu_lock_
    std::string job_text_;
    std::string remote_transport_text_;  // the choice for other hosts and its reason; empty: no choice was needed
    NicClaims nic_claims_;               // of the PEs of this host, if this PE made the assignment
    std::mutex text_lock_;
    std::string nic_text_;  // under text_lock_ after start-up
};

}  // namespace npushmem
