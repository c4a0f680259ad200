// SPDX-License-Identifier: BSD-3-Clause
// As kept_bootstrap.c, in C++ by the class and the export macro.
#include <algorithm>

#include "npushmem/plugin/bootstrap_export.hpp"

namespace {

using npushmem::Code;
using npushmem::Host;
using npushmem::Result;
using npushmem::Status;

class KeptBootstrap final : public npushmem::Bootstrap {
public:
    static Result<std::unique_ptr<npushmem::Bootstrap>> open(const Host&, const npushmem_bootstrap_params& params) {
        if (params.nranks > 1) return Status{Code::argument, "this bootstrap makes jobs of one rank"};
        return std::unique_ptr<npushmem::Bootstrap>(std::make_unique<KeptBootstrap>());
    }
    static Status get_uniqueid(const Host&, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
        std::fill(id.begin(), id.end(), std::byte{9});
        return {};
    }
    static int recognise(const Host&, const npushmem_bootstrap_params&, std::string& why) {
        why = "a sign";
        return NPUSHMEM_RECOGNISED_LAUNCHER;
    }
    static Status rank_ended(const Host&, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank, int nranks,
                             const std::string& how) {
        if (id[0] == std::byte{9} && rank < nranks && !how.empty()) return {};
        return {Code::argument, "not a rank of this id"};
    }

    [[nodiscard]] int rank() const override { return 0; }
    [[nodiscard]] int nranks() const override { return 1; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        if (failure_.ok() && send.data() != receive.data()) std::copy(send.begin(), send.end(), receive.begin());
        return failure_;
    }
    Status barrier() override { return failure_; }
    void abort(const std::string&) override { failure_ = {Code::aborted, "the job was aborted"}; }
    Status check() override { return failure_; }

private:
    Status failure_;
};

}  // namespace

// The macro without rows had the rows as arguments until the headers of 1.1.
#if defined(NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG)
NPUSHMEM_EXPORT_BOOTSTRAP(KeptBootstrap, PLUGIN_NAME, "a plugin of an earlier version");
#else
NPUSHMEM_EXPORT_BOOTSTRAP(KeptBootstrap, PLUGIN_NAME, "a plugin of an earlier version", nullptr, 0);
#endif
