// Where the cells of an exchange lie (runtime/comm/cells.h): plain numbers and constexpr functions,
// so that device code has its cells from here as well (runtime/cuda/exchange).

#ifndef MGC_RUNTIME_COMM_CELL_GEOMETRY_H_
#define MGC_RUNTIME_COMM_CELL_GEOMETRY_H_

#include <algorithm>
#include <cstdint>

namespace mgc {

// Members by position in the group; places in elements.
struct Cell {
  int64_t from_begin = 0, from_end = 0;
  int64_t to_begin = 0, to_end = 0;
  int64_t in = 0;     // where it begins in the tile of each member it comes from
  int64_t out = 0;    // and of each it goes to
  int64_t count = 0;  // elements; 0 where a piece lies outside of the whole
  int64_t zeros = 0;  // elements behind them in the tiles it goes to, which become zero
};

// From whom to whom cells go.
enum class CellPattern : uint8_t {
  kNone,      // a rank's own affair
  kAllToAll,  // from one to one: rows of a piece that one member has and another gets
  kGather,    // from the one whose piece it is to all
  kScatter,   // from all to the one whose piece it is
  kReduce     // from all to all
};

// The sizes are those of Exchange (runtime/load/exchange.h), without `outer`, which is in `count`.
struct CellGeometry {
  int64_t whole = 0, room = 0, inner = 1;
  int64_t middle = 1, second_whole = 0, second_room = 0;
  int64_t cell = 1;   // elements of a cell at most
  int64_t run = 0;    // elements of a run before it is cut
  int64_t parts = 0;  // cells of a run
  int64_t count = 0;  // cells in all
  int32_t members = 0;
  CellPattern pattern = CellPattern::kNone;
  bool second_is_minor = true;

  // Counts the cells of `runs` runs, when everything else is there.
  constexpr void Cut(int64_t runs) {
    parts = (run + cell - 1) / cell;
    count = runs * parts;
  }

  // `piece`: by member, as in Exchange; anything with [].
  template <class Pieces>
  constexpr Cell At(int64_t index, const Pieces& piece) const {
    if (pattern == CellPattern::kAllToAll) return RowAt(index, piece);
    if (pattern != CellPattern::kReduce) return PieceAt(index, piece);
    Cell at;
    at.from_end = at.to_end = members;
    at.in = at.out = index * cell;
    at.count = std::min(cell, whole - at.in);
    return at;
  }

 private:
  // The digits of a number in a system of several bases, the last one first.
  struct Digits {
    int64_t rest;
    constexpr int64_t Take(int64_t base) {
      const int64_t digit = rest % base;
      rest /= base;
      return digit;
    }
  };

  // A part of a member's piece, which is cut from the whole that others hold.
  template <class Pieces>
  constexpr Cell PieceAt(int64_t index, const Pieces& piece) const {
    Digits digits{index};
    const int64_t at = digits.Take(parts) * cell;
    const int64_t member = digits.Take(members);
    const int64_t outer = digits.rest;
    const int64_t piece_begin = static_cast<int64_t>(piece[member]) * run;
    const int64_t in_piece = outer * run + at;
    const int64_t in_whole = outer * whole * inner + piece_begin + at;
    const int64_t space = std::min(cell, run - at);
    Cell made;
    made.count = Between(whole * inner - piece_begin - at, space);
    made.from_end = made.to_end = members;
    if (pattern == CellPattern::kGather) {
      made.from_begin = member;
      made.from_end = member + 1;
      made.in = in_piece;
      made.out = in_whole;
    } else {
      made.to_begin = member;
      made.to_end = member + 1;
      made.in = in_whole;
      made.out = in_piece;
      made.zeros = space - made.count;
    }
    return made;
  }

  // Elements [outer, i, middle, j, *] of a tile [outer, dim, middle, second, inner], the two dims
  // in either order: `i` counts in the piece that `from` holds, `j` in the one that `to` receives.
  template <class Pieces>
  constexpr Cell RowAt(int64_t index, const Pieces& piece) const {
    Digits digits{index};
    const int64_t at = digits.Take(parts) * cell;
    const int64_t mid = digits.Take(middle);
    const int64_t row = digits.Take(second_is_minor ? room : second_room);
    Cell made;
    made.from_begin = digits.Take(members);
    made.to_begin = digits.Take(members);
    made.from_end = made.from_begin + 1;
    made.to_end = made.to_begin + 1;
    const int64_t outer = digits.rest;
    const int64_t first = static_cast<int64_t>(piece[made.from_begin]) * room;
    const int64_t second = static_cast<int64_t>(piece[made.to_begin]) * second_room;
    const int64_t space = std::min(cell, run - at);
    if (second_is_minor) {
      if (first + row >= whole) return made;
      made.in = ((outer * room + row) * middle + mid) * second_whole + second;
      made.out = ((outer * whole + first + row) * middle + mid) * second_room;
      made.count = Real(second_whole - second, at, space);
      made.zeros = space - made.count;
    } else {
      made.in = ((outer * second_whole + second + row) * middle + mid) * room;
      made.out = ((outer * second_room + row) * middle + mid) * whole + first;
      const int64_t real = Real(whole - first, at, space);
      // A row beyond the second dim's end is zero in the tile that gets it.
      (second + row < second_whole ? made.count : made.zeros) = real;
    }
    made.in = made.in * inner + at;
    made.out = made.out * inner + at;
    return made;
  }

  // How many of the `space` elements of a run behind `at` are real, where `size` of its dim are.
  constexpr int64_t Real(int64_t size, int64_t at, int64_t space) const {
    return Between(Between(size, run) * inner - at, space);
  }
  static constexpr int64_t Between(int64_t x, int64_t most) {
    return std::min(std::max<int64_t>(x, 0), most);
  }
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_CELL_GEOMETRY_H_
