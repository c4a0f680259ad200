// npushmem-perf dispatch: from options to report.
#include "bench/perf/dispatch_report.hpp"
#include "bench/perf/dispatch_run.hpp"
#include "bench/perf/layer_command.hpp"
#include "npushmemx.h"

namespace npushmem::perf {
namespace {

class DispatchCommand final : public LayerCommand {
public:
    // Besides the combine's two buffers, x, whose size is that of the hottest PE.
    DispatchCommand()
        : LayerCommand(
              "dispatch",
              "Bring the tokens of one MoE layer to their experts, and back by the combine, verified, beside memcpy",
              4) {}

private:
    Result<Outcome> measure(const Job& job, const CombineCase& c) override {
        const auto result = run_dispatch(job, c, options());
        if (!result.ok()) return result.status();
        const DispatchResult& r = result.value();
        return Outcome{r.difference,
                       dispatch_report(c, options(), r, npushmemx_describe_map(), npushmemx_describe_nics()),
                       dispatch_csv(r), dispatch_svg(c, r)};
    }
};

}  // namespace

std::unique_ptr<Subcommand> make_dispatch_command() { return std::make_unique<DispatchCommand>(); }

}  // namespace npushmem::perf
