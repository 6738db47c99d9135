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

# Models that read no text from left to right have an entry in INPUTS, too.
ENCODER = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
           "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CASES["bert"] = transformers.BertConfig(
    **ENCODER, vocab_size=VOCAB, max_position_embeddings=8, pad_token_id=None, is_decoder=False)
CASES["bert_untied"] = transformers.BertConfig(
    **{**ENCODER, "num_hidden_layers": 2}, vocab_size=VOCAB, max_position_embeddings=8, pad_token_id=None,
    hidden_act="gelu_new", type_vocab_size=3, tie_word_embeddings=False)
CASES["vit"] = transformers.ViTConfig(
    **{**ENCODER, "num_hidden_layers": 2}, image_size=(4, 6), patch_size=2, num_channels=3, num_labels=5)

# Models of examples/, which have no configuration of ours.
EXAMPLES = {
    "t5": transformers.T5Config(
        vocab_size=VOCAB, d_model=8, d_kv=4, d_ff=12, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
        relative_attention_max_distance=6, dropout_rate=0.0, layer_norm_epsilon=1e-6, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, use_cache=False, pad_token_id=None, decoder_start_token_id=0),
}

EXAMPLES["t5"].tie_word_embeddings = False  # which the constructor takes for the scale alone

# Keys that transformers writes and that say nothing of the model.
NOT_THE_MODEL = ("transformers_version", "_name_or_path", "dtype", "architectures", "_attn_implementation")


def config_of(case):
    """What transformers writes, with the sizes that it leaves out where they are its defaults, and our key."""
    written = {k: v for k, v in case.to_diff_dict().items() if k not in NOT_THE_MODEL}
    if case.model_type == "vit":
        for key in ("id2label", "label2id", "image_size"):
            written.pop(key, None)
        sizes = {k: getattr(case, k) for k in ENCODER}
        return {"model_type": "vit", **sizes, **written, "image_size": list(case.image_size),
                "patch_size": case.patch_size, "num_labels": case.num_labels}
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


def encoder_layer(c):
    """A layer with biases everywhere, as bert and vit have it: names and shapes."""
    hidden, heads, ffn = c.hidden_size, c.num_attention_heads, c.intermediate_size
    layer = {}
    for name in ("norm1", "norm2"):
        layer[name] = layer[f"{name}.bias"] = [hidden]
    for name, inputs, outputs in (("attention.q", [hidden], [heads, hidden // heads]),
                                  ("attention.k", [hidden], [heads, hidden // heads]),
                                  ("attention.v", [hidden], [heads, hidden // heads]),
                                  ("attention.out", [heads, hidden // heads], [hidden]),
                                  ("mlp.up", [hidden], [ffn]), ("mlp.down", [ffn], [hidden])):
        layer[name], layer[f"{name}.bias"] = inputs + outputs, outputs
    return layer


class Encoder:
    """What bert and vit share; `parts` names the parts of a layer as transformers does."""

    def __init__(self, c):
        self.c = c

    def shapes(self):
        shapes = self.end_shapes()
        for i in range(self.c.num_hidden_layers):
            shapes.update({f"layers.{i}.{name}": shape for name, shape in encoder_layer(self.c).items()})
        return dict(sorted(shapes.items()))

    def tensors(self, p):
        to = self.end_tensors(p)
        for i in range(self.c.num_hidden_layers):
            ours = f"layers.{i}."
            for name, part in self.parts.items():
                weight = p[ours + name]
                theirs = self.layers.format(i) + part
                if name == "attention.out":
                    weight = output(weight)
                elif not name.startswith("norm"):
                    weight = linear(weight)
                to[f"{theirs}.weight"] = weight
                to[f"{theirs}.bias"] = p[f"{ours}{name}.bias"].flatten()
        return to


class Bert(Encoder):
    layers = "bert.encoder.layer.{}."
    parts = {"attention.q": "attention.self.query", "attention.k": "attention.self.key",
             "attention.v": "attention.self.value", "attention.out": "attention.output.dense",
             "norm1": "attention.output.LayerNorm", "mlp.up": "intermediate.dense", "mlp.down": "output.dense",
             "norm2": "output.LayerNorm"}

    def end_shapes(self):
        c, hidden = self.c, self.c.hidden_size
        shapes = {"embedding.word": [VOCAB, hidden], "embedding.segment": [c.type_vocab_size, hidden],
                  "embedding.position": [c.max_position_embeddings, hidden], "head.transform": [hidden, hidden],
                  "head.transform.bias": [hidden], "head.bias": [VOCAB]}
        for name in ("embedding.norm", "head.norm"):
            shapes[name] = shapes[f"{name}.bias"] = [hidden]
        if not c.tie_word_embeddings:
            shapes["head"] = [VOCAB, hidden]
        return shapes

    def end_tensors(self, p):
        head = p["embedding.word" if self.c.tie_word_embeddings else "head"]
        to = {"bert.embeddings.word_embeddings.weight": p["embedding.word"],
              "bert.embeddings.position_embeddings.weight": p["embedding.position"],
              "bert.embeddings.token_type_embeddings.weight": p["embedding.segment"],
              "cls.predictions.bias": p["head.bias"], "cls.predictions.decoder.bias": p["head.bias"],
              "cls.predictions.decoder.weight": head,
              "cls.predictions.transform.dense.weight": linear(p["head.transform"]),
              "cls.predictions.transform.dense.bias": p["head.transform.bias"]}
        for theirs, ours in (("bert.embeddings", "embedding"), ("cls.predictions.transform", "head")):
            to[f"{theirs}.LayerNorm.weight"] = p[f"{ours}.norm"]
            to[f"{theirs}.LayerNorm.bias"] = p[f"{ours}.norm.bias"]
        return to


class Vit(Encoder):
    layers = "vit.layers.{}."
    parts = {"attention.q": "attention.q_proj", "attention.k": "attention.k_proj", "attention.v": "attention.v_proj",
             "attention.out": "attention.o_proj", "norm1": "layernorm_before", "mlp.up": "mlp.fc1",
             "mlp.down": "mlp.fc2", "norm2": "layernorm_after"}

    def end_shapes(self):
        c, hidden = self.c, self.c.hidden_size
        height, width = c.image_size
        patches = (height // c.patch_size) * (width // c.patch_size)
        return {"embedding.patch": [c.num_channels * c.patch_size**2, hidden], "embedding.patch.bias": [hidden],
                "embedding.class": [hidden], "embedding.position": [patches + 1, hidden],
                "head.norm": [hidden], "head.norm.bias": [hidden], "head": [c.num_labels, hidden],
                "head.bias": [c.num_labels]}

    def end_tensors(self, p):
        c = self.c
        squares = (c.hidden_size, c.num_channels, c.patch_size, c.patch_size)
        return {"vit.embeddings.cls_token": p["embedding.class"][None, None],
                "vit.embeddings.position_embeddings": p["embedding.position"][None],
                "vit.embeddings.patch_embeddings.projection.weight": p["embedding.patch"].t().reshape(squares),
                "vit.embeddings.patch_embeddings.projection.bias": p["embedding.patch.bias"],
                "vit.layernorm.weight": p["head.norm"], "vit.layernorm.bias": p["head.norm.bias"],
                "classifier.weight": p["head"], "classifier.bias": p["head.bias"]}


class T5:
    def __init__(self, c):
        self.c = c

    def shapes(self):
        c, hidden, heads = self.c, self.c.d_model, [self.c.num_heads, self.c.d_kv]
        shapes = {"embedding.word": [VOCAB, hidden], "head": [VOCAB, hidden], "head.norm": [hidden],
                  "embedding.position": [c.relative_attention_num_buckets, c.num_heads]}
        for i in range(2 * c.num_layers):
            layer = {"norm1": [hidden], "norm2": [hidden], "mlp.gate": [hidden, c.d_ff], "mlp.up": [hidden, c.d_ff],
                     "mlp.down": [c.d_ff, hidden]}
            for attention in ("attention", "cross")[: 1 if i < c.num_layers else 2]:
                layer.update({f"{attention}.{part}": [hidden, *heads] for part in "qkv"})
                layer[f"{attention}.out"] = [*heads, hidden]
            if i >= c.num_layers:
                layer["norm_cross"] = [hidden]
            shapes.update({f"layers.{i}.{name}": shape for name, shape in layer.items()})
        shapes[f"layers.{c.num_layers - 1}.encoded"] = [hidden]
        shapes[f"layers.{c.num_layers}.position"] = shapes["embedding.position"]
        return dict(sorted(shapes.items()))

    def tensors(self, p):
        c = self.c
        to = {f"{name}.weight": p["embedding.word"] for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")}
        to.update({"lm_head.weight": p["head"], "decoder.final_layer_norm.weight": p["head.norm"],
                   "encoder.final_layer_norm.weight": p[f"layers.{c.num_layers - 1}.encoded"]})
        for side, first in (("encoder", 0), ("decoder", c.num_layers)):
            bias = p["embedding.position"] if first == 0 else p[f"layers.{first}.position"]
            to[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = bias
            for i in range(c.num_layers):
                ours, theirs = f"layers.{first + i}.", f"{side}.block.{i}.layer."
                parts = [("0.SelfAttention", "attention", "norm1")]
                if first:
                    parts.append(("1.EncDecAttention", "cross", "norm_cross"))
                for layer, attention, norm in parts:
                    to[f"{theirs}{layer[0]}.layer_norm.weight"] = p[ours + norm]
                    for part in "qkv":
                        to[f"{theirs}{layer}.{part}.weight"] = linear(p[f"{ours}{attention}.{part}"])
                    to[f"{theirs}{layer}.o.weight"] = output(p[f"{ours}{attention}.out"])
                last = f"{theirs}{len(parts)}."
                to[f"{last}layer_norm.weight"] = p[f"{ours}norm2"]
                for name, part in (("wi_0", "gate"), ("wi_1", "up"), ("wo", "down")):
                    to[f"{last}DenseReluDense.{name}.weight"] = linear(p[f"{ours}mlp.{part}"])
        return to


FAMILIES = {"qwen2": Qwen2, "qwen3": Qwen3, "mistral": Llama, "phi3": Phi3, "gpt_neox": GptNeoX, "gemma": Gemma,
            "gemma2": Gemma2, "bert": Bert, "vit": Vit, "t5": T5}


def bert_inputs(case):
    """The second sample ends in padding; every third word is to be found."""
    targets = [[(7 * b + 2 * t) % VOCAB if (b + t) % 3 == 0 else -100 for t in range(SEQ)] for b in range(BATCH)]
    return {"segments": [[(t + b) // 3 % case.type_vocab_size for t in range(SEQ)] for b in range(BATCH)],
            "mask": [[int(t < SEQ - 2 * b) for t in range(SEQ)] for b in range(BATCH)],
            "targets": [[x if t < SEQ - 2 * b else -100 for t, x in enumerate(row)] for b, row in enumerate(targets)]}


def bert_losses(model, tensors, tokens, inputs):
    tokens = tokens[:, :-1]
    given = {"attention_mask": torch.tensor(inputs["mask"]), "token_type_ids": torch.tensor(inputs["segments"])}
    logits = torch.func.functional_call(model, tensors, (tokens,), given).logits
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(inputs["targets"]), reduction="none")


def vit_inputs(case):
    """Patches in rows, the numbers of each by channel, row and column."""
    height, width = case.image_size
    size = case.patch_size
    image = torch.tensor([math.sin(0.37 * i) for i in range(BATCH * case.num_channels * height * width)])
    image = image.reshape(BATCH, case.num_channels, height // size, size, width // size, size)
    return {"patches": image.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2).tolist(),
            "labels": [(3 * b + 1) % case.num_labels for b in range(BATCH)]}


def vit_losses(model, tensors, tokens, inputs):
    case = model.config
    height, width = case.image_size
    size = case.patch_size
    image = torch.tensor(inputs["patches"]).reshape(BATCH, height // size, width // size, case.num_channels, size, size)
    image = image.permute(0, 3, 1, 4, 2, 5).reshape(BATCH, case.num_channels, height, width)
    logits = torch.func.functional_call(model, tensors, (image,)).logits
    return torch.nn.functional.cross_entropy(logits, torch.tensor(inputs["labels"]), reduction="none")


def t5_inputs(case):
    """The second sample of the encoder ends in padding."""
    return {"source": [[(4 * b + 5 * t + 1) % VOCAB for t in range(SEQ - 1)] for b in range(BATCH)],
            "mask": [[int(t < SEQ - 1 - 2 * b) for t in range(SEQ - 1)] for b in range(BATCH)]}


def t5_losses(model, tensors, tokens, inputs):
    given = {"input_ids": torch.tensor(inputs["source"]), "attention_mask": torch.tensor(inputs["mask"]),
             "decoder_input_ids": tokens[:, :-1]}
    logits = torch.func.functional_call(model, tensors, (), given).logits
    return -logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]


# Of a family: its data inputs beside tokens and weights, and the loss of everything that counts.
INPUTS = {"bert": (bert_inputs, bert_losses), "vit": (vit_inputs, vit_losses), "t5": (t5_inputs, t5_losses)}


def make_parameters(shapes):
    parameters = {}
    for k, (name, shape) in enumerate(shapes.items()):
        base = 1.0 if name.endswith(("norm", "norm1", "norm2")) else 0.0
        values = [base + 0.1 * math.sin(1.3 * k + 0.7 * i + 0.01 * (i * i % 97)) for i in range(math.prod(shape))]
        parameters[name] = torch.tensor(values).reshape(shape).requires_grad_()
    return parameters


def make_model(case):
    case._attn_implementation = "eager"
    kinds = {"bert": transformers.BertForMaskedLM, "vit": transformers.ViTForImageClassification,
             "t5": transformers.T5ForConditionalGeneration}
    kind = kinds.get(case.model_type)
    model = kind._from_config(case) if kind else transformers.AutoModelForCausalLM.from_config(case)
    model = model.double().train()
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
    inputs = {}
    if case.model_type in INPUTS:
        make_inputs, losses_of = INPUTS[case.model_type]
        inputs = make_inputs(case)
        losses = losses_of(model, tensors, tokens, inputs)
    else:
        logits = torch.func.functional_call(model, tensors, (tokens[:, :-1],), {"use_cache": False}).logits
        losses = -logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    weights = make_weights()
    if losses.dim() == 1:  # a weight for each sample
        weights = [row[1] for row in weights]

    def result(weights):
        loss = (losses * weights).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True)
        return {"loss": loss.item(),
                "gradients": {name: g.flatten().tolist() for name, g in zip(parameters, gradients)}}

    model_is = {"example": case.model_type} if case.model_type == "t5" else {"config": config_of(case)}
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, **model_is,
              "shapes": family.shapes(), "tokens": make_tokens(), "weights": weights}
    if inputs:
        golden["inputs"] = inputs
    golden["sum"] = result(torch.ones(losses.shape))
    if case.model_type not in ("bert", "t5"):  # bert counts its targets instead
        golden["weighted"] = result(torch.tensor(weights))
    return golden


def golden_mixer():
    """The MLP-mixer of examples/mixer_model.cc, which transformers does not have."""
    in_double()
    patches, pixels, hidden, tokens_ffn, ffn, labels = 6, 5, 8, 7, 12, 4
    shapes = {"embedding.patch": [pixels, hidden], "embedding.patch.bias": [hidden], "head": [labels, hidden],
              "head.bias": [labels], "head.norm": [hidden], "head.norm.bias": [hidden]}
    for i in range(2):
        for name, inputs, outputs in (("tokens.up", patches, tokens_ffn), ("tokens.down", tokens_ffn, patches),
                                      ("mlp.up", hidden, ffn), ("mlp.down", ffn, hidden)):
            shapes[f"layers.{i}.{name}"], shapes[f"layers.{i}.{name}.bias"] = [inputs, outputs], [outputs]
        for name in ("norm1", "norm2"):
            shapes[f"layers.{i}.{name}"] = shapes[f"layers.{i}.{name}.bias"] = [hidden]
    p = make_parameters(dict(sorted(shapes.items())))

    def dense(x, name):
        return x @ p[name] + p[f"{name}.bias"]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, [hidden], p[name], p[f"{name}.bias"], 1e-6)

    def two_layers(x, name):
        return dense(torch.nn.functional.gelu(dense(x, f"{name}.up")), f"{name}.down")

    image = torch.tensor([math.sin(0.37 * i) for i in range(BATCH * patches * pixels)]).reshape(BATCH, patches, pixels)
    targets = torch.tensor([(3 * b + 1) % labels for b in range(BATCH)])
    x = dense(image, "embedding.patch")
    for i in range(2):
        x = x + two_layers(norm(x, f"layers.{i}.norm1").transpose(1, 2), f"layers.{i}.tokens").transpose(1, 2)
        x = x + two_layers(norm(x, f"layers.{i}.norm2"), f"layers.{i}.mlp")
    logits = norm(x, "head.norm").mean(1) @ p["head"].t() + p["head.bias"]
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    weights = [row[1] for row in make_weights()]

    def result(weights):
        loss = (losses * weights).sum()
        gradients = torch.autograd.grad(loss, list(p.values()), retain_graph=True)
        return {"loss": loss.item(), "gradients": {name: g.flatten().tolist() for name, g in zip(p, gradients)}}

    return {"torch": torch.__version__, "example": "mixer", "shapes": dict(sorted(shapes.items())),
            "tokens": make_tokens(), "weights": weights,
            "inputs": {"patches": image.tolist(), "labels": targets.tolist()},
            "sum": result(torch.ones(BATCH)), "weighted": result(torch.tensor(weights))}


def golden_losses():
    """Losses of torch.nn.functional, with the gradient of what each is of."""
    in_double()
    rows, entries = 6, 7
    x = torch.tensor([3 * math.sin(1.7 * i + 0.3) for i in range(rows * entries)]).reshape(rows, entries)
    targets = torch.tensor([(2 * i) % entries if i % 3 else -100 for i in range(rows)])
    labels = torch.tensor([0.5 + 0.5 * math.cos(0.9 * i) for i in range(rows * entries)]).reshape(rows, entries)
    losses = {
        "cross_entropy": lambda x: torch.nn.functional.cross_entropy(x, targets, reduction="sum"),
        "smoothed": lambda x: torch.nn.functional.cross_entropy(x, targets, reduction="sum", label_smoothing=0.1),
        "squared_error": lambda x: torch.nn.functional.mse_loss(x, labels, reduction="sum"),
        "binary": lambda x: torch.nn.functional.binary_cross_entropy_with_logits(x, labels, reduction="sum"),
    }
    values = {}
    for name, loss in losses.items():
        x = x.detach().requires_grad_()
        value = loss(x)
        value.backward()
        values[name] = {"loss": value.item(), "gradient": x.grad.flatten().tolist()}
    return {"torch": torch.__version__, "x": x.flatten().tolist(), "targets": targets.tolist(),
            "labels": labels.flatten().tolist(), **values}


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    cases = {**CASES, **EXAMPLES}
    others = {"losses": golden_losses, "mixer": golden_mixer}
    for name in sys.argv[1:] or [*cases, *others]:
        with open(os.path.join(folder, name + ".json"), "w") as file:
            file.write(to_text(others[name]() if name in others else golden_of(cases[name])) + "\n")


if __name__ == "__main__":
    main()
