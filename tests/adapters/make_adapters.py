#!/usr/bin/python3
"""Writes adapters of Hugging Face's peft for models of tests/weights, as it writes them, and what they are worth.

A folder for each case: adapter_config.json and adapter_model.safetensors by peft, in float32, A and B random; losses.txt, the
losses of three steps of SGD without momentum that torch takes in float64 from model and adapter, training the adapter alone, at
a rate of 0.1, two samples a step of the model's batch.safetensors. The second and the third loss stand for the gradients. Run it
in its own folder:

    python3 -m venv venv && venv/bin/pip install torch transformers peft
    venv/bin/python make_adapters.py [name ...]
"""

import json
import os
import sys

import peft
import torch
import transformers
from safetensors.torch import load_file

STEPS, RATE = 3, 0.1
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "weights")
CASES = {  # r, alpha, target modules
    "llama": (2, 3, ["q_proj", "v_proj", "o_proj", "down_proj"]),
    "gpt2": (3, 6, ["c_attn", "mlp.c_proj"]),  # one A for queries, keys and values
    "gpt_neox": (2, 2, ["query_key_value", "dense_h_to_4h"]),  # heads side by side
    "phi3": (2, 4, ["qkv_proj", "gate_up_proj"]),
}


def random_values(shape, generator):
    """1/64 to 1/4 with four bits each."""
    sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return torch.randint(1, 17, shape, generator=generator) / 64 * sign


def load(name):
    return transformers.AutoModelForCausalLM.from_pretrained(
        os.path.join(MODELS, name), dtype=torch.float32, attn_implementation="eager")


def loss_of(model, batch, rows):
    logits = model(input_ids=batch["tokens"][rows]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), batch["targets"][rows].flatten())


def write(name, rank, alpha, targets):
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM",
                             fan_in_fan_out=name == "gpt2")
    model = peft.get_peft_model(load(name), config)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.requires_grad):
            parameter.copy_(random_values(parameter.shape, generator))
    model.save_pretrained(name)
    os.remove(os.path.join(name, "README.md"))
    path = os.path.join(name, "adapter_config.json")
    with open(path) as file:
        written = json.load(file)
    written["base_model_name_or_path"] = None  # a place on this disk
    written["target_modules"] = sorted(written["target_modules"])  # a set
    with open(path, "w") as file:
        json.dump(written, file, indent=2, sort_keys=True)
        file.write("\n")
    model = peft.PeftModel.from_pretrained(load(name).double(), name, is_trainable=True).double()
    batch = load_file(os.path.join(MODELS, name, "batch.safetensors"))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    losses = []
    for step in range(STEPS):
        loss = loss_of(model, batch, slice(2 * step, 2 * step + 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with open(os.path.join(name, "losses.txt"), "w") as out:
        out.writelines(f"{loss!r}\n" for loss in losses)
    print(name, losses)


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        write(case, *CASES[case])
