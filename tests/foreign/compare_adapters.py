"""Holds adapters that mgc-convert writes against peft: for models of tests/weights it trains adapters beside every linear layer, loads
what was written with peft, no key missing or left over, and compares logits: those of model and adapter with those of the
merged model, which transformers loads. Run by tools/foreign_readers, with mgc's commands in PATH."""

import os
import subprocess
import sys

import peft
import torch
import transformers
from safetensors.torch import load_file

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "weights")
FAMILIES = ("gemma2", "gpt2", "gpt_neox", "llama", "mistral", "phi3", "qwen2", "qwen3")


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def model_of(path):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


def adapted(model, adapter):
    loaded = peft.PeftModel.from_pretrained(model_of(model), adapter).eval()
    written = set(load_file(os.path.join(adapter, "adapter_model.safetensors")))
    if written != set(peft.get_peft_model_state_dict(loaded)):
        sys.exit(f"{adapter}: other keys than peft has")
    return loaded


def logits(model):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        return model(input_ids=torch.randint(0, 48, (2, 8), generator=generator)).logits


def train(family, model, flags, init):
    batch = os.path.join(model, "batch.safetensors")
    inputs = [word for name in ("tokens", "targets", "weights") for word in ("--inputs", f"{name}={batch}")]
    run("mgc-compile", model, *flags, "--tp", "2", "--world-size", "2", "--global-batch-size", "2", "-o", "lora.plan")
    run("mgc-run", "lora.plan", *inputs, "--init", model, *init, "--save", f"{family}-lora")
    run("mgc-convert", f"{family}-lora", "--like", model, "--adapter-only", "-o", f"{family}-adapter")
    run("mgc-convert", f"{family}-lora", "--like", model, "--dtype", "f32", "-o", f"{family}-merged")


for family in FAMILIES:
    model = os.path.join(MODELS, family)
    train(family, model, ("--lora-rank", "3", "--lora-alpha", "6", "--lora-targets", "all-linear"),
          ("--steps", "3", "--lr", "0.1", "--lr-decay-style", "constant"))
    beside, merged = logits(adapted(model, f"{family}-adapter")), logits(model_of(f"{family}-merged"))
    if torch.allclose(beside, logits(model_of(model)), atol=1e-3):
        sys.exit(f"{family}: nothing was trained")
    if not torch.allclose(beside, merged, rtol=1e-4, atol=1e-5):
        sys.exit(f"{family}: the adapter's logits are not the merged model's: {(beside - merged).abs().max()}")
    print(f"{family}: peft reads the adapter, transformers the merged model, and both compute the same")
