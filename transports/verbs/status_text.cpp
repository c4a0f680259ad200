#include "transports/verbs/status_text.hpp"

namespace npushmem::verbs {

Code code_of(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_SUCCESS: return Code::ok;
        case IBV_WC_RETRY_EXC_ERR:
        case IBV_WC_RNR_RETRY_EXC_ERR:
        case IBV_WC_REM_ABORT_ERR:
        case IBV_WC_WR_FLUSH_ERR: return Code::peer_dead;
        case IBV_WC_RESP_TIMEOUT_ERR: return Code::timeout;
        case IBV_WC_REM_ACCESS_ERR: return Code::range;
        default: return Code::system;
    }
}

const char* hint_for(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return "the peer's port did not acknowledge in time: has the process or host gone, is a cable or switch "
                   "down, does RoCE's traffic class match the network? NPUSHMEM_IB_TIMEOUT and NPUSHMEM_IB_RETRY_COUNT "
                   "say how long it is tried";
        case IBV_WC_REM_ACCESS_ERR:
            return "the peer's key does not allow it: its memory was deregistered or freed meanwhile";
        case IBV_WC_REM_INV_REQ_ERR:
        case IBV_WC_REM_OP_ERR: return "the peer's port cannot carry it out; the kernel's log there may say more";
        case IBV_WC_LOC_PROT_ERR: return "memory of this PE is not registered (any more)";
        case IBV_WC_WR_FLUSH_ERR: return "the queue pair was stopped by an earlier error or by its owner";
        default: return "";
    }
}

}  // namespace npushmem::verbs
