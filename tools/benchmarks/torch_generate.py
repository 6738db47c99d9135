#!/usr/bin/env python3
"""Texts that a GPT-2 of transformers goes on with on the CPU, for mgc-bench to time beside its own.

Speaks as torch_step.py does: a step is a batch of prompts with the first token behind each, or the
tokens behind that one. Weights are random: only time is looked at. Tokens come from `generate`, the
most probable one each time, with its cache of keys and values.
"""

import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.generation.streamers import BaseStreamer

from torch_step import most_resident, serve


def now():
    return time.perf_counter(), time.process_time()


class Clock(BaseStreamer):
    """When each token came; generate begins with the prompt."""

    def __init__(self):
        self.times = []

    def put(self, value):
        self.times.append(now())

    def end(self):
        pass


def step_of(args):
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    config = GPT2Config(n_layer=args.layers, n_embd=args.hidden, n_head=args.heads,
                        vocab_size=args.vocab, bos_token_id=0, eos_token_id=None)
    model = GPT2LMHeadModel(config).to(torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    model.eval()
    prompts = torch.randint(args.vocab, (args.batch, args.prompt))
    mask = torch.ones_like(prompts)
    tokens = 1 if args.part == "prompt" else 1 + args.tokens

    @torch.inference_mode()
    def step():
        clock, begin = Clock(), now()
        made = model.generate(prompts, attention_mask=mask, max_new_tokens=tokens, do_sample=False,
                              use_cache=True, pad_token_id=0, streamer=clock)
        assert made.shape[1] == args.prompt + tokens, made.shape
        if args.part == "tokens":
            begin = clock.times[1]
        end = clock.times[-1]
        return [end[0] - begin[0], end[1] - begin[1], most_resident()]

    return step


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50257),
                        ("batch", 1), ("prompt", 128), ("tokens", 64), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--part", choices=["prompt", "tokens"], default="tokens")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    return parser.parse_args()


if __name__ == "__main__":
    serve(step_of(parse_args()))
