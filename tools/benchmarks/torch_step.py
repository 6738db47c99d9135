#!/usr/bin/env python3
"""Training steps of a GPT-2 by PyTorch on the CPU, for mgc-bench to time beside its own.

Writes `ready`; then, for each line of standard input, does one step and writes its seconds, those of
all threads, and the most bytes that have been resident.
The model, its sizes, the optimizer and clipping are those that mgc-bench trains; bf16 is
torch.autocast's. Weights are random and so is the text: only time is looked at.
"""

import argparse
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, seq, 3, self.heads, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout,
                                                        is_causal=True)
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, seq, hidden))
        x = x + functional.dropout(mixed, self.dropout)
        inner = functional.gelu(self.up(self.mlp_norm(x)), approximate="tanh")
        return x + functional.dropout(self.down(inner), self.dropout)


class Gpt(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.dropout = args.dropout
        self.words = nn.Embedding(args.vocab, args.hidden)
        self.positions = nn.Embedding(args.seq, args.hidden)
        self.blocks = nn.ModuleList(
            Block(args.hidden, args.heads, args.dropout) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.hidden)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.positions.weight
        x = functional.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50257),
                        ("batch", 4), ("seq", 256), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Gpt(args)
    step_model = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    text = torch.randint(args.vocab, (args.batch, args.seq + 1))
    print("ready", flush=True)
    for _ in sys.stdin:
        begin, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = step_model(text[:, :-1], text[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(time.perf_counter() - begin, time.process_time() - cpu, resident, flush=True)


if __name__ == "__main__":
    main()
