#!/usr/bin/env python3
"""tools/benchmarks/gpu_compare.py without a GPU: its arithmetic, its models, mgc-run on the CPU beside
a peer that is made up, and PyTorch on the CPU where there is one."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import gpu_compare  # noqa: E402

SCRIPT = gpu_compare.__file__
TOOLS = os.path.abspath("tools")
SMALL = ["--model", "tiny", "--device", "cpu", "--steps", "4", "--warm-up", "2", "--turns", "2",
         "--micro-batch-size", "4"]


def run(words, **more):
    environment = dict(os.environ, PATH=f"{TOOLS}:{os.environ['PATH']}")
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True,
                          env=environment, check=False, **more)


def side(speed, ms, peak_bytes, losses):
    return {"ms": ms, "tokens_per_second": speed, "peak_bytes": peak_bytes, "losses": losses,
            "predicted_ms": 8.0}


class Arithmetic(unittest.TestCase):
    def test_flops_are_those_of_the_papers_formula(self):
        # Narayanan and others 2021, equation 3, which counts a forward pass that is done again (96 for
        # 72) and all pairs of attention.
        layers, hidden, vocab, seq = 96, 12288, 51200, 2048
        whole = 72 * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden))
        invisible = 72 * layers * hidden**2 * seq / (12 * hidden)
        counted = gpu_compare.flops_per_token(layers, hidden, vocab, seq)
        self.assertAlmostEqual(counted / (whole - invisible), 1, delta=1e-12)

    def test_flops_of_a_model_that_is_counted_by_hand(self):
        # One layer of 2, a vocabulary of 5, 4 tokens. Weights of products: 4 + 4 + 4 + 4 of attention,
        # 16 + 16 of the inner layer, 10 of the head. Of 16 pairs 8 count, each 2 x 2 flops for scores
        # and as many for sums: 64 forward, 192 with backward, 48 a token.
        self.assertEqual(gpu_compare.flops_per_token(1, 2, 5, 4), 6 * (16 + 32 + 10) + 48)

    def test_medians_and_ratios(self):
        turns = [{"mgc": side(speed, 1e6 / speed, 10, [3, 2]),
                  "PyTorch": side(peer, 1e6 / peer, 20, [4, 1])}
                 for speed, peer in ((100, 200), (300, 200), (180, 200))]
        result = gpu_compare.summary(turns, 1e9, 1e12)
        self.assertEqual(result["ratios"], [0.5, 1.5, 0.9])
        self.assertEqual(result["ratio"], 0.9)
        self.assertEqual(result["sides"]["mgc"]["tokens_per_second"], 180)
        self.assertAlmostEqual(result["sides"]["mgc"]["mfu"], 0.18)
        self.assertAlmostEqual(result["sides"]["PyTorch"]["mfu"], 0.2)
        text = gpu_compare.text_of("title", result)
        self.assertIn("mgc: 90.0 % of PyTorch (turns 50.0, 150.0, 90.0)", text)
        self.assertIn("predicted 8.00 ms, 0.1 % of mgc's step", text)

    def test_warm_up_and_evaluations_are_left_out(self):
        lines = [{"step": i, "loss": 9 - i, "ms": ms, "peak_bytes": 7, "predicted_ms": 5}
                 for i, ms in enumerate([1000, 500, 20, 40, 30])]
        lines.insert(3, {"step": 2, "eval_loss": 1.0})
        text = "note\n" + "\n".join(json.dumps(line) for line in lines)
        found = gpu_compare.side_of_mgc(text, 2, 60)
        self.assertEqual((found["ms"], found["tokens_per_second"]), (30, 2000))
        self.assertEqual(found["losses"], [9, 8, 7, 6, 5])
        with self.assertRaises(ValueError):
            gpu_compare.side_of_mgc(text, 5, 60)


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = os.path.join(self.folder.name, "numbers.txt")
        with open(self.data, "w", encoding="utf-8") as file:
            file.write("\n".join(str(i) for i in range(2000)))

    def fake(self, text):
        path = os.path.join(self.folder.name, "peer")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)
        return path

    def compiled(self, model, *flags):
        plan = os.path.join(self.folder.name, "plan.mgc")
        subprocess.run([f"{TOOLS}/mgc-compile", model, "--stop-after", "simplify", "-o", plan,
                        *flags], check=True, capture_output=True)
        with open(plan, encoding="utf-8") as file:
            return file.read()

    def test_models_are_those_of_the_presets(self):
        for model in ("gpt2-124m", "gpt3-1.3b"):
            args = argparse.Namespace(dropout=0.1)
            (args.layers, args.hidden, args.heads, args.seq,
             args.vocab) = gpu_compare.SIZES[model]
            config = os.path.join(self.folder.name, model + ".json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump(gpu_compare.config_of(args), file)
            self.assertEqual(self.compiled(config), self.compiled(model))

    def test_mgc_beside_a_made_up_peer(self):
        calls = os.path.join(self.folder.name, "calls")
        peer = self.fake(f'echo "$@" >> {calls}\necho note\necho \'' + json.dumps(
            {"ms": 20.0, "tokens_per_second": 6400.0, "peak_bytes": 1 << 30, "losses": [11, 10],
             "card": "none"}) + "'\n")
        done = run([*SMALL, "--data", self.data, "--python", peer, "--json",
                    "--peer-flags", "--precision master"])
        self.assertEqual((done.returncode, done.stderr.count("error")), (0, 0), done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(len(result["ratios"]), 2)
        for turn, ratio in zip(result["turns"], result["ratios"]):
            self.assertAlmostEqual(turn["mgc"]["tokens_per_second"] / 6400, ratio)
            self.assertEqual(len(turn["mgc"]["losses"]), 4)
            self.assertEqual(len(turn["mgc"]["all_ms"]), 2)
        mgc = result["sides"]["mgc"]
        self.assertLess(mgc["last_loss"], mgc["first_loss"])
        self.assertAlmostEqual(mgc["mfu"] * 989.4e12,
                               mgc["tokens_per_second"] * result["flops_per_token"], delta=1e-3)
        with open(calls, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 2)
        for word in ("--micro-batch-size 4", "--seq 32", "--precision master", "--warm-up 2"):
            self.assertIn(word, lines[0])

    def test_errors_name_what_failed(self):
        done = run([*SMALL, "--data", self.data, "--python", self.fake("exit 7\n")])
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 7 of ", done.stderr)
        self.assertIn("torch_gpu.py", done.stderr)
        done = run(["--data", self.data + ".not"])
        self.assertIn("numbers.txt.not is not there", done.stderr)
        done = run([*SMALL, "--data", self.data, "--warm-up", "4"])
        self.assertIn("--warm-up 4 is not from 1 to below --steps 4", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
    def test_torch_learns_what_mgc_learns(self):
        words = ["--model", "tiny", "--device", "cpu", "--turns", "1", "--micro-batch-size", "4",
                 "--data", self.data, "--steps", "30", "--lr", "3e-3", "--json"]
        for precision in ("autocast", "master", "f32"):
            done = run([*words, "--python", sys.executable,
                        "--peer-flags", "--no-compile --precision " + precision])
            self.assertEqual(done.returncode, 0, done.stderr)
            sides = json.loads(done.stdout)["sides"]
            # Weights are others, drawn from the same distribution.
            for key, apart in (("first_loss", 0.1), ("last_loss", 0.3)):
                self.assertAlmostEqual(sides["mgc"][key], sides["PyTorch"][key], delta=apart,
                                       msg=f"{precision}, {key}")
            self.assertLess(sides["PyTorch"]["last_loss"], sides["PyTorch"]["first_loss"] - 2)


if __name__ == "__main__":
    if not importlib.util.find_spec("torch"):
        print("no PyTorch here: torch_gpu.py is not run", file=sys.stderr)
    unittest.main()
