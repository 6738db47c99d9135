// Damages protocol buffers field by field, so that what comes out is still a message.

#ifndef MGC_TESTS_FUZZ_DAMAGED_MESSAGE_H_
#define MGC_TESTS_FUZZ_DAMAGED_MESSAGE_H_

#include <random>
#include <set>
#include <string>

#include "google/protobuf/message.h"

namespace mgc {

// Changes one thing somewhere inside of `message`: a number becomes another one, near, huge or one
// that stands elsewhere; entries of a list are swapped, repeated or taken out; a text becomes
// another one of the same field; a part takes the place of another of its kind. Fields of the names
// in `kept` stay as they are.
void Damage(google::protobuf::Message* message, const std::set<std::string>& kept,
            std::mt19937* random);

}  // namespace mgc

#endif  // MGC_TESTS_FUZZ_DAMAGED_MESSAGE_H_
