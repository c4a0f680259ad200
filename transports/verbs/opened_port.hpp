// SPDX-License-Identifier: BSD-3-Clause
// An open port of an RDMA device, its protection domain and its completion queue. The rest of the transport uses them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "transports/verbs/verbs_library.hpp"
#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {

// A protection domain, and the memory that is registered in it.
class ProtectionDomain {
public:
    explicit ProtectionDomain(Library library) : library_(std::move(library)) {}
    ProtectionDomain(const ProtectionDomain&) = delete;
    ProtectionDomain& operator=(const ProtectionDomain&) = delete;
    Status open(ibv_context* context, const ibv_device_attr& device);

    [[nodiscard]] ibv_pd* get() const { return pd_.get(); }
    // The access of peers: IBV_ACCESS_REMOTE_x. A device without atomics may reject the flag for atomics.
    [[nodiscard]] int remote_access() const { return remote_access_; }
    [[nodiscard]] std::uint64_t registered_bytes() const { return registered_bytes_; }

    // Registers memory. The domain outlives the registration. The error names the limit that was reached and how to
    // raise it.
    Result<Owned<ibv_mr>> register_memory(void* base, std::uint64_t bytes, int access);
    // Sets a callback that frees registrations when the limit of the device or of the process is reached. It returns
    // true when it freed some.
    void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }

private:
    Library library_;
    int remote_access_ = 0;
    std::uint64_t registered_bytes_ = 0;
    std::function<bool()> reclaim_;
    Owned<ibv_pd> pd_;
};

// The completion queue of all queue pairs of a port, and the channel of its events.
class CompletionQueue {
public:
    explicit CompletionQueue(Library library) : library_(std::move(library)) {}
    Status open(ibv_context* context, const ibv_device_attr& device);

    [[nodiscard]] ibv_cq* get() const { return cq_.get(); }
    [[nodiscard]] int entries() const { return entries_; }
    // Readable when there is an event.
    [[nodiscard]] int descriptor() const { return channel_->fd; }
    // Returns the number of completions, which is negative when the device has failed.
    int poll(std::span<ibv_wc> out) { return library_->poll_cq(cq_.get(), static_cast<int>(out.size()), out.data()); }
    // The next completion raises an event; with `solicited_only`, only the arrival of a solicited message. False: the
    // device has failed.
    [[nodiscard]] bool request_event(bool solicited_only) {
        return library_->req_notify_cq(cq_.get(), solicited_only) == 0;
    }
    void drain_events() {
        while (library_->take_cq_event(channel_.get()) == 0) {
        }
    }

private:
    Library library_;
    int entries_ = 0;
    // Destroyed in reverse order.
    Owned<ibv_comp_channel> channel_;
    Owned<ibv_cq> cq_;
};

class OpenedPort {
public:
    // The error names the device, the port, the failed call and the remedy.
    static Result<std::unique_ptr<OpenedPort>> open(Library library, const npushmem_device& which,
                                                    const VerbsSettings& settings);

    [[nodiscard]] VerbsLibrary& library() const { return *library_; }
    [[nodiscard]] const VerbsSettings& settings() const { return settings_; }
    [[nodiscard]] ibv_context* context() const { return context_.get(); }
    [[nodiscard]] ProtectionDomain& domain() { return domain_; }
    [[nodiscard]] CompletionQueue& completions() { return completions_; }
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

    // Changes since the port was opened that invalidate what peers know of it, as a clause for people; empty: none.
    [[nodiscard]] std::string describe_changes() const;

private:
    OpenedPort(Library library, const VerbsSettings& settings)
        : library_(std::move(library)), settings_(settings), domain_(library_), completions_(library_) {}
    Status open_device(const npushmem_device& which);
    Status find_addresses();
    Status find_pkey();

    Library library_;
    VerbsSettings settings_;
    std::string name_;
    ibv_device_attr device_{};
    ibv_port_attr port_{};
    ibv_gid_entry gid_{};
    std::uint16_t pkey_index_ = 0;
    std::uint8_t number_ = 1;
    ibv_mtu mtu_ = IBV_MTU_1024;
    // Destroyed in reverse order.
    Owned<ibv_context> context_;
    ProtectionDomain domain_;
    CompletionQueue completions_;
};

// A hint for a failed registration: the limit of locked memory, if that is the cause.
std::string registration_hint(int error, std::uint64_t registered_already);

}  // namespace npushmem::verbs
