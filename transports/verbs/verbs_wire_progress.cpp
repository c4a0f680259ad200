// What happens without being called for: completions, greetings, keys, events of the device.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "transports/verbs/status_text.hpp"
#include "transports/verbs/verbs_notes.hpp"
#include "transports/verbs/verbs_wire.hpp"
#include "transports/verbs/work_number.hpp"

namespace npushmem::verbs {
namespace {

using network::WireListener;

}  // namespace

bool VerbsWire::progress(WireListener& listener) {
    if (!port_) return false;
    bool active = tell_failures(listener);
    active = complete(listener) || active;
    if (!watched_.empty()) active = serve_watched(listener) || active;
    if (!asking_.empty()) active = repeat_greetings(listener) || active;
    if (!active && --until_event_check_ == 0) active = take_events(listener);
    return active;
}

bool VerbsWire::tell_failures(WireListener& listener) {
    if (failed_.empty()) return false;
    const auto failed = std::exchange(failed_, {});
    for (const auto& each : failed) listener.completed(*each.context, each.why.code(), each.why.message());
    return true;
}

bool VerbsWire::complete(WireListener& listener) {
    bool before = false;
    if (!polled_.empty()) {
        for (const auto& completion : std::exchange(polled_, {})) completed(listener, completion);
        before = true;
    }
    const std::size_t stopped = retired_.size();  // before this look: nothing more completes on them
    std::array<ibv_wc, polled_at_once> found;
    const int count = library_->poll_cq(port_->cq(), polled_at_once, found.data());
    for (int i = 0; i < count; ++i) completed(listener, found[static_cast<std::size_t>(i)]);
    if (count < 0) lose_all(listener, {Code::system, fmt::format("ibv_poll_cq failed ({})", count)});
    if (stopped > 0 && count < static_cast<int>(polled_at_once)) destroy_retired(stopped);
    if (!unposted_receives_.empty())
        std::erase_if(unposted_receives_, [this](std::size_t index) { return post_receive(index).ok(); });
    return count > 0 || before;
}

void VerbsWire::completed(WireListener& listener, const ibv_wc& completion) {
    switch (WorkNumber::of(completion.wr_id).kind) {
        case WorkNumber::Kind::post: return posted_completed(listener, completion);
        case WorkNumber::Kind::receive: return received(listener, completion);
        case WorkNumber::Kind::greeting_out: return greeter_->sent(completion);
        case WorkNumber::Kind::greeting_in:
            if (const auto greeting = greeter_->received(completion)) greeted(listener, *greeting);
            return;
    }
}

void VerbsWire::posted_completed(WireListener& listener, const ibv_wc& completion) {
    const WorkNumber number = WorkNumber::of(completion.wr_id);
    Connection& connection = *connections_[number.connection];
    // Who waited has been told so: its memory is its own again, though this may have worked.
    const bool given_up = !connection.failure().ok();
    const bool failed = completion.status != IBV_WC_SUCCESS;
    if (failed) {
        const std::string text =
            fmt::format("work request {}: {} (status {}, vendor {:#x}); {}{}", number.which,
                        library_->wc_status_str(completion.status), static_cast<int>(completion.status),
                        completion.vendor_err, hint_for(completion.status), notes());
        // A lane that was stopped is no lost peer.
        const bool stopped = completion.status == IBV_WC_WR_FLUSH_ERR && connection.purpose().way.lane > 0;
        if (connection.failure().ok()) connection.fail({stopped ? Code::system : code_of(completion.status), text});
    }
    std::uint32_t retired = 0;
    connection.retire(number.which, [&](const Posted& posted, bool is_last) {
        ++retired;
        finish(listener, posted, given_up || (failed && is_last) ? connection.failure() : fine_);
    });
    in_flight_ -= retired;
    if (failed) return lose(listener, connection, connection.failure());
    if (connection.burst_is_open()) {
        const std::uint32_t under_way = connection.under_way();
        if (connection.finish_burst() != Code::ok) return lose(listener, connection, connection.failure());
        in_flight_ += connection.under_way() - under_way;
    }
}

void VerbsWire::finish(WireListener& listener, const Posted& posted, const Status& done) {
    switch (posted.kind) {
        case Posted::Kind::nothing: return;
        case Posted::Kind::context:
            return listener.completed(*static_cast<network::WireContext*>(posted.what), done.code(), done.message());
        case Posted::Kind::word: return fetched(listener, static_cast<std::byte*>(posted.what), done);
        case Posted::Kind::transfer: return transferred(listener, *static_cast<Transfer*>(posted.what), done);
        case Posted::Kind::message: return sends_->give_back(static_cast<std::byte*>(posted.what));
    }
}

void VerbsWire::fetched(WireListener& listener, std::byte* word, const Status& done) {
    const Fetch fetch = fetches_[words_->index_of(word)];
    if (done.ok() && fetch.copy_to != nullptr) std::memcpy(fetch.copy_to, word, fetch.width);
    words_->give_back(word);
    listener.completed(*fetch.context, done.code(), done.message());
}

void VerbsWire::transferred(WireListener& listener, Transfer& transfer, const Status& done) {
    if (done.ok() && transfer.copy_to != nullptr) std::memcpy(transfer.copy_to, transfer.buffer, transfer.copy_size);
    network::WireContext* const context = transfer.context;
    give_back(transfer);
    if (context != nullptr) listener.completed(*context, done.code(), done.message());
}

void VerbsWire::received(WireListener& listener, const ibv_wc& completion) {
    const std::size_t index = WorkNumber::of(completion.wr_id).which;
    if (completion.status == IBV_WC_SUCCESS) {
        const auto from = by_number_.find(completion.qp_num);
        const std::span<const std::byte> message(receives_->at(index), completion.byte_len);
        if (from != by_number_.end()) from->second->note_peer_ready();  // who sends is ready to receive
        if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0)
            listener.arrived(message);
        else if (from != by_number_.end())
            noted(*from->second, ntohl(completion.imm_data), message);
    }
    if (!post_receive(index).ok()) unposted_receives_.push_back(index);
}

void VerbsWire::noted(Connection& connection, std::uint32_t kind, std::span<const std::byte> bytes) {
    if (kind == KeyRequest::kind) {
        const auto request = plain_from<KeyRequest>(bytes);
        if (!request) return;
        KeyAnswer answer;
        answer.key = request->key;
        answer.chunk = request->chunk;
        const auto rkey = memory_->rkey(request->region, request->chunk);
        if (rkey.ok()) answer.rkey = rkey.value();
        answer.code = static_cast<std::int32_t>(rkey.ok() ? Code::ok : rkey.status().code());
        if (!rkey.ok()) (void)rkey.status().message().copy(answer.why.data(), answer.why.size() - 1);
        return send_note(connection, KeyAnswer::kind, bytes_from(answer));
    }
    const auto answer = plain_from<KeyAnswer>(bytes);
    if (kind != KeyAnswer::kind || !answer) return;
    RemoteMemory* const asked = answer->key - 1 < remote_.size() ? remote_[answer->key - 1].get() : nullptr;
    if (asked == nullptr || asked->pe() != connection.pe()) return;
    if (answer->code == 0) return asked->learn(answer->chunk, answer->rkey);
    asked->learn_failure(answer->chunk,
                         {static_cast<Code>(answer->code), fmt::format("the peer says: {}", answer->why.data())});
}

void VerbsWire::greeted(WireListener& listener, const Greeting& greeting) {
    const bool of_this_job = greeting.to_nonce == nonce_ && greeting.pe >= 0 && greeting.pe != place_.pe &&
                             static_cast<std::size_t>(greeting.pe) < peers_.size();
    if (!of_this_job) return;
    Peer& from = peer(greeting.pe);
    if (!from.contact) from.contact = greeting.from;
    if (from.contact->nonce != greeting.from.nonce) return;
    if (greeting.lane == 0) return greeted_by_peer(listener, greeting);
    if (greeting.kind == Greeting::Kind::request) return asked_for_lane(greeting);
    lane_answered(listener, greeting);
}

void VerbsWire::greeted_by_peer(WireListener& listener, const Greeting& greeting) {
    if (greeting.kind == Greeting::Kind::refusal) return refused_by_peer(listener, greeting.pe);
    Status s = make_connection({greeting.pe});
    const Lane& first = lane({greeting.pe});
    if (s.ok()) s = first.connection->connect(greeting);
    if (s.ok() && greeting.kind == Greeting::Kind::request)
        s = greet({greeting.pe}, 0, Greeting::Kind::answer, first.connection.get());
    if (!s.ok()) {
        // Else it asks until it takes this PE for silent.
        if (greeting.kind == Greeting::Kind::request) (void)greet({greeting.pe}, 0, Greeting::Kind::refusal, nullptr);
        if (first.connection && first.connection->failure().ok()) first.connection->fail(s);
        return listener.lost({greeting.pe}, s.code(), s.message());
    }
    if (greeting.kind == Greeting::Kind::answer) first.connection->note_peer_ready();
    if (first.connection->ready() && !first.connection->notes.empty()) watch(*first.connection);
}

void VerbsWire::refused_by_peer(WireListener& listener, int pe) {
    const Lane& first = lane({pe});
    if (!first.connection || first.connection->ready()) return;  // late
    lose(listener, *first.connection,
         {Code::unreachable,
          "the peer could not make its queue pair for this PE, or has given this PE up; its own "
          "messages say why"});
}

// The peer wants to send over a lane of its own. What it had there before, it has closed.
void VerbsWire::asked_for_lane(const Greeting& greeting) {
    const network::Way way{greeting.pe, greeting.lane};
    auto& theirs = peer(greeting.pe).theirs;
    const auto known = theirs.find(greeting.lane);
    if (known != theirs.end() && known->second.generation > greeting.generation) return;  // late
    Status s;
    if (known == theirs.end() || known->second.generation < greeting.generation) s = take_lane(greeting);
    const bool ok = s.ok();
    const Connection* const taken = ok ? theirs.at(greeting.lane).connection.get() : nullptr;
    // An answer that does not get away is asked for again.
    (void)greet(way, greeting.generation, ok ? Greeting::Kind::answer : Greeting::Kind::refusal, taken);
}

Status VerbsWire::take_lane(const Greeting& greeting) {
    auto& theirs = peer(greeting.pe).theirs;
    if (const auto old = theirs.find(greeting.lane); old != theirs.end()) {
        retire(std::move(old->second.connection));
        theirs.erase(old);
    }
    auto made = new_connection({greeting.pe, greeting.lane}, true);
    if (!made.ok()) return made.status();
    Status s = made.value()->connect(greeting);
    if (!s.ok()) {
        retire(std::move(made).value());
        return s;
    }
    theirs.emplace(greeting.lane, Theirs{std::move(made).value(), greeting.generation});
    return {};
}

void VerbsWire::lane_answered(WireListener& listener, const Greeting& greeting) {
    if (greeting.lane >= peer(greeting.pe).lanes.size()) return;  // nobody has asked for it
    const network::Way way{greeting.pe, greeting.lane};
    const Lane& own = lane(way);
    if (!own.connection || own.generation != greeting.generation || own.connection->ready()) return;
    Status s = greeting.kind == Greeting::Kind::answer
                   ? own.connection->connect(greeting)
                   : Status{Code::system,
                            "the peer could not make a queue pair for a context of its own (fewer, shared "
                            "ones: NPUSHMEM_VERBS_LANES)"};
    if (s.ok()) return own.connection->note_peer_ready();
    lose(listener, *own.connection, std::move(s));
}

bool VerbsWire::repeat_greetings(WireListener& listener) {
    bool sent = false;
    const auto now = now_();
    std::vector<network::Way> unreachable;
    std::erase_if(asking_, [&](Asking& asking) {
        Lane& of = lane(asking.way);
        if (of.connection && (of.connection->ready() || !of.connection->failure().ok())) {
            of.asking = false;
            return true;
        }
        if (now < asking.again || !of.connection) return false;
        asking.again = now + until_asked_again;
        sent = true;
        if (Status s = ask(asking.way); !s.ok()) of.connection->fail(std::move(s));
        if (!of.connection->failure().ok()) unreachable.push_back(asking.way);
        return false;
    });
    for (const network::Way way : unreachable) {
        const Status why = lane(way).connection->failure();
        listener.lost(way, why.code(), why.message());
    }
    return sent;
}

bool VerbsWire::serve(WireListener& listener, Connection& connection) {
    bool happened = send_notes(connection);
    auto* const unfinished = static_cast<Transfer*>(connection.unfinished);
    if (unfinished == nullptr) return happened;
    if (connection.failure().ok()) {
        const std::uint64_t before = unfinished->left;
        const Code pumped = pump(connection, *unfinished);
        if (pumped == Code::ok) connection.unfinished = nullptr;
        if (pumped != Code::ok && pumped != Code::again) lose(listener, connection, connection.failure());
        return happened || unfinished->left != before || pumped == Code::ok;
    }
    if (connection.under_way() > 0) return happened;  // the device may still touch its memory
    connection.unfinished = nullptr;
    transferred(listener, *unfinished, connection.failure());
    return true;
}

bool VerbsWire::serve_watched(WireListener& listener) {
    bool happened = false;
    const auto watched = std::exchange(watched_, {});
    for (Connection* connection : watched) {
        connection->watched = false;
        happened = serve(listener, *connection) || happened;
        const bool has_notes = !connection->notes.empty() && connection->failure().ok();
        if (has_notes || connection->unfinished != nullptr) watch(*connection);
    }
    return happened;
}

void VerbsWire::lose(WireListener& listener, Connection& connection, Status why) {
    connection.fail(std::move(why));
    if (connection.unfinished != nullptr) watch(connection);
    // The peer notices by what it sends; and the way may be another connection's by now.
    if (connection.purpose().theirs || connection.retired) return;
    const Status reason = connection.failure();
    listener.lost(connection.purpose().way, reason.code(), reason.message());
}

void VerbsWire::lose_all(WireListener& listener, const Status& why) {
    for (auto& [number, connection] : by_number_) lose(listener, *connection, why);
}

bool VerbsWire::take_events(WireListener& listener) {
    until_event_check_ = polls_per_event_check;
    keep_events();
    const auto events = std::exchange(events_, {});
    for (const Event& each : events) happened(listener, each);
    return !events.empty();
}

void VerbsWire::keep_events() {
    ibv_async_event event{};
    while (library_->take_async_event(port_->context(), &event) == 0) {
        const bool of_a_pair = event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                               event.event_type == IBV_EVENT_QP_ACCESS_ERR;
        events_.push_back({event.event_type, of_a_pair ? event.element.qp->qp_num : 0});
    }
}

std::string VerbsWire::notes() const {
    std::string out;
    if (!port_note_.empty()) out += "; " + port_note_;
    if (!address_note_.empty()) out += "; " + address_note_ + ", and peers know the old one: start the job again";
    return out;
}

void VerbsWire::happened(WireListener& listener, const Event& event) {
    const char* const text = library_->event_type_str(event.type);
    switch (event.type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR: {
            const auto found = by_number_.find(event.queue_pair);
            if (found != by_number_.end())
                lose(listener, *found->second,
                     {found->second->purpose().way.lane == 0 ? Code::peer_dead : Code::system,
                      fmt::format("its queue pair stopped: {}{}", text, notes())});
            return;
        }
        case IBV_EVENT_PORT_ERR: port_note_ = fmt::format("port {} went down", port_->name()); return;
        case IBV_EVENT_PORT_ACTIVE: port_note_.clear(); return;
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE: address_note_ = port_->what_changed(); return;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_SRQ_ERR:  // without receives nothing arrives any more
        case IBV_EVENT_DEVICE_FATAL:
            return lose_all(listener, {Code::unreachable, fmt::format("RDMA port {}: {}", port_->name(), text)});
        default: return;
    }
}

bool VerbsWire::prepare_to_wait(network::Awaited what) {
    if (!port_) return true;
    // All messages are solicited. The completions of what this PE posts would wake a thread for every put, to no end.
    const bool solicited_only = what == network::Awaited::arrivals;
    // A thread may be waiting already, for arrivals alone, and who asks may find no more to do than now.
    if (!solicited_only && library_->req_notify_cq(port_->cq(), false) != 0) return false;
    const bool busy = !asking_.empty() || !watched_.empty() || !failed_.empty() || !unposted_receives_.empty() ||
                      !polled_.empty() || !events_.empty() ||
                      std::any_of(retired_.begin(), retired_.end(), [](const auto& each) { return is_over(*each); });
    if (busy) return false;
    descriptor_.rest();
    while (library_->take_cq_event(port_->channel()) == 0) {
    }
    if (library_->req_notify_cq(port_->cq(), solicited_only) != 0) return false;
    polled_.resize(polled_at_once);
    const int count = library_->poll_cq(port_->cq(), polled_at_once, polled_.data());
    polled_.resize(static_cast<std::size_t>(std::max(count, 0)));
    keep_events();
    if (!events_.empty()) until_event_check_ = 1;
    return count == 0 && events_.empty();
}

}  // namespace npushmem::verbs
