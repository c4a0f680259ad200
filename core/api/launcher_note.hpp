// What a PE tells npushmem-run, if that started it: one line on the descriptor that NPUSHMEM_LAUNCHER_FD names.
#pragma once

namespace npushmem::api {

// "exit": the program ends the job with this status. False: there is no launcher, or it did not listen.
bool note_exit(int status);

// "failed": the library cannot serve this PE any more (its start failed, or a peer is lost), so the job cannot be a
// success whatever the program returns.
bool note_failure(int status);

}  // namespace npushmem::api
