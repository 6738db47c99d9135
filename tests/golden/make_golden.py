#!/usr/bin/python3
"""Writes the golden values of tiny GPT-2 and Llama models: loss, gradients, and two AdamW steps.

An independent statement of both model families in PyTorch, float64, with PyTorch's autograd; see README.md for the
formulas of parameters, tokens and weights and for the layout of the files. Run it in its own folder:

    apt-get install python3-torch && /usr/bin/python3 make_golden.py
"""

import json
import math
import os

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

SEQ, BATCH, VOCAB = 6, 2, 13
ADAMW = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip_grad": 0.25, "steps": 2}


def gpt2_config(**changes):
    config = {
        "model_type": "gpt2", "vocab_size": VOCAB, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4,
        "n_inner": 24, "layer_norm_epsilon": 1e-5, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0,
        "tie_word_embeddings": True, "seq_length": SEQ,
    }
    return {**config, **changes}


def llama_config(**changes):
    config = {
        "model_type": "llama", "vocab_size": VOCAB, "max_position_embeddings": 8, "hidden_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
        "intermediate_size": 24, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_dropout": 0.0,
        "tie_word_embeddings": False, "seq_length": SEQ,
    }
    return {**config, **changes}


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}

CASES = {
    "gpt2": gpt2_config(),
    "gpt2_untied": gpt2_config(n_layer=1, tie_word_embeddings=False),
    "llama": llama_config(num_key_value_heads=4, num_hidden_layers=1, tie_word_embeddings=True),
    "llama_gqa": llama_config(),
    "llama_rope": llama_config(num_hidden_layers=1, num_key_value_heads=1, head_dim=6, rope_theta=100.0,
                               rope_scaling=LLAMA3_ROPE),
}


def parameter_shapes(c):
    """Name -> shape, in byte order of the names."""
    gpt2 = c["model_type"] == "gpt2"
    if gpt2:
        hidden, layers, heads, ffn = c["n_embd"], c["n_layer"], c["n_head"], c["n_inner"]
        kv_heads, head_dim = heads, hidden // heads
    else:
        hidden, layers, heads, ffn = (c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"],
                                      c["intermediate_size"])
        kv_heads, head_dim = c["num_key_value_heads"], c["head_dim"]
    shapes = {"embedding.word": [VOCAB, hidden]}
    if gpt2:
        shapes["embedding.position"] = [c["n_positions"], hidden]

    def linear(name, inputs, outputs):
        shapes[name] = inputs + outputs
        if gpt2:
            shapes[name + ".bias"] = outputs

    def norm(name):
        shapes[name] = [hidden]
        if gpt2:
            shapes[name + ".bias"] = [hidden]

    for i in range(layers):
        layer = f"layers.{i}"
        norm(f"{layer}.norm1")
        linear(f"{layer}.attention.q", [hidden], [heads, head_dim])
        linear(f"{layer}.attention.k", [hidden], [kv_heads, head_dim])
        linear(f"{layer}.attention.v", [hidden], [kv_heads, head_dim])
        linear(f"{layer}.attention.out", [heads, head_dim], [hidden])
        norm(f"{layer}.norm2")
        if not gpt2:
            linear(f"{layer}.mlp.gate", [hidden], [ffn])
        linear(f"{layer}.mlp.up", [hidden], [ffn])
        linear(f"{layer}.mlp.down", [ffn], [hidden])
    norm("head.norm")
    if not c["tie_word_embeddings"]:
        shapes["head"] = [VOCAB, hidden]
    return dict(sorted(shapes.items()))


def is_norm_weight(name):
    return name.split(".")[-1] in ("norm", "norm1", "norm2")


def make_parameters(c):
    parameters = {}
    for k, (name, shape) in enumerate(parameter_shapes(c).items()):
        base = 1.0 if is_norm_weight(name) else 0.0
        values = [base + 0.1 * math.sin(1.3 * k + 0.7 * i + 0.01 * (i * i % 97)) for i in range(math.prod(shape))]
        parameters[name] = torch.tensor(values).reshape(shape).requires_grad_()
    return parameters


def make_tokens():
    return [[(5 * b + 3 * t + t * t) % VOCAB for t in range(SEQ + 1)] for b in range(BATCH)]


def make_weights():
    return [[0.5 * ((b * SEQ + t) % 4) for t in range(SEQ)] for b in range(BATCH)]


def rope_frequencies(c):
    half = c["head_dim"] // 2
    frequencies = [c["rope_theta"] ** (-j / half) for j in range(half)]
    scaling = c.get("rope_scaling")
    if not scaling:
        return torch.tensor(frequencies)
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    original = scaling["original_max_position_embeddings"]
    scaled = []
    for frequency in frequencies:
        turns = original * frequency / (2 * math.pi)
        if turns > high:
            scaled.append(frequency)
        elif turns < low:
            scaled.append(frequency / factor)
        else:
            smooth = (turns - low) / (high - low)
            scaled.append((1 - smooth) * frequency / factor + smooth * frequency)
    return torch.tensor(scaled)


def rope(x, c):
    """x [batch, seq, heads, head_dim]: the pair (j, j + head_dim / 2) turns by position * frequency j."""
    angle = torch.arange(SEQ, dtype=torch.float64)[:, None] * rope_frequencies(c)
    cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def token_losses(p, c, tokens):
    """The negative log likelihood of every next token, [batch, seq]."""
    gpt2 = c["model_type"] == "gpt2"
    layers = c["n_layer"] if gpt2 else c["num_hidden_layers"]
    eps = c["layer_norm_epsilon"] if gpt2 else c["rms_norm_eps"]
    inputs, targets = tokens[:, :-1], tokens[:, 1:]

    def norm(x, name):
        if gpt2:
            centred = x - x.mean(-1, keepdim=True)
            return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * p[name] + p[name + ".bias"]
        return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * p[name]

    def linear(x, name, formula):
        y = torch.einsum(formula, x, p[name])
        return y + p[name + ".bias"] if gpt2 else y

    def attention(x, name):
        q, k, v = (linear(x, f"{name}.{part}", "bse,ehd->bshd") for part in "qkv")
        if not gpt2:
            q, k = rope(q, c), rope(k, c)
        repeats = q.shape[2] // k.shape[2]
        k, v = k.repeat_interleave(repeats, dim=2), v.repeat_interleave(repeats, dim=2)
        scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(q.shape[-1])
        future = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        context = torch.einsum("bhst,bthd->bshd", weights, v)
        return linear(context, f"{name}.out", "bshd,hde->bse")

    def mlp(x, name):
        up = linear(x, f"{name}.up", "bse,ef->bsf")
        if gpt2:
            hidden = 0.5 * up * (1 + (math.sqrt(2 / math.pi) * (up + 0.044715 * up ** 3)).tanh())
        else:
            gate = linear(x, f"{name}.gate", "bse,ef->bsf")
            hidden = gate * gate.sigmoid() * up
        return linear(hidden, f"{name}.down", "bsf,fe->bse")

    x = p["embedding.word"][inputs]
    if gpt2:
        x = x + p["embedding.position"][:SEQ]
    for i in range(layers):
        x = x + attention(norm(x, f"layers.{i}.norm1"), f"layers.{i}.attention")
        x = x + mlp(norm(x, f"layers.{i}.norm2"), f"layers.{i}.mlp")
    head = p["embedding.word"] if c["tie_word_embeddings"] else p["head"]
    logits = torch.einsum("bse,ve->bsv", norm(x, "head.norm"), head)
    return -logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]


def loss_and_gradients(p, c, tokens, weights):
    loss = (token_losses(p, c, tokens) * weights).sum()
    gradients = torch.autograd.grad(loss, list(p.values()))
    return {"loss": loss.item(), "gradients": {name: g.flatten().tolist() for name, g in zip(p, gradients)}}


def train(p, c, tokens):
    """AdamW with clipping of the global norm on the mean loss per token, the same batch every step."""
    a = ADAMW
    decayed = [v for n, v in p.items() if not is_norm_weight(n) and not n.endswith(".bias")]
    others = [v for n, v in p.items() if is_norm_weight(n) or n.endswith(".bias")]
    groups = [{"params": decayed, "weight_decay": a["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=a["lr"], betas=(a["beta1"], a["beta2"]), eps=a["eps"])
    losses, norms = [], []
    for _ in range(a["steps"]):
        optimizer.zero_grad()
        loss = token_losses(p, c, tokens).mean()
        loss.backward()
        norm = torch.cat([v.grad.flatten() for v in p.values()]).norm()
        for v in p.values():
            v.grad *= min(1.0, a["clip_grad"] / (norm.item() + 1e-6))
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return {**a, "losses": losses, "grad_norms": norms,
            "parameters": {name: v.flatten().tolist() for name, v in p.items()}}


def to_text(value, depth=0):
    """JSON with objects broken over lines and every array on one line, so that changes can be read."""
    if not isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    pad = " " * (depth + 1)
    lines = [f"{pad}{json.dumps(key)}: {to_text(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    for name, config in CASES.items():
        tokens = torch.tensor(make_tokens())
        golden = {
            "torch": torch.__version__,
            "config": config,
            "shapes": parameter_shapes(config),
            "tokens": make_tokens(),
            "weights": make_weights(),
            "sum": loss_and_gradients(make_parameters(config), config, tokens, torch.ones(BATCH, SEQ)),
            "weighted": loss_and_gradients(make_parameters(config), config, tokens, torch.tensor(make_weights())),
        }
        if name in ("gpt2", "llama_gqa"):
            golden["adamw"] = train(make_parameters(config), config, tokens)
        with open(os.path.join(folder, name + ".json"), "w") as file:
            file.write(to_text(golden) + "\n")


if __name__ == "__main__":
    main()
