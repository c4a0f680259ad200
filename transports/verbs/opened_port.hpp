// An open port of an RDMA device, on which the rest of the transport is built.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "transports/verbs/verbs_library.hpp"
#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {

class OpenedPort {
public:
    // The error names the device, the port, the failed call and the remedy.
    static Result<std::unique_ptr<OpenedPort>> open(Library library, const npushmem_device& which,
                                                    const VerbsSettings& settings);

    [[nodiscard]] VerbsLibrary& library() const { return *library_; }
    [[nodiscard]] const VerbsSettings& settings() const { return settings_; }
    [[nodiscard]] ibv_context* context() const { return context_.get(); }
    [[nodiscard]] ibv_pd* pd() const { return pd_.get(); }
    [[nodiscard]] ibv_cq* cq() const { return cq_.get(); }
    [[nodiscard]] int cq_entries() const { return cq_entries_; }
    [[nodiscard]] ibv_comp_channel* channel() const { return channel_.get(); }
    [[nodiscard]] const ibv_device_attr& device() const { return device_; }
    [[nodiscard]] const ibv_port_attr& port() const { return port_; }
    [[nodiscard]] std::uint8_t number() const { return number_; }
    [[nodiscard]] const ibv_gid_entry& gid() const { return gid_; }
    [[nodiscard]] std::uint16_t pkey_index() const { return pkey_index_; }
    [[nodiscard]] ibv_mtu mtu() const { return mtu_; }
    [[nodiscard]] bool ethernet() const { return port_.link_layer == IBV_LINK_LAYER_ETHERNET; }
    // "rxe0:1 (RoCE v2 ::ffff:10.77.0.1)"
    [[nodiscard]] const std::string& name() const { return name_; }
    // The maximum number of reads and atomics in flight of one queue pair.
    [[nodiscard]] std::uint8_t max_rd_atomic() const;
    // The access of peers: IBV_ACCESS_REMOTE_x. A device without atomics may reject the flag for atomics.
    [[nodiscard]] int remote_access() const;
    [[nodiscard]] std::uint64_t registered_bytes() const { return registered_bytes_; }

    // Changes since the port was opened that invalidate what peers know of it, as a clause for people; empty: none.
    [[nodiscard]] std::string describe_changes() const;

    // Registers memory. The error names the limit that was reached and how to raise it.
    Result<Owned<ibv_mr>> register_memory(void* base, std::uint64_t bytes, int access);
    // Sets a callback that frees registrations when the limit of the device or of the process is reached. It returns
    // true when it freed some.
    void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }

private:
    OpenedPort(Library library, const VerbsSettings& settings) : library_(std::move(library)), settings_(settings) {}
    Status open_device(const npushmem_device& which);
    // All addresses (GIDs) of the port.
    [[nodiscard]] Result<std::vector<ibv_gid_entry>> addresses() const;
    Status find_addresses();
    Status find_pkey();
    [[nodiscard]] bool has_pkey_at(int index) const;
    Status find_mtu();
    Status open_queues();

    Library library_;
    VerbsSettings settings_;
    std::string name_;
    ibv_device_attr device_{};
    ibv_port_attr port_{};
    ibv_gid_entry gid_{};
    std::uint16_t pkey_index_ = 0;
    std::uint8_t number_ = 1;
    ibv_mtu mtu_ = IBV_MTU_1024;
    int cq_entries_ = 0;
    std::uint64_t registered_bytes_ = 0;
    std::function<bool()> reclaim_;
    // Destroyed in reverse order.
    Owned<ibv_context> context_;
    Owned<ibv_pd> pd_;
    Owned<ibv_comp_channel> channel_;
    Owned<ibv_cq> cq_;
};

// A hint for a failed registration: the limit of locked memory, if that is the cause.
std::string registration_hint(int error, std::uint64_t registered_already);

}  // namespace npushmem::verbs
