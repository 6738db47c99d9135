#!/usr/bin/python3
"""Writes the golden values of the families that Hugging Face's transformers holds: loss and gradients of tiny models.

The model is transformers' own, in float64 with its plain (`eager`) attention, and the configuration in a file is what
transformers itself writes of it. Parameters, tokens and weights follow the formulas of README.md; each of transformers'
tensors is made from ours, so that autograd gives the gradients of ours. Run it in its own folder:

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python make_golden_families.py [name ...]
"""

import math
import os
import sys

import torch
import transformers


from make_golden import BATCH, SEQ, VOCAB, make_tokens, make_weights, to_text

SIZES = {"vocab_size": VOCAB, "max_position_embeddings": 8, "hidden_size": 8, "num_hidden_layers": 1,
         "num_attention_heads": 2, "intermediate_size": 12}
GQA = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}

CASES = {
    "qwen2": transformers.Qwen2Config(**{**SIZES, "num_key_value_heads": 1}, tie_word_embeddings=True),
    "qwen2_window": transformers.Qwen2Config(
        **{**SIZES, "num_key_value_heads": 2, "num_hidden_layers": 2}, use_sliding_window=True, sliding_window=3,
        max_window_layers=1),
    "qwen3": transformers.Qwen3Config(**{**SIZES, **GQA}, rope_theta=1000.0),
    "mistral": transformers.MistralConfig(**{**SIZES, **GQA}, sliding_window=3),
    "phi3": transformers.Phi3Config(
        **{**SIZES, "num_key_value_heads": 1, "hidden_size": 16}, partial_rotary_factor=0.5, resid_pdrop=0.0,
        bos_token_id=None, eos_token_id=None, pad_token_id=None),
    "gpt_neox": transformers.GPTNeoXConfig(**SIZES, rotary_pct=0.5, rotary_emb_base=1000),
    "gpt_neox_sequential": transformers.GPTNeoXConfig(
        **SIZES, hidden_act="gelu_new", use_parallel_residual=False, rotary_pct=1.0),
    "gemma": transformers.GemmaConfig(**{**SIZES, **GQA, "num_key_value_heads": 1}, pad_token_id=None),
    "gemma2": transformers.Gemma2Config(
        **{**SIZES, **GQA, "num_hidden_layers": 2}, sliding_window=3, query_pre_attn_scalar=9,
        attn_logit_softcapping=0.02, final_logit_softcapping=0.5, pad_token_id=None),
}

# Keys that transformers writes and that say nothing of the model.
NOT_THE_MODEL = ("transformers_version", "_name_or_path", "dtype", "architectures", "_attn_implementation")


def config_of(case):
    """What transformers writes, with the sizes that it leaves out where they are its defaults, and our key."""
    written = {k: v for k, v in case.to_diff_dict().items() if k not in NOT_THE_MODEL}
    sizes = {k: getattr(case, k) for k in SIZES}
    return {"model_type": case.model_type, **sizes, **written, "seq_length": SEQ}


def linear(x):
    """torch.nn.Linear's weight [outputs, inputs] of ours [inputs, heads, head_dim] or [inputs, outputs]."""
    return x.flatten(1).t()


def output(x):
    """torch.nn.Linear's weight [outputs, inputs] of attention's output projection [heads, head_dim, outputs]."""
    return x.flatten(0, 1).t()


class Llama:
    """The names of Llama's tensors and their shapes here; families override what they have otherwise."""
    qkv_bias = False
    qk_norm = False
    post_norms = False
    one_plus = False  # norms multiply by 1 + weight; ours is that sum

    def __init__(self, c):
        self.c = c
        self.head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads

    def shapes(self):
        c, d = self.c, self.head_dim
        hidden, heads, ffn = c.hidden_size, c.num_attention_heads, c.intermediate_size
        kv_heads = c.num_key_value_heads
        shapes = {"embedding.word": [VOCAB, hidden], "head.norm": [hidden]}
        for i in range(c.num_hidden_layers):
            layer = {"norm1": [hidden], "norm2": [hidden],
                     "attention.q": [hidden, heads, d], "attention.k": [hidden, kv_heads, d],
                     "attention.v": [hidden, kv_heads, d], "attention.out": [heads, d, hidden],
                     "mlp.gate": [hidden, ffn], "mlp.up": [hidden, ffn], "mlp.down": [ffn, hidden]}
            if self.qkv_bias:
                layer.update({f"attention.{p}.bias": layer[f"attention.{p}"][1:] for p in "qkv"})
            if self.qk_norm:
                layer.update({"attention.q_norm": [d], "attention.k_norm": [d]})
            if self.post_norms:
                layer.update({"attention.norm": [hidden], "mlp.norm": [hidden]})
            shapes.update({f"layers.{i}.{name}": shape for name, shape in layer.items()})
        if not c.tie_word_embeddings:
            shapes["head"] = [VOCAB, hidden]
        return dict(sorted(shapes.items()))

    def tensors(self, p):
        """transformers' names and tensors, from ours."""
        to = {"model.embed_tokens.weight": p["embedding.word"], "model.norm.weight": self.norm(p["head.norm"]),
              "lm_head.weight": p["embedding.word" if self.c.tie_word_embeddings else "head"]}
        for i in range(self.c.num_hidden_layers):
            layer = {name[len(f"layers.{i}."):]: x for name, x in p.items() if name.startswith(f"layers.{i}.")}
            to.update({f"model.layers.{i}.{name}": x for name, x in self.layer_tensors(layer).items()})
        return to

    def norm(self, weight):
        return weight - 1.0 if self.one_plus else weight

    def layer_tensors(self, p):
        to = {"input_layernorm.weight": self.norm(p["norm1"]),
              "self_attn.o_proj.weight": output(p["attention.out"])}
        if self.post_norms:
            to.update({"post_attention_layernorm.weight": self.norm(p["attention.norm"]),
                       "pre_feedforward_layernorm.weight": self.norm(p["norm2"]),
                       "post_feedforward_layernorm.weight": self.norm(p["mlp.norm"])})
        else:
            to["post_attention_layernorm.weight"] = self.norm(p["norm2"])
        for part in "qkv":
            to[f"self_attn.{part}_proj.weight"] = linear(p[f"attention.{part}"])
            if self.qkv_bias:
                to[f"self_attn.{part}_proj.bias"] = p[f"attention.{part}.bias"].flatten()
        for part in ("gate", "up", "down"):
            to[f"mlp.{part}_proj.weight"] = linear(p[f"mlp.{part}"])
        if self.qk_norm:
            to.update({f"self_attn.{part}_norm.weight": p[f"attention.{part}_norm"] for part in "qk"})
        return to


class Qwen2(Llama):
    qkv_bias = True


class Qwen3(Llama):
    qk_norm = True


class Phi3(Llama):
    """Projections of one input lie in one tensor."""

    def layer_tensors(self, p):
        to = super().layer_tensors(p)
        qkv = [to.pop(f"self_attn.{part}_proj.weight") for part in "qkv"]
        gate_up = [to.pop(f"mlp.{part}_proj.weight") for part in ("gate", "up")]
        return {**to, "self_attn.qkv_proj.weight": torch.cat(qkv), "mlp.gate_up_proj.weight": torch.cat(gate_up)}


class Gemma(Llama):
    one_plus = True


class Gemma2(Gemma):
    post_norms = True


class GptNeoX:
    """LayerNorm and biases; queries, keys and values of a head side by side."""

    def __init__(self, c):
        self.c = c

    def shapes(self):
        c = self.c
        hidden, heads, ffn = c.hidden_size, c.num_attention_heads, c.intermediate_size
        d = hidden // heads
        shapes = {"embedding.word": [VOCAB, hidden], "head": [VOCAB, hidden], "head.norm": [hidden],
                  "head.norm.bias": [hidden]}
        for i in range(c.num_hidden_layers):
            for name in ("norm1", "norm2"):
                shapes[f"layers.{i}.{name}"] = shapes[f"layers.{i}.{name}.bias"] = [hidden]
            for name, inputs, outputs in (("attention.q", [hidden], [heads, d]), ("attention.k", [hidden], [heads, d]),
                                          ("attention.v", [hidden], [heads, d]), ("attention.out", [heads, d], [hidden]),
                                          ("mlp.up", [hidden], [ffn]), ("mlp.down", [ffn], [hidden])):
                shapes[f"layers.{i}.{name}"] = inputs + outputs
                shapes[f"layers.{i}.{name}.bias"] = outputs
        return dict(sorted(shapes.items()))

    def tensors(self, p):
        to = {"gpt_neox.embed_in.weight": p["embedding.word"], "lm_head.weight": p["head"],
              "gpt_neox.final_layer_norm.weight": p["head.norm"], "gpt_neox.final_layer_norm.bias": p["head.norm.bias"]}
        for i in range(self.c.num_hidden_layers):
            ours, theirs = f"layers.{i}.", f"gpt_neox.layers.{i}."
            for name, theirs_name in (("norm1", "input_layernorm"), ("norm2", "post_attention_layernorm")):
                to[f"{theirs}{theirs_name}.weight"] = p[f"{ours}{name}"]
                to[f"{theirs}{theirs_name}.bias"] = p[f"{ours}{name}.bias"]
            # [hidden, heads, 3, head_dim]: a head's query, key and value
            qkv = torch.stack([p[f"{ours}attention.{part}"] for part in "qkv"], dim=2)
            qkv_bias = torch.stack([p[f"{ours}attention.{part}.bias"] for part in "qkv"], dim=1)
            to[f"{theirs}attention.query_key_value.weight"] = linear(qkv)
            to[f"{theirs}attention.query_key_value.bias"] = qkv_bias.flatten()
            to[f"{theirs}attention.dense.weight"] = output(p[f"{ours}attention.out"])
            to[f"{theirs}attention.dense.bias"] = p[f"{ours}attention.out.bias"]
            for name, theirs_name in (("up", "dense_h_to_4h"), ("down", "dense_4h_to_h")):
                to[f"{theirs}mlp.{theirs_name}.weight"] = linear(p[f"{ours}mlp.{name}"])
                to[f"{theirs}mlp.{theirs_name}.bias"] = p[f"{ours}mlp.{name}.bias"]
        return to


FAMILIES = {"qwen2": Qwen2, "qwen3": Qwen3, "mistral": Llama, "phi3": Phi3, "gpt_neox": GptNeoX, "gemma": Gemma,
            "gemma2": Gemma2}


def make_parameters(shapes):
    parameters = {}
    for k, (name, shape) in enumerate(shapes.items()):
        base = 1.0 if name.endswith(("norm", "norm1", "norm2")) else 0.0
        values = [base + 0.1 * math.sin(1.3 * k + 0.7 * i + 0.01 * (i * i % 97)) for i in range(math.prod(shape))]
        parameters[name] = torch.tensor(values).reshape(shape).requires_grad_()
    return parameters


def make_model(case):
    case._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(case).double().train()
    # The rotation's frequencies were computed in float32.
    for module in model.modules():
        if hasattr(module, "inv_freq"):
            module.inv_freq = exact_frequencies(case)
        if hasattr(module, "embed_scale"):
            module.embed_scale = torch.tensor(case.hidden_size**0.5, dtype=torch.float64)
    return model


def exact_frequencies(case):
    parameters = case.rope_parameters
    head_dim = getattr(case, "head_dim", None) or case.hidden_size // case.num_attention_heads
    rotated = int(head_dim * parameters.get("partial_rotary_factor", 1.0))
    return 1.0 / parameters["rope_theta"] ** (torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)


def in_double():
    """transformers casts norms, rotations and probabilities to float32 whatever a model's type is; here to float64."""
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double


def golden_of(case):
    family = FAMILIES[case.model_type](case)
    parameters = make_parameters(family.shapes())
    model = make_model(case)
    tensors = family.tensors(parameters)
    assert set(tensors) == {name for name, _ in model.named_parameters(remove_duplicate=False)}, case.model_type
    in_double()
    tokens = torch.tensor(make_tokens())
    logits = torch.func.functional_call(model, tensors, (tokens[:, :-1],), {"use_cache": False}).logits
    losses = -logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]

    def result(weights):
        loss = (losses * weights).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True)
        return {"loss": loss.item(),
                "gradients": {name: g.flatten().tolist() for name, g in zip(parameters, gradients)}}

    return {"torch": torch.__version__, "transformers": transformers.__version__, "config": config_of(case),
            "shapes": family.shapes(), "tokens": make_tokens(), "weights": make_weights(),
            "sum": result(torch.ones(BATCH, SEQ)), "weighted": result(torch.tensor(make_weights()))}


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in sys.argv[1:] or CASES:
        with open(os.path.join(folder, name + ".json"), "w") as file:
            file.write(to_text(golden_of(CASES[name])) + "\n")


if __name__ == "__main__":
    main()
