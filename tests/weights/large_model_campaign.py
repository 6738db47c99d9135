#!/usr/bin/env python3
"""A model directory of 7 billion weights, all zeros and so without room on the disk, is read by eight
ranks of a machine, none of which needs 4 GB: each holds its share alone, and reads no more than that."""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "torch_dtype": "float16",
}
MOST_BYTES = 4_000_000_000


def tensors():
    e, f = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    yield "model.embed_tokens.weight", [CONFIG["vocab_size"], e]
    for layer in range(CONFIG["num_hidden_layers"]):
        for name, shape in [
                ("self_attn.q_proj", [e, e]), ("self_attn.k_proj", [e, e]),
                ("self_attn.v_proj", [e, e]), ("self_attn.o_proj", [e, e]),
                ("mlp.gate_proj", [f, e]), ("mlp.up_proj", [f, e]), ("mlp.down_proj", [e, f]),
                ("input_layernorm", [e]), ("post_attention_layernorm", [e])]:
            yield f"model.layers.{layer}.{name}.weight", shape
    yield "model.norm.weight", [e]
    yield "lm_head.weight", [CONFIG["vocab_size"], e]


def write_model(folder):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(CONFIG, file)
    header, end = {}, 0
    for name, shape in tensors():
        begin = end
        size = 2
        for dim in shape:
            size *= dim
        end += size
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return end


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}")
    return result.stdout


def main():
    tools = os.path.join(os.getcwd(), "tools")
    with tempfile.TemporaryDirectory() as folder:
        stored = write_model(folder)
        plan = os.path.join(folder, "asked.plan")
        run(f"{tools}/mgc-compile", folder, "--next-token", "whole", "--seq-length", "16", "--tp", "8",
            "--world-size", "8", "--bf16", "-o", plan)
        said = run(f"{tools}/mgc-generate", plan, "--init", folder, "--nproc", "8", "--prompt-ids",
                   "1,2,3", "--max-new-tokens", "1")
    # The largest of all processes that were waited for.
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{stored} bytes of weights; a process took at most {most}, and said {said.strip()}")
    if said.strip() != "0":
        sys.exit("of equal logits the first token is the most probable")
    if most > MOST_BYTES:
        sys.exit(f"more than {MOST_BYTES}")


main()
