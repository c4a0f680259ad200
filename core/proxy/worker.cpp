#include "core/proxy/worker.hpp"

#include <algorithm>
#include <utility>

namespace npushmem::proxy {

Result<RequestQueue*> Worker::queue_of(int pe) {
    const auto known = queues_.find(pe);
    if (known != queues_.end()) return known->second.get();
    const auto opened = peers_.open(pe);
    if (!opened.ok()) return opened.status();
    transports_ |= std::uint64_t{1} << opened.value().transport;
    return queues_.emplace(pe, std::make_unique<RequestQueue>(peers_, opened.value())).first->second.get();
}

void Worker::activate(RequestQueue& queue) {
    if (std::find(active_.begin(), active_.end(), &queue) == active_.end()) active_.push_back(&queue);
}

void Worker::reject(const Request& request, Status why) {
    if (request.number != 0)
        request.requester->report(request.number, std::move(why), 0);
    else
        request.requester->record_failure(std::move(why));
    request.requester->finish();
}

void Worker::accept(Request request) {
    if (request.kind == Request::Kind::fence) return accept_fence(request);
    if (request.kind == Request::Kind::quiet) return accept_quiet(request);
    const auto queue = queue_of(request.pe());
    if (!queue.ok()) return reject(request, queue.status());
    if (request.kind == Request::Kind::atomic)
        if (Status able = peers_.supports(request.atomic); !able.ok()) return reject(request, std::move(able));
    queue.value()->append(std::move(request));
    activate(*queue.value());
}

void Worker::accept_fence(const Request& request) {
    for (const auto& [pe, queue] : queues_) {
        queue->fence(request.requester);
        if (!queue->idle()) activate(*queue);
    }
    if (Status event = events(); !event.ok()) request.requester->record_failure(std::move(event));
    request.requester->finish();
}

void Worker::accept_quiet(Request& request) {
    const auto wait = std::make_shared<QuietRequest>();
    wait->requester = std::move(request.requester);
    wait->number = request.number;
    for (const auto& [pe, queue] : queues_) {
        queue->add_quiet(wait);
        if (!queue->idle()) activate(*queue);
    }
    quiets_.push_back(wait);
    (void)answer_quiets();
}

bool Worker::answer_quiets() {
    return std::erase_if(quiets_, [this](const std::shared_ptr<QuietRequest>& wait) {
               if (wait->open > 0) return false;
               Status event = events();
               wait->requester->report(wait->number, wait->first.ok() ? std::move(event) : std::move(wait->first), 0);
               wait->requester->finish();
               return true;
           }) > 0;
}

Status Worker::events() {
    Status first;
    for (int transport = 0; transports_ >> transport != 0 && first.ok(); ++transport)
        if ((transports_ >> transport & 1U) != 0) first = peers_.event_of(transport);
    return first;
}

bool Worker::advance() {
    bool happened = false;
    for (RequestQueue* const queue : active_) happened = queue->advance() || happened;
    std::erase_if(active_, [](const RequestQueue* queue) { return queue->idle(); });
    happened = answer_quiets() || happened;
    if (!happened && busy()) peers_.progress_transports();
    return happened;
}

void Worker::abort(const Status& why) {
    for (const auto& [pe, queue] : queues_) queue->abort(why);
    (void)answer_quiets();
    active_.clear();
}

}  // namespace npushmem::proxy
