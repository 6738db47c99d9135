"""Holds model directories that mgc-convert writes against transformers: of every model of tests/weights it loads what was
written without training, with no key missing or left over, and the logits are those of the model as it was; of one that was
trained, saved and written anew it loads all keys. Run by tools/foreign_readers, with mgc's commands in PATH."""

import os
import subprocess
import sys

import torch
import transformers

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "weights")
KINDS = {"bert": transformers.BertForMaskedLM, "vit": transformers.ViTForImageClassification}


def load(path, family):
    kind = KINDS.get(family, transformers.AutoModelForCausalLM)
    model, info = kind.from_pretrained(path, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(what):
            sys.exit(f"{path}: {what} {info[what]}")
    return model.eval()


def logits(model, family):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        if family == "vit":
            return model(pixel_values=torch.randn((2, 3, 4, 6), generator=generator)).logits
        return model(input_ids=torch.randint(0, 48, (2, 8), generator=generator)).logits


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


for family in sorted(f for f in os.listdir(MODELS) if os.path.isdir(os.path.join(MODELS, f))):
    model = os.path.join(MODELS, family)
    run("mgc-convert", model, "-o", f"{family}-start")
    for name, flags in (("as-it-was", ()), ("f32", ("--dtype", "f32")), ("shards", ("--max-shard-size", "4KB"))):
        run("mgc-convert", f"{family}-start", "--like", model, "-o", f"{family}-{name}", *flags)
        if not torch.equal(logits(load(f"{family}-{name}", family), family), logits(load(model, family), family)):
            sys.exit(f"{family}-{name}: other logits")
    print(f"{family}: transformers reads what was written, and computes the same")
