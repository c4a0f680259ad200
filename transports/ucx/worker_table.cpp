// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/worker_table.hpp"

#include <fmt/format.h>

#include <chrono>

#include "transports/ucx/ucx_context.hpp"

namespace npushmem::ucx {
namespace {

constexpr unsigned no_key = 0;
// A peer without free descriptors never accepts the connection.
constexpr std::chrono::seconds flush_timeout{4};

}  // namespace

WorkerTable::~WorkerTable() {
    const auto deadline = std::chrono::steady_clock::now() + flush_timeout;
    for (Worker& worker : workers_) worker.flush(workers_[0], deadline);
    // Closes the first worker last: it helps to establish and close connections of the others.
    for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) worker->close(workers_[0]);
}

Status WorkerTable::open(ucp_context_h context) {
    context_ = context;
    workers_.resize(1);
    Status s = workers_[0].open(context_);
    if (s.ok()) s = set_message_handler();
    if (!s.ok()) return s;
    auto poller = Poller::open();
    if (!poller.ok()) return poller.status().within("cannot create a descriptor to wait on for UCX");
    poller_ = std::move(poller).value();
    s = poller_.watch(events_.descriptor(), no_key).within("UCX");
    return s.ok() ? watch(workers_[0]) : s;
}

Status WorkerTable::set_message_handler() {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = &EventQueue::on_message;
    handler.arg = &events_;
    const ucs_status_t done = ucp_worker_set_am_recv_handler(workers_[0].get(), &handler);
    return done == UCS_OK ? Status{} : ucx::failure("ucp_worker_set_am_recv_handler", done);
}

// UCX closes the worker's descriptor with the worker.
Status WorkerTable::watch(const Worker& worker) {
    int descriptor = -1;
    const ucs_status_t done = ucp_worker_get_efd(worker.get(), &descriptor);
    return done == UCS_OK ? poller_.watch(descriptor, no_key).within("UCX") : ucx::failure("ucp_worker_get_efd", done);
}

Status WorkerTable::open_lane(Worker& worker) {
    Status s = worker.open(context_);
    if (s.ok()) s = watch(worker);
    if (s.ok()) return s;
    worker.close(workers_[0]);
    return s.within("cannot open a worker for a context (NPUSHMEM_UCX_LANES reduces their number)");
}

Result<Bytes> WorkerTable::address() const {
    const ucp_worker_h first = workers_[0].get();
    ucp_worker_attr_t found{};
    found.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    found.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
    if (const ucs_status_t done = ucp_worker_query(first, &found); done != UCS_OK)
        return ucx::failure("ucp_worker_query", done);
    const auto* const bytes = reinterpret_cast<const std::byte*>(found.address);
    Bytes out(bytes, bytes + found.address_length);
    ucp_worker_release_address(first, found.address);
    return out;
}

Status WorkerTable::add_peer(int pe, std::span<const std::byte> address) {
    addresses_.insert_or_assign(pe, Bytes(address.begin(), address.end()));
    Status s = connect(workers_[0], {pe});
    if (!s.ok()) addresses_.erase(pe);
    return s;
}

Status WorkerTable::connect(Worker& worker, network::LaneId lane_id) {
    const Status done = worker.connect(lane_id, addresses_.at(lane_id.pe), events_);
    return done.ok() ? done : Status{done.code(), fmt::format("{} ({})", done.message(), options_text_)};
}

void WorkerTable::record_failure(const Status& why) {
    failure_ = {why.code() == Code::again ? Code::system : why.code(), why.message()};
}

ucp_ep_h WorkerTable::endpoint_for(network::LaneId lane_id) {
    if (lane_id.lane >= workers_.size()) workers_.resize(lane_id.lane + 1);
    Worker& worker = workers_[lane_id.lane];
    if (const ucp_ep_h found = worker.endpoint(lane_id.pe); found != nullptr) [[likely]]
        return found;
    Status s = worker.is_open() ? Status{} : open_lane(worker);
    if (s.ok()) s = connect(worker, lane_id);
    if (s.ok()) return worker.endpoint(lane_id.pe);
    record_failure(s);
    return nullptr;
}

ucp_rkey_h WorkerTable::key_for(const network::RemoteAddress& place) {
    Worker& worker = workers_[place.lane_id.lane];
    if (const ucp_rkey_h found = worker.key(place.key); found != nullptr) [[likely]]
        return found;
    const auto unpacked = worker.unpack(place.key, place.lane_id.pe, keys_.at(place.key).packed);
    if (unpacked.ok()) return unpacked.value();
    record_failure(unpacked.status());
    return nullptr;
}

// Unpacks the key for the first lane at once, so that a malformed key is reported here.
Result<std::uint64_t> WorkerTable::import_key(int pe, std::span<const std::byte> bytes) {
    keys_.emplace(++last_key_, ImportedKey{pe, Bytes(bytes.begin(), bytes.end())});
    if (key_for({{pe}, last_key_, 0, 0}) != nullptr) return last_key_;
    keys_.erase(last_key_);
    return failure_;
}

void WorkerTable::release_key(std::uint64_t number) {
    for (Worker& worker : workers_) worker.release_key(number);
    keys_.erase(number);
}

bool WorkerTable::close(network::LaneId lane_id) {
    if (lane_id.lane >= workers_.size() || workers_[lane_id.lane].endpoint(lane_id.pe) == nullptr) return false;
    Worker& worker = workers_[lane_id.lane];
    worker.flush(lane_id.pe, workers_[0], std::chrono::steady_clock::now() + flush_timeout);
    for (const auto& [number, key] : keys_)
        if (key.pe == lane_id.pe) worker.release_key(number);
    worker.disconnect(lane_id.pe, workers_[0]);
    if (!worker.has_endpoints()) worker.close(workers_[0]);
    return true;
}

std::vector<int> WorkerTable::peers() const {
    std::vector<int> out;
    for (const auto& [pe, address] : addresses_) out.push_back(pe);
    return out;
}

bool WorkerTable::progress() {
    bool active = false;
    for (Worker& worker : workers_)
        if (worker.is_open()) active = worker.progress() || active;
    return active;
}

bool WorkerTable::arm() {
    for (const Worker& worker : workers_)
        if (worker.is_open() && ucp_worker_arm(worker.get()) != UCS_OK) return false;
    return true;
}

}  // namespace npushmem::ucx
