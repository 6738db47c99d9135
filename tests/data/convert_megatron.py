#!/usr/bin/env python3
"""Makes the compact test vectors of this folder that come from Megatron-LM's own functions.

Usage: convert_megatron.py VECTORS OUT, where VECTORS holds rank_groups.json,
pipeline_schedules.json, pipeline_bubbles.json, vocab_padding.json, layer_placement.json,
layer_tests.json and pipeline_layout.json. Formats: README.md.
"""
import json
import os
import sys

# Kinds of `mgc-plan groups` in its order, by the names of the source.
GROUP_KINDS = ["dense:" + kind for kind in ("tp", "cp", "dp", "pp", "tp-cp", "tp-dp", "tp-pp",
                                            "dp-cp", "tp-dp-cp")] + ["embd", "pos_embd"]
LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L", "invalid_type": "x"}


def rank_groups(cases):
    for c in cases:
        hashes = "".join(c["sha256"][kind][:6] for kind in GROUP_KINDS)
        yield (c["world"], c["tp"], c["cp"], c["ep"], c["etp"], c["pp"], c["order"],
               "agree" if c["pp_groups_agree"] else "differ", hashes)


def order_letters(order):
    return "".join(chr(ord("a" if c > 0 else "A") + abs(c) - 1) for c in order)


def pipeline_schedules(cases):
    for c in cases:
        head = (c["pp"], c["vpp"] or 0, c["M"], c["N"])
        if c["reject"]:
            yield head + ("reject",)
        else:
            yield head + tuple(order_letters(rank["order"]) for rank in c["ranks"])


def pipeline_bubbles(cases):
    for c in cases:
        makespan = c["makespan"] * (c["vpp"] or 1)
        assert abs(makespan - round(makespan)) < 1e-6  # thirds were added as floats
        yield (c["pp"], c["vpp"] or 0, c["M"], c["N"], round(makespan),
               ",".join(map(str, c["peak_live_chunks"])))


def counts_by_stage(placement):
    """Layer counts in stage order; asserts that layers ascend along the stages."""
    chunks = [placement[rank][v] for v in range(len(placement[0])) for rank in range(len(placement))]
    return chunks, ",".join(str(len(chunk)) for chunk in chunks)


def layer_placement(cases, tests):
    for c in cases:
        chunks, counts = counts_by_stage(c["placement"])
        if c["covers_all_layers"]:
            assert sum(chunks, []) == list(range(c["num_layers"]))
        yield ("counts", c["num_layers"], c["pp"], c["vpp"] or 0, c["first"] or 0, c["last"] or 0,
               int(c["account_embedding"]), int(c["account_loss"]),
               counts if c["covers_all_layers"] else "reject")
    builder = "TestPipelineParallelTransformerBlock.test_layer_builder@L502"
    for layers, pp, vp, embedding, loss, first, last, error in tests[builder]["cases"]:
        yield ("counts", layers, pp, vp or 0, first or 0, last or 0, int(embedding), int(loss),
               "reject" if error else "accept")


def letters(stages):
    return "|".join("".join(LETTERS[layer] for layer in stage) for stage in stages)


def layouts(cases, tests):
    for c in cases:
        counts = counts_by_stage(c["layer_ids"])[1] if c["accept"] else "reject"
        yield ("layout", c["layout"], c["num_layers"], c["mtp_num_layers"] or 0, c["pp"], 0, counts)
    builder = "TestPipelineParallelLayoutTransformerBlock.test_layer_builder@L776"
    for layers, pp, vp, stages, error in tests[builder]["cases"]:
        if any(isinstance(layer, list) for stage in stages for layer in stage):
            continue  # lists nested by rank, which a string cannot say
        yield ("layout", letters(stages), layers, 0, pp, vp, "reject" if error else "accept")
    parsing = "TestPipelineParallelLayoutTransformerBlock.test_parsing_layout_from_str@L919"
    for _, text, stages in tests[parsing]["cases"]:
        yield ("parse", text, letters(stages))


def main():
    vectors, out = sys.argv[1:]

    def load(name):
        with open(os.path.join(vectors, name + ".json")) as file:
            data = json.load(file)
        return data["cases"] if "cases" in data else data

    def save(name, rows):
        with open(os.path.join(out, name + ".txt"), "w") as file:
            for row in rows:
                file.write(" ".join(map(str, row)) + "\n")

    tests = load("layer_tests")
    save("rank_groups", rank_groups(load("rank_groups")))
    save("pipeline_schedules", pipeline_schedules(load("pipeline_schedules")))
    save("pipeline_bubbles", pipeline_bubbles(load("pipeline_bubbles")))
    save("vocab_padding", ((c["vocab"], c["divisible_by"], c["tp"], c["padded"])
                           for c in load("vocab_padding")))
    save("micro_batches", ((c["gbs"], c["mbs"], c["dp"], "decrease" if c["decrease"] else "keep",
                            *((c["num_microbatches"], c["running_gbs"])
                              if "num_microbatches" in c else ("reject",)))
                           for c in load("microbatches")))
    save("layer_placement", list(layer_placement(load("layer_placement"), tests)) +
         list(layouts(load("pipeline_layout"), tests)))


if __name__ == "__main__":
    main()
