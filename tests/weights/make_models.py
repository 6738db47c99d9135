#!/usr/bin/python3
"""Writes tiny random models of Hugging Face's transformers, as it writes them, and what they are worth.

A folder for each family: config.json and model.safetensors by transformers, in bfloat16 where every value is exact;
batch.safetensors, samples that a model of that family is fed with; losses.txt, the losses of three steps of SGD without
momentum that torch takes on them in float64 from those weights, at a rate of 0.1, two samples a step. The second and the third loss stand
for the gradients. Of models that predict the next token texts.txt has what they go on with in float64. Run it in its own folder:

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python make_models.py [name ...]
"""

import os
import sys

import torch
import transformers
from safetensors.torch import save_file

SEQ, VOCAB, SAMPLES, STEPS, RATE = 8, 48, 6, 3, 0.1
SIZES = {"vocab_size": VOCAB, "max_position_embeddings": SEQ, "hidden_size": 16, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 24}
GQA = {"num_key_value_heads": 2}
ENCODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
           "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
NO_SPECIAL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}

CASES = {
    "gpt2": transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=SEQ, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=None, eos_token_id=None),
    "llama": transformers.LlamaConfig(**SIZES, **GQA, **NO_SPECIAL, head_dim=6),
    "qwen2": transformers.Qwen2Config(**SIZES, **GQA, **NO_SPECIAL, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**SIZES, **GQA, **NO_SPECIAL, head_dim=8),
    "mistral": transformers.MistralConfig(**SIZES, **GQA, **NO_SPECIAL, sliding_window=4),
    "phi3": transformers.Phi3Config(**SIZES, **GQA, **NO_SPECIAL, resid_pdrop=0.0),
    "gpt_neox": transformers.GPTNeoXConfig(**SIZES, bos_token_id=None, eos_token_id=None, rotary_pct=0.5),
    "gemma": transformers.GemmaConfig(**SIZES, **GQA, **NO_SPECIAL, head_dim=8),
    "gemma2": transformers.Gemma2Config(**SIZES, **GQA, **NO_SPECIAL, head_dim=8, sliding_window=4),
    "bert": transformers.BertConfig(**ENCODER, vocab_size=VOCAB, max_position_embeddings=SEQ, pad_token_id=None),
    "vit": transformers.ViTConfig(**ENCODER, image_size=(4, 6), patch_size=2, num_channels=3, num_labels=5),
}
KINDS = {"bert": transformers.BertForMaskedLM, "vit": transformers.ViTForImageClassification}


def model_of(config):
    config._attn_implementation = "eager"
    if config.model_type in KINDS:
        return KINDS[config.model_type](config)
    return transformers.AutoModelForCausalLM.from_config(config)


def random_weights(model):
    """Values of 1/64 to 1/4 with four bits each: exact in bfloat16, and so is 1 + weight in float32."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            random = torch.randint(1, 17, parameter.shape, generator=generator) / 64
            sign = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.copy_(random * sign)


def batch_of(config, generator):
    if config.model_type == "vit":
        images = torch.randint(-8, 9, (SAMPLES, 3, 4, 6), generator=generator) / 8
        patches = images.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(SAMPLES, 6, 12)
        labels = torch.randint(0, 5, (SAMPLES,), generator=generator)
        return {"patches": patches, "labels": labels, "weights": torch.ones(SAMPLES)}, images
    text = torch.randint(0, VOCAB, (SAMPLES, SEQ + 1), generator=generator)
    batch = {"tokens": text[:, :-1].clone(), "targets": text[:, 1:].clone()}
    if config.model_type == "bert":
        batch["segments"] = torch.randint(0, 2, (SAMPLES, SEQ), generator=generator)
        batch["mask"] = (torch.arange(SEQ) < SEQ - 2).long().expand(SAMPLES, SEQ).clone()
        batch["targets"][:, ::3] = -100
        batch["targets"][:, SEQ - 2:] = -100  # padding's
        return batch, None
    batch["weights"] = torch.ones(SAMPLES, SEQ)
    return batch, None


def loss_of(model, batch, images, rows):
    if images is not None:
        logits, targets = model(pixel_values=images[rows].double()).logits, batch["labels"][rows]
    elif "mask" in batch:
        out = model(input_ids=batch["tokens"][rows], token_type_ids=batch["segments"][rows],
                    attention_mask=batch["mask"][rows])
        logits, targets = out.logits, batch["targets"][rows]
    else:
        logits, targets = model(input_ids=batch["tokens"][rows]).logits, batch["targets"][rows]
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


def write_texts(name, model):
    """What greedy search goes on with, behind one token and behind three, until there is no more room or no best."""
    with open(f"{name}/texts.txt", "w") as out:
        for prompt in ([5], [7, 40, 3]):
            tokens = list(prompt)
            while len(tokens) < SEQ:
                logits = model(input_ids=torch.tensor([tokens])).logits[0, -1]
                best, next_best = logits.topk(2).values.tolist()
                if best - next_best < 1e-4:  # float32 may see it otherwise
                    break
                tokens.append(logits.argmax().item())
            words = [",".join(map(str, part)) for part in (prompt, tokens[len(prompt):])]
            out.write(" ".join(words) + "\n")


def write(name, config):
    torch.manual_seed(1)
    model = model_of(config)
    random_weights(model)
    os.makedirs(name, exist_ok=True)
    model.bfloat16().save_pretrained(name)
    for extra in os.listdir(name):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(name, extra))
    batch, images = batch_of(config, torch.Generator().manual_seed(11))
    save_file({key: value.contiguous() for key, value in batch.items()}, f"{name}/batch.safetensors")
    weights = model.state_dict()
    model = model_of(config).double().eval()  # whose constants were never rounded to bfloat16
    model.load_state_dict(weights)
    if name not in KINDS:
        with torch.no_grad():
            write_texts(name, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        rows = slice(2 * step, 2 * step + 2)
        loss = loss_of(model, batch, images, rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with open(f"{name}/losses.txt", "w") as out:
        out.writelines(f"{loss!r}\n" for loss in losses)
    print(name, losses)


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        write(case, CASES[case])
