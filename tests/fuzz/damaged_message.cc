#include "tests/fuzz/damaged_message.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "google/protobuf/reflection.h"
#include "tests/fuzz/fuzz_cases.h"

namespace mgc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field of some message that holds something.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;

  const Reflection& reflection() const { return *message->GetReflection(); }
  int size() const { return field->is_repeated() ? reflection().FieldSize(*message, field) : 1; }
  bool holds_messages() const { return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }
  Message* Part(int i) const {
    return field->is_repeated() ? reflection().MutableRepeatedMessage(message, field, i)
                                : reflection().MutableMessage(message, field);
  }
};

using Names = std::set<std::string>;

std::vector<Place> FieldsOf(Message* message, const Names& kept) {
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  std::vector<Place> places;
  for (const FieldDescriptor* field : fields) {
    if (kept.count(field->name()) == 0) places.push_back({message, field});
  }
  return places;
}

void FindPlaces(Message* message, const Names& kept, std::vector<Place>* places) {
  for (const Place& place : FieldsOf(message, kept)) {
    places->push_back(place);
    for (int i = 0; place.holds_messages() && i < place.size(); ++i) {
      FindPlaces(place.Part(i), kept, places);
    }
  }
}

// On the way down every field is as likely as its neighbours, however many entries they have.
Place WalkDown(Message* message, const Names& kept, std::mt19937* random) {
  while (true) {
    const std::vector<Place> places = FieldsOf(message, kept);
    if (places.empty()) return {};
    const Place place = places[Below(random, places.size())];
    if (!place.holds_messages() || Below(random, 5) == 0) return place;
    message = place.Part(static_cast<int>(Below(random, static_cast<size_t>(place.size()))));
  }
}

template <class T>
T OtherNumber(T number, std::mt19937* random) {
  static constexpr int64_t kNumbers[] = {0,
                                         1,
                                         2,
                                         3,
                                         64,
                                         -1,
                                         255,
                                         4096,
                                         1 << 20,
                                         std::numeric_limits<int32_t>::max(),
                                         int64_t{1} << 40};
  const T step = static_cast<T>(1 + Below(random, 2) * 63);
  switch (Below(random, 5)) {
    case 0:
      return static_cast<T>(number + step);
    case 1:
      return static_cast<T>(number - step);
    case 2:
      return static_cast<T>(number + number);
    case 3:
      return static_cast<T>(number / 2);
    default:
      return static_cast<T>(kNumbers[Below(random, std::size(kNumbers))]);
  }
}

template <class T>
void ChangeEntry(const Place& place, std::mt19937* random) {
  auto list = place.reflection().GetMutableRepeatedFieldRef<T>(place.message, place.field);
  const int at = static_cast<int>(Below(random, static_cast<size_t>(list.size())));
  list.Set(at, OtherNumber<T>(list.Get(at), random));
}

void ChangeNumber(const Place& place, std::mt19937* random) {
  const Reflection& reflection = place.reflection();
  Message* const message = place.message;
  const FieldDescriptor* const field = place.field;
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (list) return ChangeEntry<int32_t>(place, random);
      return reflection.SetInt32(message, field,
                                 OtherNumber(reflection.GetInt32(*message, field), random));
    case FieldDescriptor::CPPTYPE_INT64:
      if (list) return ChangeEntry<int64_t>(place, random);
      return reflection.SetInt64(message, field,
                                 OtherNumber(reflection.GetInt64(*message, field), random));
    case FieldDescriptor::CPPTYPE_UINT32:
      if (list) return ChangeEntry<uint32_t>(place, random);
      return reflection.SetUInt32(message, field,
                                  OtherNumber(reflection.GetUInt32(*message, field), random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (list) return ChangeEntry<double>(place, random);
      return reflection.SetDouble(message, field,
                                  OtherNumber(reflection.GetDouble(*message, field), random));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(message, field, !reflection.GetBool(*message, field));
    default:
      return;
  }
}

template <class T>
void Repeat(const Place& place, int at) {
  auto list = place.reflection().GetMutableRepeatedFieldRef<T>(place.message, place.field);
  list.Add(list.Get(at));
}

void RepeatEntry(const Place& place, int at) {
  switch (place.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Repeat<int32_t>(place, at);
    case FieldDescriptor::CPPTYPE_INT64:
      return Repeat<int64_t>(place, at);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Repeat<uint32_t>(place, at);
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const Message& from = place.reflection().GetRepeatedMessage(*place.message, place.field, at);
      place.reflection().AddMessage(place.message, place.field)->CopyFrom(from);
      return;
    }
    default:
      return;
  }
}

// Entries are swapped, taken out, or doubled where they stand.
void ChangeList(const Place& place, std::mt19937* random) {
  const Reflection& reflection = place.reflection();
  const size_t size = static_cast<size_t>(place.size());
  const int at = static_cast<int>(Below(random, size));
  const auto swap = [&](int a, int b) {
    reflection.SwapElements(place.message, place.field, a, b);
  };
  switch (Below(random, 3)) {
    case 0:
      return swap(at, static_cast<int>(Below(random, size)));
    case 1:
      for (int i = at; i + 1 < place.size(); ++i) swap(i, i + 1);
      return reflection.RemoveLast(place.message, place.field);
    default:
      RepeatEntry(place, at);
      for (int i = place.size() - 1; i > at; --i) swap(i, i - 1);
  }
}

// Puts what another field of the same kind holds into this one.
void CopyFromAnother(Message* whole, const Names& kept, const Place& place, std::mt19937* random) {
  std::vector<Place> all;
  FindPlaces(whole, kept, &all);
  std::vector<Place> same;
  for (const Place& other : all) {
    if (other.field == place.field) same.push_back(other);
  }
  const Place& from = same[Below(random, same.size())];
  if (place.holds_messages()) {
    const std::string bytes =
        from.Part(static_cast<int>(Below(random, static_cast<size_t>(from.size()))))
            ->SerializeAsString();
    place.Part(static_cast<int>(Below(random, static_cast<size_t>(place.size()))))
        ->ParseFromString(bytes);
  } else if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
             !place.field->is_repeated()) {
    place.reflection().SetString(place.message, place.field,
                                 from.reflection().GetString(*from.message, from.field));
  } else {
    ChangeNumber(place, random);
  }
}

}  // namespace

void Damage(Message* message, const Names& kept, std::mt19937* random) {
  Place place;
  if (Below(random, 2) == 0) {
    place = WalkDown(message, kept, random);
  } else {
    std::vector<Place> places;
    FindPlaces(message, kept, &places);
    if (!places.empty()) place = places[Below(random, places.size())];
  }
  if (place.message == nullptr) return;
  if (Below(random, 4) == 0) return CopyFromAnother(message, kept, place, random);
  if (place.field->is_repeated() && Below(random, 2) == 0) return ChangeList(place, random);
  if (place.holds_messages() || place.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return CopyFromAnother(message, kept, place, random);
  }
  ChangeNumber(place, random);
}

}  // namespace mgc
