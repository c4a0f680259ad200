// SPDX-License-Identifier: BSD-3-Clause
// The 128 bytes that the ranks of a job share: the address of the rendezvous service, the secret of the job, and memory
// of the service for ranks that all run on its host.
//
//   0  magic "NPUSHUID"     8  u16 format version    10  u16+u16 zero
//  16  address (24 bytes)  40  job nonce (16)        56  secret (32)
//  88  memory: process, descriptor (4 bytes each), device, inode (8 each); zero: none
// 112  checksum (16) of the bytes before it: it detects damage, and is not a signature.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "bootstrap/rendezvous/authentication.hpp"
#include "core/base/address.hpp"
#include "core/base/shared_segment.hpp"
#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

using UniqueIdBytes = std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>;

struct UniqueId {
    Address service;
    Credentials credentials;
    SegmentHandle memory;  // see JobMemory; `bytes` is 0

    // Creates new credentials for a service at `service`.
    static Result<UniqueId> make(const Address& service);
    // The same strings give the same credentials. They are only as strong as `password`: if it is empty, anybody who
    // knows or guesses the session string can join.
    static UniqueId from_session(const Address& service, const std::string& session, const std::string& password);

    [[nodiscard]] UniqueIdBytes encode() const;
    static Result<UniqueId> decode(std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> bytes);
    static Result<UniqueId> decode_hex(const std::string& digits);
};

}  // namespace npushmem::rendezvous
