#include "tests/published/rows.h"

#include <initializer_list>

namespace mgc {
namespace {

constexpr double kTera = 1e12;
constexpr int64_t kVocab = 51200;  // of Megatron-LM's models
constexpr int64_t kLlamaVocab = 128256;
constexpr int64_t kLlamaFfn = 53248, kLlamaKvHeads = 8;

struct Gpt {
  const char* name;
  int64_t layers, hidden, heads;
};
constexpr Gpt k22B = {"22B", 48, 6144, 64}, k175B = {"175B", 96, 12288, 96},
              k530B = {"530B", 105, 20480, 128}, k1T = {"1T", 128, 25600, 160};

PublishedRow RowOf(const char* paper, const Gpt& gpt) {
  PublishedRow row;
  row.paper = paper;
  row.model = gpt.name;
  row.layers = gpt.layers;
  row.hidden = gpt.hidden;
  row.heads = gpt.heads;
  return row;
}

// Table 1; micro-batches and chunks from the script that ran it, run_table_1.sh of Megatron-LM's
// academic_paper_scripts.
void AddSc21(std::vector<PublishedRow>* rows) {
  struct Line {
    Gpt gpt;
    int64_t tp, pp, chunks, dp, micro_batch, global_batch;
    double tflops;
  };
  const Line lines[] = {{{"1.7B", 24, 2304, 24}, 1, 1, 1, 32, 16, 512, 137},
                        {{"3.6B", 30, 3072, 32}, 2, 1, 1, 32, 16, 512, 138},
                        {{"7.5B", 36, 4096, 32}, 4, 1, 1, 32, 16, 512, 142},
                        {{"18.4B", 40, 6144, 48}, 8, 1, 1, 32, 8, 1024, 135},
                        {{"39.1B", 48, 8192, 64}, 8, 2, 1, 32, 4, 1536, 138},
                        {{"76.1B", 60, 10240, 80}, 8, 4, 3, 32, 2, 1792, 140},
                        {{"145.6B", 80, 12288, 96}, 8, 8, 2, 24, 2, 2304, 148},
                        {{"310.1B", 96, 16384, 128}, 8, 16, 2, 15, 1, 2160, 155},
                        {{"529.6B", 105, 20480, 128}, 8, 35, 3, 9, 1, 2520, 163},
                        {{"1008B", 128, 25600, 160}, 8, 64, 1, 6, 1, 3072, 163}};
  for (const Line& line : lines) {
    PublishedRow row = RowOf(kSc21, line.gpt);
    row.tp = line.tp;
    row.pp = line.pp;
    row.dp = line.dp;
    row.chunks = {line.chunks};
    row.micro_batch = line.micro_batch;
    row.global_batch = line.global_batch;
    row.tflops = line.tflops;
    rows->push_back(row);
  }
}

// Table 2: chunks are not said.
void AddSc21Zero(std::vector<PublishedRow>* rows) {
  struct Line {
    Gpt gpt;
    int64_t pp, dp, global_batch;
    double tflops;
  };
  const Line lines[] = {{k175B, 12, 4, 1536, 153},  {k175B, 12, 8, 1536, 149},
                        {k175B, 12, 16, 1536, 141}, {k530B, 35, 2, 2240, 171},
                        {k530B, 35, 4, 2240, 167},  {k530B, 35, 8, 2240, 159}};
  for (const Line& line : lines) {
    PublishedRow row = RowOf(kSc21Zero, line.gpt);
    row.tp = 8;
    row.pp = line.pp;
    row.dp = line.dp;
    row.chunks = {1, line.pp == 12 ? 4 : 3};
    row.global_batch = line.global_batch;
    row.tflops = line.tflops;
    rows->push_back(row);
  }
}

// Table 5, with tables 3 and 4 for the layouts; then 530B on 2240 GPUs.
void AddSequence(std::vector<PublishedRow>* rows) {
  struct Line {
    Gpt gpt;
    int64_t pp, chunks, dp, micro_batch, global_batch;
    double full_seconds, selective_seconds, state_gib;
  };
  const Line lines[] = {{k22B, 1, 1, 1, 4, 4, 1.42, 1.10, 45.5625},
                        {k175B, 8, 3, 1, 1, 64, 18.13, 13.75, 45.5625},
                        {k530B, 35, 3, 1, 1, 280, 49.05, 37.83, 31.640625},
                        {k1T, 64, 1, 1, 1, 512, 94.42, 71.49, 32.958984375},
                        {k530B, 35, 3, 8, 1, 2240, 0, 39.15, 0}};
  for (const Line& line : lines) {
    PublishedRow row = RowOf(kSequence, line.gpt);
    row.formula = FlopsFormula::kModel;
    row.overlap = true;
    row.tp = 8;
    row.pp = line.pp;
    row.dp = line.dp;
    row.chunks = {line.chunks};
    row.micro_batch = line.micro_batch;
    row.global_batch = line.global_batch;
    row.state_gib = line.state_gib;
    row.step_seconds = line.full_seconds;
    if (line.full_seconds > 0) rows->push_back(row);
    row.step_seconds = line.selective_seconds;
    row.sequence_parallel = true;
    row.recompute = RecomputeKind::kSelective;
    rows->push_back(row);
  }
}

// 405B: the pipeline is interleaved, but neither chunks nor micro-batches are said. The third
// line's dp is 8 (the first print's 4 is not 16,384 GPUs).
void AddLlama3(std::vector<PublishedRow>* rows) {
  struct Line {
    int64_t cp, dp, seq, samples_of_rank;
    double tflops;
  };
  for (const Line& line :
       {Line{1, 64, 8192, 32, 430}, Line{1, 128, 8192, 16, 400}, Line{16, 8, 131072, 16, 380}}) {
    PublishedRow row = RowOf(kLlama3, {"405B", 126, 16384, 128});
    row.formula = FlopsFormula::kCausal;
    row.overlap = true;
    row.machine = "h100x8";
    row.seq = line.seq;
    row.tp = 8;
    row.pp = 16;
    row.cp = line.cp;
    row.dp = line.dp;
    row.chunks = {2, 8};
    row.global_batch = line.dp * line.samples_of_rank;
    row.sequence_parallel = true;
    row.recompute = RecomputeKind::kNone;
    row.tflops = line.tflops;
    rows->push_back(row);
  }
}

// Full recomputation, a pipeline of one chunk each.
void AddMtNlg(std::vector<PublishedRow>* rows) {
  struct Line {
    int64_t dp;
    double seconds;
  };
  for (const Line& line : {Line{8, 60.1}, Line{10, 50.2}, Line{12, 44.4}}) {
    PublishedRow row = RowOf(kMtNlg, k530B);
    row.tp = 8;
    row.pp = 35;
    row.dp = line.dp;
    row.global_batch = 1920;
    row.step_seconds = line.seconds;
    rows->push_back(row);
  }
}

// 6 for every token and weight of a product; a query and a key that are visible, half of the pairs,
// take 12 for each place of the depth.
double CausalFlops(const PublishedRow& row) {
  const double h = static_cast<double>(row.hidden), l = static_cast<double>(row.layers);
  const double s = static_cast<double>(row.seq), b = static_cast<double>(row.global_batch);
  const double kv = h * kLlamaKvHeads / static_cast<double>(row.heads);
  const double layer = 2 * h * h + 2 * h * kv + 3 * h * kLlamaFfn;
  return 6 * b * s * (l * layer + h * kLlamaVocab) + 12 * b * l * h * s * s / 2;
}

}  // namespace

std::vector<PublishedRow> PublishedRows() {
  std::vector<PublishedRow> rows;
  AddSc21(&rows);
  AddSc21Zero(&rows);
  AddSequence(&rows);
  AddLlama3(&rows);
  AddMtNlg(&rows);
  return rows;
}

double FlopsOfStep(const PublishedRow& row) {
  if (row.formula == FlopsFormula::kCausal) return CausalFlops(row);
  const double h = static_cast<double>(row.hidden), l = static_cast<double>(row.layers);
  const double s = static_cast<double>(row.seq), b = static_cast<double>(row.global_batch);
  const double layers = b * s * l * h * h * (1 + s / (6 * h));
  const double head = b * s * l * h * h * kVocab / (l * h);
  if (row.formula == FlopsFormula::kHardware) return 96 * (layers + head / 16);
  return 72 * (layers + head / 12);
}

double MeasuredTflops(const PublishedRow& row) {
  if (row.tflops > 0) return row.tflops;
  return FlopsOfStep(row) / row.step_seconds / static_cast<double>(row.gpus()) / kTera;
}

}  // namespace mgc
