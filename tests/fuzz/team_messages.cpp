// SPDX-License-Identifier: BSD-3-Clause
// Messages by which PEs form a team, as a peer may have written them into the mailbox.
#include <cstring>

#include "core/team/formation_protocol.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {

void team_messages(Input input) {
    Taker in(input);
    const int leader = in.byte();
    TeamMessage message;
    const Input words = in.bytes(sizeof message.words);
    std::memcpy(message.words.data(), words.data(), words.size());
    const auto refusal = FormationRefusal::parse(message.words, 1);
    const Status status = refusal.status(leader, 4);
    const bool without_code = refusal.reason == FormationRefusal::Reason::failed && refusal.details[0] == 0;
    require(without_code || !status.ok(), "a refusal is no failure");
    require_message(status);
    const auto again = FormationRefusal::parse(refusal.words(), 1);
    require(again.words() == refusal.words(), "a refusal changes by formatting and parsing");

    const FormationVote vote = FormationVote::parse(message);
    TeamMessage written;
    vote.add_to(written);
    require(written.count <= TeamMessage::max_words, "a vote exceeds a message");
    require(FormationVote::parse(written).free == vote.free, "a vote changes by formatting and parsing");
}

}  // namespace npushmem::fuzz
