// SPDX-License-Identifier: BSD-3-Clause
// The parts of the contract programs' man pages that their tables of options do not contain.
#pragma once

#include "core/tools/common/cli_documents.hpp"

namespace npushmem::contract {

inline ManText transport_man_text() {
    return {
        "test a transport against the contract of npushmem",
        "[transports]",
        "Tests the rules that every transport obeys, over plugins that are found by name or path. Each case runs in a "
        "process of its own, which starts PEs that use the transport and checks what they observe. A failure states "
        "the case, the expectation, the rule that was broken, and the PE and process in which it failed. A case that "
        "needs a capability that no peer offers is skipped.\n\n"
        "A transport that reaches a network needs that network; --without leaves it out.",
        {{"0", "No case failed."},
         {"1", "A case failed, or the output is lost."},
         {"2", "A plugin or a value was refused before any case ran, or no case matches the filter."},
         {"other", "The command line is wrong."}},
        {{"NPUSHMEM_PLUGIN_PATH", "Folders that are searched first for plugins, unless --plugin-path is given."},
         {"NPUSHMEM_CONTRACT_VERBOSE", "1: print what the processes of all cases write, not only of failed ones."},
         {"NPUSHMEM_CONTRACT_IN_PROCESS", "1: run the cases in the calling process, for a debugger."}},
        {{"npushmem-contract-transport fabric", "The transport fabric in one of the searched folders:"},
         {"npushmem-contract-transport ./libnpushmem_transport_fabric.so -c FABRIC_DEPTH=1",
          "A file, with the smallest depth of its queue:"},
         {"npushmem-contract-transport 'fault(p2p)' --filter '*fence*'",
          "A decorated transport, and only the cases about fences:"}},
        "npushmem-contract-bootstrap(1), npushmem-new-plugin(1), npushmem-info(1), npushmem-plugins(7)"};
}

inline ManText bootstrap_man_text() {
    return {"test a bootstrap against the contract of npushmem",
            "bootstrap",
            "Tests the rules that every bootstrap obeys, over a plugin that is found by name or path. Each case "
            "runs in a process of its own, which starts the ranks. With --of the program is one rank of a job that a "
            "launcher has started, and runs the cases that need no ranks of their own.",
            {{"0", "No case failed."},
             {"1", "A case failed, or the output is lost."},
             {"2", "The plugin or a value was refused before any case ran, or no case matches the filter."},
             {"other", "The command line is wrong."}},
            {{"NPUSHMEM_PLUGIN_PATH", "Folders that are searched first for plugins, unless --plugin-path is given."},
             {"NPUSHMEM_CONTRACT_VERBOSE", "1: print what the processes of all cases write, not only of failed ones."},
             {"NPUSHMEM_CONTRACT_IN_PROCESS", "1: start the ranks from the calling process, for a debugger."},
             {"NPUSHMEM_*", "Passed to the plugin; --config prevails."}},
            {{"npushmem-contract-bootstrap uid --ranks 5", "The bootstrap uid with five ranks:"},
             {"npushmem-run -n 5 npushmem-contract-bootstrap uid --of 5", "The same under a launcher:"}},
            "npushmem-contract-transport(1), npushmem-new-plugin(1), npushmem-run(1), npushmem-plugins(7)"};
}

inline ManText collectives_man_text() {
    return {"test a library of collectives against the contract of npushmem",
            "collectives",
            "Tests the rules that every library of collectives obeys, over a plugin that is found by name or path. The "
            "PEs are threads of a process. With --of the program is one PE of a job that a launcher has started, for "
            "libraries that have one instance in a process, such as MPI. The PEs then find each other as those of any "
            "job of npushmem.",
            {{"0", "No case failed."},
             {"1", "A case failed, or the output is lost."},
             {"2", "The plugin or a value was refused before any case ran, or no case matches the filter."},
             {"other", "The command line is wrong."}},
            {{"NPUSHMEM_PLUGIN_PATH", "Folders that are searched first for plugins, unless --plugin-path is given."},
             {"NPUSHMEM_*", "Passed to the plugin; --config prevails. With --of they also select the bootstrap."}},
            {{"npushmem-contract-collectives ./libnpushmem_collectives_mine.so", "A file, with PEs in one process:"},
             {"mpirun -n 3 env NPUSHMEM_BOOTSTRAP=mpi NPUSHMEM_BOOTSTRAP_MPI_INIT=1 npushmem-contract-collectives mpi "
              "--of 3",
              "The collectives of MPI:"}},
            "npushmem-contract-transport(1), npushmem-contract-bootstrap(1), npushmem-info(1), npushmem-plugins(7)"};
}

}  // namespace npushmem::contract
