"""Models of SentencePiece, trained by its own library, and what it makes of texts with them.

    pieces.py FOLDER     write the goldens of tests/foreign into a folder
"""

import base64
import io
import json
import os
import random
import sys

import sentencepiece

SEED = 20240817
COMMON = {"byte_fallback": True, "character_coverage": 0.999, "num_threads": 1,
          "minloglevel": 2, "hard_vocab_limit": False}
# As Llama 2 has it; unigram as T5, with every default; one without bytes, whose rest is unknown.
LLAMA2 = {"model_type": "bpe", "normalization_rule_name": "identity", "split_digits": True,
          "remove_extra_whitespaces": False, **COMMON}
MODELS = {
    "bpe": LLAMA2,
    "unigram": {"model_type": "unigram", "normalization_rule_name": "identity", **COMMON},
    "nmt": {"model_type": "unigram", **COMMON, "byte_fallback": False},
    "gemma": {**LLAMA2, "add_dummy_prefix": False, "user_defined_symbols": ["<start>", "\n\n"]},
}
SMALL = ("bpe", "unigram")  # without tables of Unicode in them


def trained(name, texts, size):
    """The content of a model. Training takes no empty lines and no lines of more than 4,192 bytes."""
    lines = [line[:1000] for text in texts for line in text.split("\n") if line.strip()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, **MODELS[name])
    return model.getvalue()


def encoded(model, texts):
    return sentencepiece.SentencePieceProcessor(model_proto=model).encode(texts)


def decoded(model, tokens):
    return sentencepiece.SentencePieceProcessor(model_proto=model).decode(tokens)


def write_goldens(folder, texts):
    for name in SMALL:
        model = trained(name, texts, 700)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        with open(os.path.join(folder, name + ".pieces.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps({"model": base64.b64encode(model).decode(),
                                   "size": processor.get_piece_size()}) + "\n")
            for text in texts:
                ids = processor.encode(text)
                file.write(json.dumps({"text": text, "tokens": ids,
                                       "decoded": processor.decode(ids)}) + "\n")


def golden_texts():
    """Those of the other goldens, and blanks where they are easily lost."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "gpt2.tokens.jsonl"), encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    dice = random.Random(SEED)
    blanks = [" ", "  ", "\t", "\n", "\u2581", "\u00a0", "a", "I am", "123", "</s>", "\0", ""]
    return texts + ["".join(dice.choices(blanks, k=12)) for _ in range(40)]


if __name__ == "__main__":
    write_goldens(sys.argv[1], golden_texts())
