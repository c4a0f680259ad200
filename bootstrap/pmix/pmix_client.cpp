// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/pmix_client.hpp"

#include <fmt/format.h>
#include <pmix.h>

#include <cstring>
#include <memory>

#include "core/base/parse.hpp"

namespace npushmem::pmix {
namespace {

Status failed(const char* what, pmix_status_t code) {
    return {code == PMIX_ERR_TIMEOUT ? Code::timeout : Code::protocol,
            fmt::format("PMIx {}: {}", what, PMIx_Error_string(code))};
}

pmix_proc_t process(const std::string& space, pmix_rank_t rank) {
    pmix_proc_t out{};
    space.copy(out.nspace, sizeof out.nspace - 1);
    out.rank = rank;
    return out;
}

Result<int> job_size(const std::string& space) {
    const pmix_proc_t everybody = process(space, PMIX_RANK_WILDCARD);
    pmix_value_t* value = nullptr;
    const pmix_status_t got = PMIx_Get(&everybody, PMIX_JOB_SIZE, nullptr, 0, &value);
    if (got != PMIX_SUCCESS) return failed("job size", got);
    const auto size = value->type == PMIX_UINT32 ? static_cast<int>(value->data.uint32) : -1;
    PMIX_VALUE_RELEASE(value);
    if (size < 1) return Status{Code::protocol, "PMIx gave no valid job size"};
    return size;
}

Status put(const std::string& key, const std::string& message) {
    std::string text = message;
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();  // copied by the library
    const pmix_status_t stored = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
    return stored == PMIX_SUCCESS ? Status{} : failed("put", stored);
}

}  // namespace

Result<PmixClient> PmixClient::begin() {
    pmix_proc_t me{};
    const pmix_status_t begun = PMIx_Init(&me, nullptr, 0);
    if (begun != PMIX_SUCCESS) return failed("init", begun);
    PmixClient client;
    client.namespace_ = me.nspace;
    client.rank_ = static_cast<int>(me.rank);
    const auto size = job_size(client.namespace_);
    if (size.ok()) client.nranks_ = size.value();
    if (client.nranks_ > client.rank_) return client;
    client.end();
    return size.ok() ? Status{Code::protocol, fmt::format("PMIx gave rank {} of {}", me.rank, size.value())}
                     : size.status();
}

Result<std::string> PmixClient::broadcast(const std::string& message, Deadline deadline) {
    const std::string key = fmt::format("npushmem.start.{}", ++broadcasts_);
    if (rank_ == 0)
        if (Status stored = put(key, message); !stored.ok()) return stored;
    const pmix_status_t committed = PMIx_Commit();
    if (committed != PMIX_SUCCESS) return failed("commit", committed);

    pmix_info_t collect{};
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    Completion fence;
    const pmix_status_t started = PMIx_Fence_nb(nullptr, 0, &collect, 1, Completion::on_done, fence.argument());
    const pmix_status_t result = started == PMIX_SUCCESS ? fence.await(deadline) : fence.not_started(started);
    PMIX_INFO_DESTRUCT(&collect);
    if (result == PMIX_ERR_TIMEOUT)
        return Status{Code::timeout, fmt::format("PMIx fence: not every rank of the job called npushmem's start "
                                                 "within {}",
                                                 format_duration(deadline.span()))};
    if (result != PMIX_SUCCESS && result != PMIX_OPERATION_SUCCEEDED) return failed("fence", result);
    return rank_ == 0 ? Result<std::string>(message) : get(key, 0, deadline);
}

// The fence has transferred the value already, so this waits for the local server only.
Result<std::string> PmixClient::get(const std::string& key, int from_rank, Deadline) const {
    const pmix_proc_t from = process(namespace_, static_cast<pmix_rank_t>(from_rank));
    pmix_value_t* value = nullptr;
    const pmix_status_t got = PMIx_Get(&from, key.c_str(), nullptr, 0, &value);
    if (got != PMIX_SUCCESS) return failed("get", got);
    std::string out = value->type == PMIX_STRING ? value->data.string : "";
    PMIX_VALUE_RELEASE(value);
    return out;
}

void PmixClient::end() { (void)PMIx_Finalize(nullptr, 0); }

}  // namespace npushmem::pmix
