// npushmem-perf combine: from options to report.
#include "bench/perf/combine_report.hpp"
#include "bench/perf/combine_run.hpp"
#include "bench/perf/layer_command.hpp"
#include "npushmemx.h"

namespace npushmem::perf {
namespace {

class CombineCommand final : public LayerCommand {
public:
    CombineCommand()
        : LayerCommand("combine",
                       "Bring the rows of one MoE layer back to their tokens and add them up, verified, beside memcpy",
                       2) {}

private:
    Result<Outcome> measure(const Job& job, const CombineCase& c) override {
        const auto result = run_combine(job, c, options());
        if (!result.ok()) return result.status();
        const CombineResult& r = result.value();
        return Outcome{r.difference,
                       combine_report(c, options(), r, npushmemx_describe_map(), npushmemx_describe_nics()),
                       combine_csv(r), combine_svg(c, r)};
    }
};

}  // namespace

std::unique_ptr<Subcommand> make_combine_command() { return std::make_unique<CombineCommand>(); }

}  // namespace npushmem::perf
