#!/usr/bin/env python3
"""Training steps of a GPT-2 by PyTorch on the CPU, for mgc-bench to time beside its own.

Writes `ready`; then, for each line of standard input, does one step and writes its seconds, those of
all threads, and the most bytes that a process has had resident.
The model, its sizes, the optimizer and clipping are those that mgc-bench trains; bf16 is
torch.autocast's. Weights are random and so is the text: only time is looked at.
Layouts of two ranks are two processes, which share the threads: DistributedDataParallel, tensor
parallelism by DTensor, a pipeline by torch.distributed.pipelining. `sums` trains nothing: its step
is one all-reduce of --elements numbers.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, loss_parallel,
                                               parallelize_module)
from torch.nn import functional

RANKS = 2


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        hidden = args.hidden
        self.head_size = hidden // args.heads
        self.dropout = args.dropout
        self.attention_norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, seq, _ = x.shape
        # Head by head, so that a share of the columns is a share of the heads.
        qkv = self.qkv(self.attention_norm(x)).view(batch, seq, -1, 3, self.head_size)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(3))
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout,
                                                        is_causal=True)
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, seq, -1))
        x = x + functional.dropout(mixed, self.dropout)
        inner = functional.gelu(self.up(self.mlp_norm(x)), approximate="tanh")
        return x + functional.dropout(self.down(inner), self.dropout)


class Gpt(nn.Module):
    """The layers [first, end) of a model: the first begin with the embedding, the last end with logits."""

    def __init__(self, args, first, end):
        super().__init__()
        self.dropout = args.dropout
        self.begins = first == 0
        self.words = nn.Embedding(args.vocab, args.hidden)
        if self.begins:
            self.positions = nn.Embedding(args.seq, args.hidden)
        self.blocks = nn.ModuleList(Block(args) for _ in range(first, end))
        self.norm = nn.LayerNorm(args.hidden) if end == args.layers else None

    def forward(self, x):
        if self.begins:
            x = functional.dropout(self.words(x) + self.positions.weight, self.dropout)
        for block in self.blocks:
            x = block(x)
        if self.norm is None:
            return x
        table = self.words.weight
        x = self.norm(x)
        if isinstance(table, DTensor):
            x = DTensor.from_local(x, table.device_mesh, [Replicate()])
        return functional.linear(x, table)


def loss_of(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def cut_tensors(model):
    """Megatron's cuts by DTensor: columns, then rows; the table by words."""
    mesh = init_device_mesh("cpu", (RANKS,))
    plan = {"words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Replicate())}
    for i in range(len(model.blocks)):
        for name in ("qkv", "up"):
            plan[f"blocks.{i}.{name}"] = ColwiseParallel()
        for name in ("out", "down"):
            plan[f"blocks.{i}.{name}"] = RowwiseParallel()
    return parallelize_module(model, mesh, plan)


class Training:
    def __init__(self, args, rank):
        torch.manual_seed(1)
        self.args, self.rank = args, rank
        first, end = 0, args.layers
        if args.layout == "pp2":
            first, end = ((0, args.first_layers), (args.first_layers, end))[rank]
        samples = args.batch // RANKS if args.layout == "dp2" else args.batch
        text = torch.randint(args.vocab, (samples, args.seq + 1))
        self.tokens, self.targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
        self.model = self.step_model = Gpt(args, first, end)
        if args.layout == "tp2":
            cut_tensors(self.model)
        if args.layout == "dp2":
            self.step_model = nn.parallel.DistributedDataParallel(self.model)
        if args.layout == "pp2":
            stage = PipelineStage(self.model, rank, RANKS, torch.device("cpu"))
            self.schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=loss_of)
        elif args.compile:
            self.step_model = torch.compile(self.step_model)
        cut, whole = [], []  # which neither clipping nor the optimizer takes together
        for parameter in self.model.parameters():
            (cut if isinstance(parameter, DTensor) else whole).append(parameter)
        self.groups = [group for group in (cut, whole) if group]
        self.optimizer = torch.optim.AdamW([{"params": group} for group in self.groups], lr=1e-4,
                                           fused=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.args.dtype == "bf16"):
            if self.args.layout == "pp2":
                self.pipeline()
            else:
                self.one_batch()
        for group in self.groups:
            nn.utils.clip_grad_norm_(group, 1.0)
        self.optimizer.step()

    def one_batch(self):
        cut = loss_parallel() if self.args.layout == "tp2" else contextlib.nullcontext()
        parts = self.args.micro_batches
        with cut:
            for tokens, targets in zip(self.tokens.chunk(parts), self.targets.chunk(parts)):
                (loss_of(self.step_model(tokens), targets) / parts).backward()

    def pipeline(self):
        if self.rank == 0:
            self.schedule.step(self.tokens)
        else:
            self.schedule.step(target=self.targets)
        dist.all_reduce(self.model.words.weight.grad)  # the table is in both


class Sums:
    def __init__(self, args):
        dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
        self.numbers = torch.zeros(args.elements, dtype=dtype)

    def step(self):
        dist.all_reduce(self.numbers)


def most_resident():
    """Bytes. getrusage would also count what the program had that this one was forked from."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def measured(step):
    begin, cpu = time.perf_counter(), time.process_time()
    step()
    if dist.is_initialized():
        dist.barrier()
    return [time.perf_counter() - begin, time.process_time() - cpu, most_resident()]


def steps_of(args, rank, store):
    """A function that does a step on this rank and returns what `measured` does."""
    ranks = 1 if args.layout == "one" else RANKS
    torch.set_num_threads(max(1, args.threads // ranks))
    if ranks > 1:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    trained = Sums(args) if args.layout == "sums" else Training(args, rank)
    return lambda: measured(trained.step)


def follow(args, store):
    """Rank 1: a step whenever rank 0 does one."""
    step = steps_of(args, 1, store)
    go = torch.ones(1)
    while True:
        dist.broadcast(go, 0)
        if not go.item():
            break
        dist.gather(torch.tensor(step(), dtype=torch.float64), dst=0)
    dist.destroy_process_group()


def lead(args, store):
    step = steps_of(args, 0, store)
    of_ranks = [torch.zeros(3, dtype=torch.float64) for _ in range(RANKS)]

    def on_all():
        dist.broadcast(torch.ones(1), 0)
        dist.gather(torch.tensor(step(), dtype=torch.float64), of_ranks, dst=0)
        seconds, cpu, resident = torch.stack(of_ranks).unbind(1)
        return [seconds.max().item(), cpu.sum().item(), int(resident.max().item())]

    serve(on_all)
    dist.broadcast(torch.zeros(1), 0)
    dist.destroy_process_group()


def serve(step):
    print("ready", flush=True)
    for _ in sys.stdin:
        print(*step(), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50257),
                        ("batch", 4), ("micro-batches", 1), ("seq", 256), ("threads", 2),
                        ("first-layers", 6), ("elements", 1 << 24)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--layout", choices=["one", "dp2", "tp2", "pp2", "sums"], default="one")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    if args.layout == "one":
        serve(steps_of(args, 0, ""))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        other = multiprocessing.get_context("spawn").Process(target=follow, args=(args, store),
                                                             daemon=True)
        other.start()
        lead(args, store)
        other.join()


if __name__ == "__main__":
    main()
