#!/usr/bin/env python3
"""Trains a GPT-2 by PyTorch on a GPU, for tools/benchmarks/gpu_compare.py to hold beside mgc-run.

Prints one line of JSON: the median step, tokens a second, peak memory and every loss. Steps behind
--warm-up are timed by events of the device, and nothing is read from it between them; on the CPU,
which only tests use, by the clock. The model is torch_step.py's with mgc's first values, on the
samples that mgc-run takes; attention is scaled_dot_product_attention, the optimizer fused AdamW.

--precision autocast   parameters and their gradients f32, products in bf16 by torch.autocast
--precision master     parameters, activations and their gradients bf16; f32 masters are stepped by
                       gradients that are summed over micro-batches in f32
Either way the residual stream is bf16, as it is in mgc's --bf16. Rows of the table of words are a
multiple of --pad-vocab, which makes the head's products faster; losses leave them out.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpu_compare import SIZES
from torch_step import Gpt, most_resident

TYPES = {"u8": torch.uint8, "u16": torch.int16, "i32": torch.int32}
STD = 0.02


class Peer(Gpt):
    """From tokens and targets to their loss."""

    def __init__(self, args):
        self.vocab, self.stream = args.vocab, args.stream
        padded = argparse.Namespace(**vars(args))
        padded.vocab = -(-args.vocab // args.pad_vocab) * args.pad_vocab
        super().__init__(padded, 0, args.layers)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                last = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=STD / math.sqrt(2 * args.layers) if last else STD)
            elif name.endswith(".bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens, targets):
        x = (self.words(tokens) + self.positions.weight).to(self.stream)
        x = functional.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.words.weight)[..., :self.vocab]
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def groups_of(parameters, decay):
    """What decays and what does not, for the optimizer."""
    return [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": decay},
            {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0}]


class Training:
    def __init__(self, args):
        torch.manual_seed(1)
        self.args = args
        master = args.precision == "master"
        self.model = Peer(args).to(args.device)
        self.masters = self.parameters = list(self.model.parameters())
        if master:
            self.masters = [p.detach().clone() for p in self.parameters]
            self.model.bfloat16()
            self.parameters = list(self.model.parameters())
            for p in self.masters:
                p.grad = torch.zeros_like(p)
        self.master = master
        self.loss_of = torch.compile(self.model) if args.compile else self.model
        self.optimizer = torch.optim.AdamW(groups_of(self.masters, args.weight_decay), lr=args.lr,
                                           betas=(0.9, 0.999), eps=1e-8, fused=True)

    def micro_batch(self, tokens, targets, parts):
        narrow = contextlib.nullcontext()
        if self.args.precision == "autocast":
            narrow = torch.autocast(self.args.device, torch.bfloat16)
        with narrow:
            loss = self.loss_of(tokens, targets)
        (loss / parts).backward()
        if self.master:
            torch._foreach_add_([p.grad for p in self.masters], [p.grad for p in self.parameters])
            for p in self.parameters:
                p.grad = None
        return loss.detach()

    def step(self, tokens, targets):
        """The mean loss, on the device."""
        if self.master:
            torch._foreach_zero_([p.grad for p in self.masters])
        else:
            self.optimizer.zero_grad(set_to_none=True)
        parts = len(tokens) // self.args.micro_batch_size
        losses = [self.micro_batch(*batch, parts)
                  for batch in zip(tokens.chunk(parts), targets.chunk(parts))]
        nn.utils.clip_grad_norm_(self.masters, self.args.clip_grad)
        self.optimizer.step()
        if self.master:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        return torch.stack(losses).mean()


def tokens_of(path, token_type):
    """All tokens of a file, as mgc reads it: `.bin` is u16, anything else bytes."""
    if token_type is None:
        if path.endswith(".bin") and os.path.exists(path[:-len("bin")] + "idx"):
            sys.exit(f"torch_gpu.py: {path} is one of a pair; --token-type says what is in it")
        token_type = "u16" if path.endswith(".bin") else "u8"
    kept = TYPES[token_type]
    size = os.path.getsize(path) // kept.itemsize
    tokens = torch.from_file(path, size=size, dtype=kept)
    return tokens.int() & 0xFFFF if token_type == "u16" else tokens


def batches(args):
    """For each step tokens and targets, on the device: samples follow each other, and the first the
    last."""
    text = tokens_of(args.data, args.token_type)
    samples = (len(text) - 1) // args.seq
    if samples < 1:
        sys.exit(f"torch_gpu.py: {args.data} has {len(text)} tokens, a sample takes {args.seq + 1}")
    if int(text.max()) >= args.vocab:
        sys.exit(f"torch_gpu.py: {args.data} has token {int(text.max())}, not below --vocab {args.vocab}")
    for step in range(args.steps):
        first = [(step * args.global_batch_size + i) % samples * args.seq
                 for i in range(args.global_batch_size)]
        rows = torch.stack([text[at:at + args.seq + 1] for at in first]).long()
        rows = rows.pin_memory().to(args.device, non_blocking=True) if on_gpu(args) else rows
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def on_gpu(args):
    return args.device == "cuda"


def mark(args):
    """The moment at which the device has done all that it was given so far."""
    if not on_gpu(args):
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def milliseconds(args, marks):
    if on_gpu(args):
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return [1000 * (b - a) for a, b in zip(marks, marks[1:])]


def backend(args):
    if not on_gpu(args) or args.attention == "any":
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.CUDNN_ATTENTION if args.attention == "cudnn"
                       else SDPBackend.FLASH_ATTENTION)


def measured(args):
    training = Training(args)
    marks, losses = [], []
    with backend(args):
        for i, batch in enumerate(batches(args)):
            losses.append(training.step(*batch))
            if i + 1 >= args.warm_up:
                marks.append(mark(args))
    ms = milliseconds(args, marks)
    tokens = args.global_batch_size * args.seq
    step = statistics.median(ms)
    return {
        "torch": torch.__version__,
        "card": torch.cuda.get_device_name() if on_gpu(args) else "cpu",
        "precision": args.precision,
        "ms": step,
        "all_ms": ms,
        "tokens_per_second": 1000 * tokens / step,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu(args) else most_resident(),
        "losses": [loss.item() for loss in losses],
    }


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a file of tokens")
    parser.add_argument("--token-type", choices=TYPES, help="default: u16 of .bin, else u8")
    parser.add_argument("--model", choices=SIZES, default="gpt2-124m")
    for name in ("layers", "hidden", "heads", "seq", "vocab"):
        parser.add_argument("--" + name, type=int, help="default: the model's")
    for name, value in (("pad-vocab", 64), ("micro-batch-size", 8),
                        ("global-batch-size", 8), ("steps", 25), ("warm-up", 5)):
        parser.add_argument("--" + name, type=int, default=value)
    for name, value in (("dropout", 0.0), ("lr", 1e-4), ("weight-decay", 0.01),
                        ("clip-grad", 1.0)):
        parser.add_argument("--" + name, type=float, default=value)
    parser.add_argument("--precision", choices=["autocast", "master", "f32"], default="autocast")
    parser.add_argument("--attention", choices=["flash", "cudnn", "any"], default="flash")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    args = parser.parse_args()
    for name, value in zip(("layers", "hidden", "heads", "seq", "vocab"), SIZES[args.model]):
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.stream = torch.float32 if args.precision == "f32" else torch.bfloat16
    if args.global_batch_size % args.micro_batch_size:
        parser.error(f"--global-batch-size {args.global_batch_size} is no multiple of "
                     f"--micro-batch-size {args.micro_batch_size}")
    if not 1 <= args.warm_up < args.steps:
        parser.error(f"--warm-up {args.warm_up} is not from 1 to below --steps {args.steps}")
    return args


def main():
    args = parse_args()
    if on_gpu(args) and not torch.cuda.is_available():
        sys.exit("torch_gpu.py: PyTorch finds no GPU here; --device cpu is for tests")
    torch.set_float32_matmul_precision("high" if args.precision != "f32" else "highest")
    print(json.dumps(measured(args)), flush=True)


if __name__ == "__main__":
    main()
