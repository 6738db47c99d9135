#!/usr/bin/env python3
"""Training by mgc-run beside PyTorch on the same GPU; docs/gpu.md says how to read it.

  gpu_compare.py --data FILE [--model gpt2-124m] [--mgc 'FOLDER/run'] [--python python3] ...

Both sides train the same model in bf16 on the same samples, in turns, each turn a process of its own.
Prints the median step of each side, tokens a second, the share of the GPU's peak (MFU), peak memory
and the ratio of both, turn by turn; --json one object. MFU counts a model's flops as Megatron-LM does:
6 for each weight of a product and token, and causal attention, nothing that is computed again.
Needs no package: PyTorch is needed by --python alone.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

PAD_VOCAB = "128"  # rows of the table of words are a multiple of it, on both sides
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gpu.py")
SIZES = {  # layers, hidden, heads, tokens, words
    "gpt2-124m": (12, 768, 12, 1024, 50257),
    "gpt3-1.3b": (24, 2048, 16, 2048, 50257),
    "tiny": (2, 64, 2, 32, 257),
}


def flops_per_token(layers, hidden, vocab, seq):
    """Of a training step of a GPT whose inner layer has 4 x hidden: forward and twice as much backward,
    2 for each weight of a product, and in attention for half of all pairs, those that are visible."""
    weights = 12 * layers * hidden**2 + vocab * hidden
    return 6 * weights + 6 * layers * hidden * seq


def peak_of(plan):
    """Flops a second of products in bf16, from the text of any plan, which holds its machine."""
    found = re.search(r"^ *compute bf16 ([0-9.e+]+)", plan, re.MULTILINE)
    if not found:
        raise ValueError("the plan's machine has no rate of bf16")
    return float(found.group(1))


def side_of_mgc(text, warm_up, tokens):
    """What a run's JSON lines say, as torch_gpu.py says it."""
    steps = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    steps = [step for step in steps if "loss" in step]
    timed = [step["ms"] for step in steps[warm_up:]]
    if not timed:
        raise ValueError(f"mgc-run printed {len(steps)} steps, of which {warm_up} are warm-up")
    ms = statistics.median(timed)
    return {
        "ms": ms,
        "all_ms": timed,
        "tokens_per_second": 1000 * tokens / ms,
        "peak_bytes": steps[-1]["peak_bytes"],
        "predicted_ms": steps[-1]["predicted_ms"],
        "losses": [step["loss"] for step in steps],
    }


def summary(turns, flops, peak):
    """Of turns {side: what it says}: medians of each side, and how much faster mgc is than PyTorch."""
    result = {"turns": turns, "sides": {}}
    for name in turns[0]:
        sides = [turn[name] for turn in turns]
        speed = statistics.median(side["tokens_per_second"] for side in sides)
        result["sides"][name] = {
            "ms": statistics.median(side["ms"] for side in sides),
            "tokens_per_second": speed,
            "mfu": speed * flops / peak,
            "peak_bytes": max(side["peak_bytes"] for side in sides),
            "first_loss": sides[0]["losses"][0],
            "last_loss": sides[0]["losses"][-1],
        }
    ratios = [turn["mgc"]["tokens_per_second"] / turn["PyTorch"]["tokens_per_second"]
              for turn in turns]
    result["ratios"] = ratios
    result["ratio"] = statistics.median(ratios)
    result["predicted_ms"] = turns[0]["mgc"]["predicted_ms"]
    result["flops_per_token"] = flops
    return result


def text_of(title, result):
    lines = [title]
    for name, side in result["sides"].items():
        lines.append(f"  {name:8s} {side['ms']:10.2f} ms {side['tokens_per_second']:12.0f} tokens/s"
                     f" {100 * side['mfu']:6.2f} % of peak {side['peak_bytes'] / 2**30:7.2f} GiB"
                     f"  loss {side['first_loss']:.4f} to {side['last_loss']:.4f}")
    turns = ", ".join(f"{100 * ratio:.1f}" for ratio in result["ratios"])
    lines.append(f"  mgc: {100 * result['ratio']:.1f} % of PyTorch (turns {turns})")
    share = result["predicted_ms"] / result["sides"]["mgc"]["ms"]
    lines.append(f"  predicted {result['predicted_ms']:.2f} ms, {100 * share:.1f} % of mgc's step")
    return "\n".join(lines) + "\n"


def config_of(args):
    """A model for mgc-compile of the same sizes."""
    return {
        "model_type": "gpt2", "activation_function": "gelu_new",
        "n_layer": args.layers, "n_embd": args.hidden,
        "n_head": args.heads, "n_inner": 4 * args.hidden, "n_positions": args.seq,
        "vocab_size": args.vocab, "embd_pdrop": args.dropout, "resid_pdrop": args.dropout,
        "attn_pdrop": args.dropout, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
        "tie_word_embeddings": True, "seq_length": args.seq,
    }


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"gpu_compare.py: exit code {done.returncode} of {shlex.join(command)}")
    return done.stdout


def common_flags(args):
    return ["--micro-batch-size", str(args.micro_batch_size),
            "--global-batch-size", str(args.global_batch_size)]


def compile_plan(args, folder):
    config, plan = os.path.join(folder, "config.json"), os.path.join(folder, "plan")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(config_of(args), file)
    output_of(shlex.split(args.mgc) + ["mgc-compile", config, "--bf16", "--cluster", args.cluster,
                                       "--make-vocab-size-divisible-by", PAD_VOCAB,
                                       *common_flags(args), "-o", plan])
    return plan


def peak_of_machine(args, folder):
    plan = os.path.join(folder, "machine.mgc")
    output_of(shlex.split(args.mgc) + ["mgc-compile", "gpt2-tiny", "--no-verify", "--cluster",
                                       args.cluster, "-o", plan])
    with open(plan, encoding="utf-8") as file:
        return peak_of(file.read())


def run_mgc(args, plan):
    device = ["--device", args.device] if args.device != "cpu" else []
    command = shlex.split(args.mgc) + [
        "mgc-run", plan, *device, "--data", args.data, "--steps", str(args.steps), "--json",
        "--lr", str(args.lr), "--lr-decay-style", "constant"]
    return side_of_mgc(output_of(command), args.warm_up, args.global_batch_size * args.seq)


def run_peer(args):
    names = ("layers", "hidden", "heads", "seq", "vocab", "steps", "warm_up", "dropout", "lr",
             "device", "data")
    sizes = [word for name in names
             for word in ("--" + name.replace("_", "-"), str(getattr(args, name)))]
    command = shlex.split(args.python) + [PEER, *sizes, "--pad-vocab", PAD_VOCAB,
                                          *common_flags(args),
                                          *shlex.split(args.peer_flags)]
    return json.loads(output_of(command).splitlines()[-1])


def parse_args(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="tokens: u16 where it ends in .bin, else bytes")
    parser.add_argument("--model", choices=SIZES, default="gpt2-124m")
    for name, value in (("micro-batch-size", 8), ("global-batch-size", 8), ("steps", 25),
                        ("warm-up", 5), ("turns", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    for name, value in (("dropout", 0.0), ("lr", 1e-4)):
        parser.add_argument("--" + name, type=float, default=value)
    parser.add_argument("--mgc", default="", help="words before mgc-compile and mgc-run")
    parser.add_argument("--python", default="python3", help="words before torch_gpu.py")
    parser.add_argument("--peer-flags", default="", help="further flags of torch_gpu.py")
    parser.add_argument("--cluster", default="h100x8", help="the machine: --cluster of mgc-compile")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    args.layers, args.hidden, args.heads, args.seq, args.vocab = SIZES[args.model]
    args.data = os.path.abspath(args.data)
    if not os.path.exists(args.data):
        parser.error(f"--data {args.data} is not there")
    if args.turns < 1:
        parser.error(f"--turns {args.turns} is below 1")
    if not 1 <= args.warm_up < args.steps:
        parser.error(f"--warm-up {args.warm_up} is not from 1 to below --steps {args.steps}")
    return args


def main(words):
    args = parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        plan = compile_plan(args, folder)
        peak = peak_of_machine(args, folder)
        turns = [{"mgc": run_mgc(args, plan), "PyTorch": run_peer(args)} for _ in range(args.turns)]
    flops = flops_per_token(args.layers, args.hidden, args.vocab, args.seq)
    result = summary(turns, flops, peak)
    title = (f"{args.model}, bf16, {args.global_batch_size} x {args.seq} tokens, micro-batch "
             f"{args.micro_batch_size}, {turns[0]['PyTorch'].get('card', args.device)}")
    result["title"] = title
    sys.stdout.write(json.dumps(result) + "\n" if args.json else text_of(title, result))


if __name__ == "__main__":
    main(sys.argv[1:])
