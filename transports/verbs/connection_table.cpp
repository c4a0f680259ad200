#include "transports/verbs/connection_table.hpp"

#include <fmt/format.h>

namespace npushmem::verbs {

Result<std::unique_ptr<Connection>> ConnectionTable::make(network::LaneId lane_id, bool inbound) {
    if (!poster_.can_add_connection())
        return Status{
            Code::system,
            fmt::format("{} queue pairs use all {} entries of the completion queue; set NPUSHMEM_VERBS_LANES to a "
                        "smaller number",
                        by_queue_pair_.size(), port_.completions().entries())};
    auto free = std::find(by_index_.begin(), by_index_.end(), nullptr);
    if (free == by_index_.end()) free = by_index_.insert(free, nullptr);
    const auto index = static_cast<std::uint32_t>(free - by_index_.begin());
    auto made = Connection::make(port_, receives_, {lane_id, inbound, index});
    if (!made.ok()) return made;
    *free = made.value().get();
    by_queue_pair_.emplace((*free)->pair().number(), *free);
    poster_.add_connection();
    return made;
}

void ConnectionTable::stop(Connection& connection, const char* why) {
    connection.fail({Code::peer_dead, why});
    connection.pair().stop();
    connection.control_queue.clear();
    if (connection.unfinished != nullptr) service_.add(connection);
}

void ConnectionTable::retire(std::unique_ptr<Connection> connection) {
    connection->retired = true;
    stop(*connection, "the connection has been closed");
    retired_.push_back(std::move(connection));
}

bool ConnectionTable::is_over(const std::unique_ptr<Connection>& retired) {
    return retired->requests().under_way() == 0 && retired->unfinished == nullptr && !retired->needs_service;
}

std::vector<std::uint32_t> ConnectionTable::destroy_retired(std::size_t count) {
    std::vector<std::uint32_t> destroyed;
    const auto end = retired_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto first_removed = std::remove_if(retired_.begin(), end, [&](const auto& each) {
        if (!is_over(each)) return false;
        destroyed.push_back(each->pair().number());
        by_queue_pair_.erase(each->pair().number());
        by_index_[each->role().number] = nullptr;
        poster_.remove_connection();
        return true;
    });
    retired_.erase(first_removed, end);
    return destroyed;
}

void ConnectionTable::lose(network::WireListener& listener, Connection& connection, Status why) {
    connection.fail(std::move(why));
    if (connection.unfinished != nullptr) service_.add(connection);
    // The sender of an inbound lane notices the loss itself. A retired connection's lane may have another one now.
    if (connection.role().inbound || connection.retired) return;
    const Status reason = connection.failure();
    listener.lost(connection.role().lane_id, reason.code(), reason.message());
}

void ConnectionTable::lose_all(network::WireListener& listener, const Status& why) {
    for (auto& [number, connection] : by_queue_pair_) lose(listener, *connection, why);
}

}  // namespace npushmem::verbs
