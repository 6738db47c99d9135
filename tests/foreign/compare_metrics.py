"""What tools/foreign_readers runs: what mgc-run writes of a run, as the readers of others have it.

Works in the current folder. TensorBoard's own reader opens the event files, its writer makes the
same records; Prometheus' own parser reads the OpenMetrics text.
"""

import io
import json
import os
import re
import subprocess
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

HERE = os.path.dirname(os.path.abspath(__file__))
failures = []


def expect(holds, what):
    print("%-6s %s" % ("ok" if holds else "FAILED", what), flush=True)
    if not holds:
        failures.append(what)


def run(*arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, timeout=120)


def as_float(number):
    """What a 32-bit float keeps of it."""
    return summary_pb2.Summary.Value(simple_value=float(number)).simple_value


def record(event):
    file = io.BytesIO()
    RecordWriter(file).write(event.SerializeToString())
    return file.getvalue()


def train():
    """Six steps, of which the last two are taken twice."""
    with open("numbers.txt", "w") as file:
        file.write("".join("%d\n" % number for number in range(2000)))
    run("mgc-compile", "gpt2-tiny", "--seq-length", "32", "--tp", "2", "--world-size", "2",
        "--global-batch-size", "8", "-o", "two.plan")
    command = ["mgc-run", "two.plan", "--data", "numbers.txt", "--save", "saved",
               "--save-interval", "4", "--metrics", "metrics.jsonl", "--tensorboard", "events",
               "--openmetrics", "run.prom", "--eval-interval", "3"]
    run(*command, "--steps", "6")
    run(*command, "--steps", "6", "--resume", "4", "--lr", "5e-4")
    with open("metrics.jsonl") as file:
        return [json.loads(line) for line in file]


def by_tensorboard(lines):
    events = EventAccumulator("events")
    events.Reload()
    for tag, key, scale in (("train/loss", "loss", 1), ("train/grad_norm", "grad_norm", 1),
                            ("train/learning_rate", "lr", 1), ("valid/loss", "eval_loss", 1),
                            ("perf/step_ms", "ms", 1), ("perf/predicted_ms", "predicted_ms", 1),
                            ("perf/tokens_per_second", "tokens_per_second", 1),
                            ("perf/tflops", "flops_per_second", 1e12),
                            ("memory/peak_gib", "peak_bytes", 2**30)):
        theirs = [(event.step, event.value) for event in events.Scalars(tag)]
        mine = [(line["step"], as_float(line[key] / scale)) for line in lines if key in line]
        expect(theirs == mine, "TensorBoard reads %s: %d numbers" % (tag, len(theirs)))


def by_its_writer():
    value = summary_pb2.Summary.Value
    summary = summary_pb2.Summary(value=[
        value(tag="train/loss", simple_value=2.5),
        value(tag="perf/tflops", simple_value=float("nan")),
        value(tag="perf/tokens_per_second", simple_value=1e6)])
    records = [
        event_pb2.Event(wall_time=1.5, file_version="brain.Event:2"),
        event_pb2.Event(wall_time=1.5, step=301, session_log=event_pb2.SessionLog(
            status=event_pb2.SessionLog.START)),
        event_pb2.Event(wall_time=1700000000.25, step=300, summary=summary)]
    with open(os.path.join(HERE, "../../runtime/metrics/event_file_test.cc")) as file:
        goldens = re.sub(r'"\s*"', "", file.read())
    for event in records:
        expect(record(event).hex() in goldens, "TensorBoard's writer makes the golden record")


def by_prometheus(lines):
    with open("run.prom") as file:
        families = {family.name: family for family in text_string_to_metric_families(file.read())}
    value = lambda name: families[name].samples[0].value
    last = [line for line in lines if "loss" in line][-1]
    expect(value("mgc_steps") == last["step"], "Prometheus reads the steps")
    expect(value("mgc_loss") == last["loss"], "Prometheus reads the loss")
    expect(value("mgc_step_seconds") == last["ms"] / 1e3, "Prometheus reads the time")
    expect(families["mgc_step_seconds"].unit == "seconds", "Prometheus reads the unit")


def main():
    lines = train()
    steps = [line["step"] for line in lines if "loss" in line]
    expect(steps == [1, 2, 3, 4, 5, 6], "a run that goes on has every step once")
    by_tensorboard(lines)
    by_its_writer()
    by_prometheus(lines)
    print("%d failed" % len(failures) if failures else "all as expected")
    return 1 if failures else 0


sys.exit(main())
