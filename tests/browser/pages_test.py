#!/usr/bin/env python3
"""Opens the pages of `mgc-compile --auto --html`, `mgc-plan html` and `mgc-report` in a browser
without a window, reads what it has laid out, and holds that against the JSON of the same commands. Skipped, and says
so, where no chromium is installed (tools/test_packages)."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.getcwd(), "tools")
BROWSER = shutil.which("chromium")

# Runs in the page when it stands: every element with numbers, and where the browser has put it.
MEASURE = """
<script>
const zoom = document.querySelector('input[type=range]');
if (zoom) { zoom.value = 300; zoom.dispatchEvent(new Event('input')); }
const known = {};
for (const selector of ['tr', 'circle', 'path', 'rect', 'text', 'td', 'svg', '.zoom']) {
  known[selector] = [...document.querySelectorAll(selector)].map(e => {
    const box = e.getBoundingClientRect();
    return {data: {...e.dataset}, look: e.getAttribute('class'), text: e.textContent,
            of: e.closest('table')?.id, cells: [...(e.cells ?? [])].map(c => c.textContent),
            x: box.x, y: box.y, width: box.width, height: box.height};
  });
}
const out = document.createElement('pre');
out.id = 'measured';
out.textContent = JSON.stringify(known);
document.body.append(out);
</script></body>"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def measured(page, folder):
    """What a browser makes of a page: lists of elements by selector."""
    with open(page) as file:
        text = file.read()
    assert text.count("</body>") == 1
    watched = os.path.join(folder, "watched.html")
    with open(watched, "w") as file:
        file.write(text.replace("</body>", MEASURE))
    dom = run(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
              "--user-data-dir=" + os.path.join(folder, "profile"), "--window-size=1600,1200",
              "--dump-dom", "file://" + watched)
    return json.loads(html.unescape(re.search(r'<pre id="measured">(.*?)</pre>', dom, re.S)[1]))


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def nanoseconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def size(text):
    number, unit = text.split()
    return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)


@unittest.skipUnless(BROWSER, "chromium is not installed")
class PagesTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        os.environ["HOME"] = self.folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def on_a_line(self, pairs):
        """Pixels that stand for numbers: one scale for all, to a pixel and a half."""
        (low, at_low), (high, at_high) = min(pairs), max(pairs)
        for value, at in pairs:
            share = (value - low) / ((high - low) or 1)
            self.assertAlmostEqual(at, at_low + share * (at_high - at_low), delta=1.5)

    def check_rows(self, rows, plans):
        """A table of plans: what it says in attributes, and in words."""
        self.assertEqual([(int(r["data"]["stepNs"]), int(r["data"]["peak"])) for r in rows],
                         [(p["step_ns"], p["peak"]) for p in plans])
        for row, plan in zip(rows, plans):
            _, step, compute, _, _, _, peak, _, flags = row["cells"]
            self.assertAlmostEqual(nanoseconds(step) / plan["step_ns"], 1, delta=0.01)
            self.assertAlmostEqual(size(peak) / plan["peak"], 1, delta=0.02)
            self.assertAlmostEqual(float(compute.split()[0]) / 100,
                                   plan["compute_ns"] / plan["step_ns"], delta=0.001)
            self.assertEqual(flags, plan["flags"])

    def check_plot(self, seen, found):
        front = [c for c in seen["circle"] if c["look"] == "front"]
        others = [c for c in seen["circle"] if c["look"] == "found"]
        number = lambda c: (int(c["data"]["stepNs"]), int(c["data"]["peak"]))
        self.assertEqual([number(c) for c in front],
                         [(p["step_ns"], p["peak"]) for p in found["front"]])
        known = {(p["step_ns"], p["peak"]) for p in found["known"]}
        self.assertTrue(others)
        self.assertLessEqual({number(c) for c in others}, known)
        points = front + others
        self.on_a_line([(number(c)[0], middle(c)[1]) for c in points])
        self.on_a_line([(number(c)[1], middle(c)[0]) for c in points])
        self.assertGreater(middle(front[-1])[1] * -1, middle(front[0])[1] * -1)  # slower is higher
        (limit,) = [p for p in seen["path"] if p["look"] == "limit"]
        self.assertEqual(int(limit["data"]["bytes"]), found["device_bytes"])
        for point in points:
            self.assertEqual(middle(point)[0] <= limit["x"] + 1,
                             number(point)[1] <= found["device_bytes"])

    def check_labels(self, seen, found):
        labels = [t for t in seen["text"] if t["look"] == "label"]
        self.assertEqual([t["text"].split(maxsplit=1)[1] for t in labels],
                         [p["flags"] for p in found["front"]])
        (plot,) = seen["svg"]
        for text in seen["text"]:
            self.assertGreaterEqual(text["x"], plot["x"] - 1, text)
            self.assertLessEqual(text["x"] + text["width"], plot["x"] + plot["width"] + 1, text)
        for a, b in zip(labels, labels[1:]):
            self.assertGreaterEqual(a["y"] + 1, b["y"] + b["height"], (a, b))

    def test_plans_that_were_found(self):
        page = self.path("found.html")
        found = json.loads(run(TOOLS + "/mgc-compile", "gpt2-tiny", "--auto", "--world-size", "4",
                               "--global-batch-size", "8", "--micro-batch-size", "2",
                               "--report", "json", "--html", page))
        seen = measured(page, self.folder)
        rows = lambda table: [r for r in seen["tr"] if r["of"] == table and r["data"]]
        self.check_rows(rows("ranked"), found["ranked"])
        self.check_rows(rows("front"), found["front"])
        self.check_plot(seen, found)
        self.check_labels(seen, found)
        self.assertEqual([r["cells"] for r in seen["tr"] if r["of"] == "why-not"],
                         [[w["change"], w["why"]] for w in found["why_not"]])
        counts = [int(d["data"]["value"]) for d in seen["td"] if "value" in d["data"]]
        self.assertEqual(counts, [found[key] for key in (
            "refused", "candidates", "too_large", "profiled", "compiled", "budget",
            "least_bound_ns")])

    def test_a_plan(self):
        plan, page = self.path("a.plan"), self.path("a.html")
        run(TOOLS + "/mgc-compile", "gpt2-tiny", "--tp", "2", "--pp", "2", "--world-size", "4",
            "--global-batch-size", "8", "-o", plan, "--html", page)
        with open(page) as file:
            self.assertEqual(run(TOOLS + "/mgc-plan", "html", plan), file.read())
        memory = json.loads(run(TOOLS + "/mgc-plan", "memory", plan, "--json",
                                "--advice-seconds", "0"))
        seen = measured(page, self.folder)
        keys = ("params", "grads", "optimizer", "copies", "activations", "boundaries", "transient",
                "peak", "workspace")
        self.assertEqual([int(d["data"]["bytes"]) for d in seen["td"] if d["data"]],
                         [c[key] for c in memory["classes"] for key in keys])
        for cell in (d for d in seen["td"] if int(d["data"].get("bytes", 0)) > 0):
            self.assertAlmostEqual(size(cell["text"]) / int(cell["data"]["bytes"]), 1, delta=0.05)
        boxes = [r for r in seen["rect"] if "peak" in r["data"]]
        self.assertEqual([int(b["data"]["peak"]) for b in boxes],
                         [c["peak"] for c in memory["classes"]])
        bars = [r for r in seen["rect"] if "begin" in r["data"]]
        self.assertEqual(max(int(b["data"]["end"]) for b in bars), memory["predicted_step_ns"])
        self.on_a_line([(int(b["data"]["begin"]), b["x"]) for b in bars])
        # The slider stretches what lies along time.
        zoomed, (overview, *_) = seen[".zoom"], seen["svg"]
        self.assertGreater(len(zoomed), 1)
        for picture in zoomed:
            self.assertGreater(picture["width"], 2 * overview["width"])


    def test_a_run(self):
        plan, metrics, trace, page = map(self.path, ("r.plan", "m.jsonl", "t.json", "r.html"))
        with open(self.path("text"), "w") as file:
            file.write("the quick brown fox jumps over the lazy dog;" * 200)
        run(TOOLS + "/mgc-compile", "gpt2-tiny", "--seq-length", "32", "--pp", "2", "--world-size",
            "2", "--global-batch-size", "8", "-o", plan)
        run(TOOLS + "/mgc-run", plan, "--data", self.path("text"), "--steps", "6",
            "--eval-interval", "3", "--metrics", metrics, "--trace", trace)
        run(TOOLS + "/mgc-report", metrics, plan, "--trace", trace, "-o", page)
        with open(metrics) as file:
            lines = [json.loads(line) for line in file]
        steps = [line for line in lines if "loss" in line]
        seen = measured(page, self.folder)
        points = [c for c in seen["circle"] if "key" in c["data"]]
        for key in ("loss", "grad_norm", "lr", "ms", "predicted_ms", "tokens_per_second",
                    "flops_per_second", "peak_share", "peak_bytes", "eval_loss"):
            mine = [c for c in points if c["data"]["key"] == key]
            self.assertEqual([(int(c["data"]["step"]), float(c["data"]["value"])) for c in mine],
                             [(line["step"], line[key]) for line in lines if key in line])
            self.on_a_line([(int(c["data"]["step"]), middle(c)[0]) for c in mine])
            self.on_a_line([(float(c["data"]["value"]), -middle(c)[1]) for c in mine])
        facts = {r["data"]["fact"]: r["cells"][1] for r in seen["tr"] if "fact" in r["data"]}
        self.assertEqual(facts["steps"], "6")
        self.assertAlmostEqual(float(facts["loss"]), steps[-1]["loss"], delta=1e-4)
        timed = sorted(line["ms"] for line in steps if not line.get("warm_up"))
        self.assertEqual(len(timed), 4)
        self.assertAlmostEqual(float(facts["ms"].split()[0]), (timed[1] + timed[2]) / 2, delta=0.06)
        self.assertAlmostEqual(size(facts["peak_bytes"]) / steps[-1]["peak_bytes"], 1, delta=0.05)
        bars = [r for r in seen["rect"] if "us" in r["data"]]
        updates = [b for b in bars if "U0" in b["text"]]
        self.assertEqual(len(updates), 4)  # of two ranks, measured and predicted: one step
        self.assertGreater(len([r for r in seen["rect"] if "peak" in r["data"]]), 1)  # the plan


if __name__ == "__main__":
    if not BROWSER:
        print("SKIPPED: chromium is not installed, no page was opened; tools/setup --tests "
              "installs it", file=sys.stderr)
    unittest.main(verbosity=2)
