// npushmem-run --part: the other half of npushmem-run on a host of the job, started there by the remote shell. It takes
// its order from standard input, runs that part of the job as a job of its own, passes on the signals that follow the
// order, and ends the part when standard input ends: then whoever gave the order is gone.
#pragma once

namespace npushmem::run {

int run_part(const char* const* environment);

}  // namespace npushmem::run
