// Where the elements of a model's parameters lie in the tensors of others' files.
//
// A family's files name, transpose, fuse and split what the model keeps as parameters of their own.
// All of that is one kind of thing: a parameter's elements in their order, at places in a tensor of
// a file that a counter with a stride for each digit gives. It reads in both directions, so that
// one map serves import and export.

#ifndef MGC_GRAPH_WEIGHTS_WEIGHT_MAP_H_
#define MGC_GRAPH_WEIGHTS_WEIGHT_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mgc {

// Elements of a tensor, counted row by row. Number i of them, written in digits of these sizes of
// which the last one runs fastest, is at `begin` plus the sum of each digit times its stride. No
// two are at one place.
struct StridedView {
  struct Digit {
    int64_t size = 1;
    int64_t stride = 1;
  };
  int64_t begin = 0;
  std::vector<Digit> digits;
};

// A parameter as a part of a tensor in a file.
struct ParameterPart {
  std::string parameter;  // docs/parameters.md
  std::vector<int64_t> shape;
  StridedView view;
  float added = 0;  // to what the file has
};

struct FileTensor {
  std::string name;  // as transformers writes it
  std::vector<int64_t> shape;
  std::vector<ParameterPart> parts;  // which cover it, each element once
};

// A tensor that files may have and the model does not.
struct IgnoredTensors {
  std::string ending;  // of its name
  std::string reason;
};

// Other names of the same: endings that old files have.
struct OldEnding {
  std::string old;
  std::string now;
};

struct WeightMap {
  std::vector<FileTensor> tensors;  // every parameter is a part of one, once
  std::string prefix;               // of names, which files may leave out
  std::vector<IgnoredTensors> ignored;
  std::vector<OldEnding> old_endings;
};

}  // namespace mgc

#endif  // MGC_GRAPH_WEIGHTS_WEIGHT_MAP_H_
